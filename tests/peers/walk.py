"""What a client of another library does with our server, and what it saw: the same steps for all of them.

Runs in that library's own environment, so it imports none of ours. It prints what came as it was on the wire.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

import anyio

WELCOME = "note://welcome"
NOT_ASCII = "ü世🎉 "
WALK_SECONDS = 120

# How to reach a server: {"transport": "stdio", "command": […], "log": …} or {"transport": "http" or "sse",
# "url": …}, with "mode" for libraries that can speak both eras; "memory": whether the real memory is there.
Target: TypeAlias = dict[str, Any]


class OnProgress(Protocol):
    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class Heard:
    """What a server says unasked: (kind, what)."""

    def __init__(self) -> None:
        self._said: list[tuple[str, Any]] = []
        self._more = anyio.Event()

    def hear(self, kind: str, what: Any) -> None:
        self._said.append((kind, plain(what)))
        self._more.set()
        self._more = anyio.Event()

    async def first(self, kind: str, count: int) -> list[Any]:
        """The first `count` of that kind, once they have come."""
        while len(found := self._of(kind)) < count:
            await self._more.wait()
        return found

    async def until(self, kind: str, is_last: Callable[[Any], bool]) -> list[Any]:
        """All of that kind, once the last of them has come."""
        while not any(map(is_last, found := self._of(kind))):
            await self._more.wait()
        return found

    def _of(self, kind: str) -> list[Any]:
        return [what for said, what in self._said if said == kind]


class Host(Protocol):
    """Another library's client, connected: gives what the server gave, and raises the library's own errors.

    Its user is called Zoë, its model says "four", its root is file:///home/zoe.
    """

    revision: str
    server: str
    instructions: str | None
    cancels: bool
    """Whether the library tells the server when it stops waiting."""
    longest: int
    """How many bytes it can be sent in one message, about."""

    async def tools(self) -> Any: ...
    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        timeout: float = WALK_SECONDS,
        on_progress: OnProgress | None = None,
    ) -> Any: ...
    async def resources(self, cursor: str | None) -> Any: ...
    async def templates(self) -> Any: ...
    async def read(self, uri: str) -> Any: ...
    async def prompts(self) -> Any: ...
    async def prompt(self, name: str, arguments: dict[str, str]) -> Any: ...
    async def complete(self, prompt: str, argument: str, typed: str) -> Any: ...
    def watching(self, uri: str) -> AbstractAsyncContextManager[None]:
        """Hear "tools" when the tools change, and "resource" when `uri` does."""
        ...


Connect: TypeAlias = Callable[[Target, Heard], AbstractAsyncContextManager[Host]]


def plain(value: Any) -> Any:
    """As on the wire."""
    return (
        value.model_dump(mode="json", by_alias=True, exclude_none=True)
        if hasattr(value, "model_dump")
        else value
    )


async def outcome(asked: Awaitable[Any]) -> Any:
    """What came, or the error that did."""
    try:
        return plain(await asked)
    except Exception as error:
        return {"error": plain(getattr(error, "error", None)), "raised": type(error).__name__}


async def walk(host: Host, heard: Heard) -> dict[str, Any]:
    """Every step, by its name."""
    tools = await outcome(host.tools())
    text = NOT_ASCII * (host.longest // len(NOT_ASCII.encode()))
    large = await host.call("Echo", {"text": text})
    return {
        "revision": host.revision,
        "server": host.server,
        "instructions": host.instructions,
        "tools": tools,
        "added": await outcome(host.call("Add", {"a": 2, "b": 3})),
        "failed": await outcome(host.call("Fail", {})),
        "refused": await outcome(host.call("Add", {"a": "x"})),
        "unknown": await outcome(host.call("Nope", {})),
        "large": large.content[0].text == text,
        "late": await outcome(host.call("Wait", {}, timeout=0.2)),
        **await cancelled(host),
        "mirrored": await outcome(host.call("Mirror", {"city": "Zürich", "count": 2})),
        **await read(host),
        **await prompted(host),
        "asked": await outcome(host.call("Ask", {})),
        "thought": await outcome(host.call("Think", {})),
        "roots": await outcome(host.call("Where", {})),
        "interrupted": await outcome(host.call("Interrupted", {})),
        "logged": await outcome(host.call("Log", {})),
        "logs": await heard.until("log", lambda log: log["level"] == "error"),
        **await watched(host, heard),
    }


async def cancelled(host: Host) -> dict[str, Any]:
    """A call that is given up when it has told twice how far it is, with others beside it."""
    news: list[tuple[float, float | None, str | None]] = []
    twice = anyio.Event()
    echoes: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        news.append((progress, total, message))
        if len(news) == 2:
            twice.set()

    async def echo(number: int) -> None:
        echoes.append(plain(await host.call("Echo", {"text": f"{number}"})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: host.call("Wait", {"progress": 2}, on_progress=on_progress))
        await twice.wait()
        async with anyio.create_task_group() as beside:
            for number in range(20):
                beside.start_soon(echo, number)
        tasks.cancel_scope.cancel()
    quiet = await outcome(host.call("Quiet", {})) if host.cancels else None
    return {
        "news": news,
        "echoes": sorted(int(echo["content"][0]["text"]) for echo in echoes),
        "quiet": quiet,
    }


async def read(host: Host) -> dict[str, Any]:
    """Resources."""
    first = await outcome(host.resources(None))
    return {
        "resources": first,
        "more resources": await outcome(host.resources(first["nextCursor"])),
        "templates": await outcome(host.templates()),
        "note": await outcome(host.read(WELCOME)),
        "named note": await outcome(host.read("note://named/bees")),
        "no note": await outcome(host.read("note://nowhere")),
    }


async def prompted(host: Host) -> dict[str, Any]:
    """Prompts."""
    return {
        "prompts": await outcome(host.prompts()),
        "prompt": await outcome(host.prompt("Summarize", {"topic": "bees"})),
        "prompt without topic": await outcome(host.prompt("Summarize", {})),
        "completed": await outcome(host.complete("Summarize", "tone", "p")),
    }


async def watched(host: Host, heard: Heard) -> dict[str, Any]:
    """What changes."""
    async with host.watching(WELCOME):
        grown = await outcome(host.call("Grow", {}))
        return {
            "grown": grown,
            "tools changed": await heard.first("tools", 1),
            "resource changed": await heard.first("resource", 1),
            "new": await outcome(host.call("Grown", {})),
        }


async def remember(host: Host) -> dict[str, Any]:
    """What a host does with the real memory."""
    text = "The lighthouse of Aldermoor was built in 1874."
    return {
        "revision": host.revision,
        "server": host.server,
        "tools": await outcome(host.tools()),
        "injected": await outcome(host.call("Inject", {"text": text, "metadata": {"uri": "note:1"}})),
        "found": await outcome(host.call("Query", {"query": "When was the lighthouse built?"})),
        "refused": await outcome(host.call("Query", {})),
    }


class Everybody:
    """Whether all have walked to the end."""

    def __init__(self, count: int) -> None:
        self._under_way = count
        self.there = anyio.Event()

    def arrived(self) -> None:
        """One more."""
        self._under_way -= 1
        if self._under_way <= 0:
            self.there.set()


async def _walk_to(connect: Connect, target: Target, everybody: Everybody) -> dict[str, Any]:
    heard = Heard()
    try:
        with anyio.fail_after(WALK_SECONDS):
            async with connect(target, heard) as host:
                saw = await (remember(host) if target.get("memory") else walk(host, heard))
                everybody.arrived()
                # The SDK 2.x falls over news that come while it closes a connection of the old transport.
                await everybody.there.wait()
                return saw
    except Exception:
        everybody.arrived()
        return {"fell": traceback.format_exc()}


async def _walk_to_all(connect: Connect, targets: list[Target]) -> list[dict[str, Any]]:
    saw: list[dict[str, Any]] = [{} for _ in targets]
    everybody = Everybody(len(targets))

    async def walk_to(number: int) -> None:
        saw[number] = await _walk_to(connect, targets[number], everybody)

    async with anyio.create_task_group() as tasks:
        for number in range(len(targets)):
            tasks.start_soon(walk_to, number)
    return saw


def main(connect: Connect) -> None:
    """Walk to each of the targets on the command line, and print what was seen."""
    saw = anyio.run(_walk_to_all, connect, json.loads(sys.argv[1]))
    sys.stdout.write(json.dumps(saw))
