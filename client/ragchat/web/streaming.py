"""Work whose events the page follows: a response of JSON lines, one event each.

The response is the work: when the page closes it, the work is cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ragchat.web.errors import error_document

# Sends one event to the page. It never waits.
Tell = Callable[[dict[str, Any]], None]
# Does something, and tells of it. What it raises is told as the last event.
Work = Callable[[Tell], Awaitable[None]]


class Streamed(Response):
    """Does `work` while it is sent."""

    media_type = "application/x-ndjson"

    def __init__(self, work: Work) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        tell, events = anyio.create_memory_object_stream[dict[str, Any]](float("inf"))
        async with anyio.create_task_group() as tasks, events:
            tasks.start_soon(cancel_when_closed, receive, tasks.cancel_scope)
            tasks.start_soon(self._do, tell)
            async for event in events:
                line = msgspec.json.encode(event) + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
            tasks.cancel_scope.cancel()

    async def _do(self, send: MemoryObjectSendStream[dict[str, Any]]) -> None:
        def tell(event: dict[str, Any]) -> None:
            with suppress(anyio.BrokenResourceError):  # The page is gone.
                send.send_nowait(event)

        with send:
            try:
                await self._work(tell)
            except Exception as error:
                tell({"type": "error", **error_document(error)})


async def cancel_when_closed(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel the work of a response when its client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
