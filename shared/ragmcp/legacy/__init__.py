"""What only revisions before 2026-07-28 need: sessions, event replay, HTTP+SSE, downgraded content.

The server's half: `sessions` in a `session_table`, each an `http_session` with streams that `replay`; `sse`
is the transport of 2024-11-05. The client's half: `http_legacy` with what is `incoming` unasked, and
`sse_client`.
"""
