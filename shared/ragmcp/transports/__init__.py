"""Ways for messages to travel. Each opens a stream; none knows what the messages mean.

Begin at the first of each row; the others are what it is made of.

standard streams
    stdio       both halves: `serve_stdio`, `open_stdio`
    process     the server's process that a client owns, and its ordered end
    pipes       two descriptors as one stream: `polled` by the event loop, else `threaded`
in memory
    memory      both halves in one program: `open_memory`
HTTP, the server's half: ASGI applications
    asgi        `Endpoint`: tells requests apart by era
    access      `guarded`: who may come in at all
    limits      what a client may take
    exchange    one request and its response, whatever they are about
    answering   what calls have in common in both eras
    modern      one POST, one request, one response (2026-07-28)
    plain       the same without JSON-RPC around it, for scripts
    sessions    legacy sessions in a `session_table`, each an `http_session` with streams that `replay`
    sse         GET /sse and POST /messages (2024-11-05)
HTTP, the client's half
    http        `open_http`: finds the way a server knows, the newest first
    http_client requests and responses, whatever they are about
    http_modern the channel to a modern server
    http_legacy the channel to one with sessions; `incoming` is what it says unasked
    sse_client  the stream to one of 2024-11-05
"""
