"""Bytes to messages and back, for every revision: pure, with no clock, no tasks and no sockets.

Start with `connection`, the state of one connection, which uses `framing` and `jsonrpc`. `eras` tells the
revisions apart, `schema` holds the types on the wire.
"""
