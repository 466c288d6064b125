"""Bytes to messages and back, for every revision: pure, with no clock, no tasks and no sockets.

Start with `connection`, the state of one connection; `framing` and `jsonrpc` are below it, `eras` says what
each revision knows, `schema` holds the types on the wire.
"""
