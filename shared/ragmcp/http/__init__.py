"""Streamable HTTP, both halves, without sessions.

The server's half starts with `asgi`, which decides the era of a request. `limits` bounds what clients may
use; `exchange` is one request and its response, `dispatch` handles requests of both eras, `server` modern
ones. `access` checks Host and Origin by rules that the program sets, and asks it what else it requires.

The client's half starts with `connect`, which finds the newest transport of a server; `modern_client` is the
channel to a modern one, `client` sends HTTP requests and delivers the messages of their responses. SSE
resumption is in `ragmcp.legacy`: `replay` and `session_client`.
"""
