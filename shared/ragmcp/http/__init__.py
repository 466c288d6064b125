"""Streamable HTTP, both halves, without sessions.

The server's half starts with `asgi`, which tells requests apart by era; `access` decides who may come in,
`limits` what a client may take, `exchange` is one request and its response, `dispatch` what calls have in
common in both eras, `server` one modern request, `plain` the same without JSON-RPC around it. The client's
half starts with `connect`, which finds the newest way that a server knows; `modern_client` is the channel
to a modern one.
"""
