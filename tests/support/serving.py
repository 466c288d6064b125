"""An ASGI application as a process of its own. For peers too, so it imports nothing of ours."""

from __future__ import annotations

import socket
import sys
from typing import Any

import anyio


async def serve_app(app: Any, port: int = 0) -> None:
    """Serve on loopback until a signal comes, and say on stdout on which port (0: the system chooses)."""
    import uvicorn

    with socket.create_server(("127.0.0.1", port)) as listener:
        # Asyncio does so for its own sockets only; else a body waits 40 ms for the receipt of its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=0)
        await uvicorn.Server(config).serve(sockets=[listener])


def run_app(app: Any, port: int = 0) -> None:
    """The same, as all that the process does."""
    anyio.run(serve_app, app, port)


def both(streamable: Any, sse: Any) -> Any:
    """One Starlette application of a library's two."""
    streamable.router.routes.extend(sse.router.routes)
    return streamable
