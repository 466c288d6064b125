"""Requests without a socket, for tests that decide themselves when what is sent goes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio

from ragmcp.http.exchange import Receive
from tests.support.http_server import ACCEPT


def asgi_scope(method: str, headers: Mapping[str, str]) -> Any:
    """What an ASGI application hears of a request, for tests that hold its socket themselves."""
    usual = {"host": "localhost", "content-type": "application/json", "accept": ACCEPT}
    encoded = [(name.encode(), value.encode()) for name, value in (usual | dict(headers)).items()]
    return {"type": "http", "method": method, "path": "/mcp", "query_string": b"", "headers": encoded}


def body_then_silence(message: Any = None) -> Receive:
    """Receives a body from a client that stays."""
    parts = [{"type": "http.request", "body": b"" if message is None else json.dumps(message).encode()}]

    async def receive() -> Any:
        if not parts:
            await anyio.sleep_forever()
        return parts.pop()

    return receive
