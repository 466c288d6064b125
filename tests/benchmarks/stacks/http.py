"""Every HTTP stack under the same uvicorn, without a log line a call. For peers too."""

from __future__ import annotations

import socket
import sys
from typing import Any


def run_app(app: Any) -> None:
    """Serve an ASGI application on a free port of loopback, written to stdout, until a signal comes."""
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False)
    with socket.create_server(("127.0.0.1", 0), backlog=config.backlog) as listener:
        # As asyncio does for the sockets it opens itself.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(config).run([listener])
