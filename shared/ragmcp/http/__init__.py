"""Streamable HTTP, both halves, without sessions.

The server's half starts with `asgi`, which tells requests apart by era. `access` decides which clients may
connect, `limits` what they may use; `exchange` is one request and its response, `dispatch` what requests of
all eras have in common, `server` one modern request. The client's half starts with `connect`, which finds the
newest transport of a server; `modern_client` is the channel to a modern one, `client` the HTTP requests, and
`raw` passes encoded messages through.
"""
