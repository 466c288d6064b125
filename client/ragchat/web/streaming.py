"""Work whose events the page follows: a response of JSON lines, one event each.

The response is the work: when the page closes it, the work is cancelled. A `Run` goes on without a response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import Any

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ragchat.web.errors import error_document

# Sends one event to the page. It never waits.
Tell = Callable[[dict[str, Any]], None]
# Does something, and tells of it.
Work = Callable[[Tell], Awaitable[None]]
Told = MemoryObjectReceiveStream[dict[str, Any] | Exception]


class Streamed(Response):
    """Does `work` while it is sent. What it raises is the last event."""

    media_type = "application/x-ndjson"

    def __init__(self, work: Work) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with following(receive, self._work) as told:
            async for event in told:
                if isinstance(event, Exception):
                    event = {"type": "error", **error_document(event)}
                line = msgspec.json.encode(event) + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


class Run:
    """Work that goes on when the page is left. Any page can follow it, from its first event on.

    It answers `question`. `scope` cancels it. `end` is its last event, None while it goes on.
    """

    def __init__(self, question: str) -> None:
        self.question = question
        self.scope = anyio.CancelScope()
        self.end: dict[str, Any] | None = None
        self._events: list[dict[str, Any] | None] = []
        self._more = anyio.Event()

    async def do(self, work: Callable[[Run], Awaitable[dict[str, Any]]]) -> None:
        """Do the work, which returns the last event; what it raises is the last event, too."""
        try:
            self.end = await work(self)
        except Exception as error:
            self.end = {"type": "error", **error_document(error)}
        self.tell(self.end)

    def tell(self, event: dict[str, Any]) -> None:
        last = self._events[-1] if self._events else None
        if last and event["type"] == last["type"] == "blocks" and event["from"] == last["from"]:
            self._events[-1] = None  # The new event draws all of the last one again.
        self._events.append(event)
        self._more.set()
        self._more = anyio.Event()

    async def follow(self, tell: Tell) -> None:
        """Tell all events, those of the past at once."""
        told = 0
        while True:
            for event in self._events[told:]:
                if event is not None:
                    tell(event)
            told = len(self._events)
            if self.end is not None:
                return
            await self._more.wait()


@asynccontextmanager
async def following(receive: Receive, work: Work) -> AsyncIterator[Told]:
    """What `work` tells, then the exception that it raises. It is cancelled when the client leaves."""
    send, told = anyio.create_memory_object_stream[dict[str, Any] | Exception](inf)

    def tell(part: dict[str, Any] | Exception) -> None:
        with suppress(anyio.BrokenResourceError):  # The client is gone.
            send.send_nowait(part)

    async def do() -> None:
        with send:
            try:
                await work(tell)
            except Exception as error:
                tell(error)

    async def cancel_when_closed() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks, told:
        tasks.start_soon(cancel_when_closed)
        tasks.start_soon(do)
        yield told
        tasks.cancel_scope.cancel()
