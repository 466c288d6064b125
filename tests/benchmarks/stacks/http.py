"""Every HTTP stack under the same uvicorn, without a log line a call. For peers too."""

from __future__ import annotations

from typing import Any


def run_app(app: Any, port: int) -> None:
    """Serve an ASGI application on loopback until a signal comes."""
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
