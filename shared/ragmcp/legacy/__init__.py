"""What only revisions before 2026-07-28 need: sessions, event replay, HTTP+SSE, downgraded results.

The folder can be deleted; `ragmcp.older_revisions` is the only way in. The server's half of HTTP starts with
`sessions`, each an `http_session` whose streams `replay` events; `sse_server` is the transport of 2024-11-05.
The client's half is `http_client`, a peer whose lines travel in a `session_client`, and `sse_client`.
`server` and `downgrade` serve every transport.
"""
