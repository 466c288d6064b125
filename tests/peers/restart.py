"""What clients of other libraries do when the server is gone for a moment: `restart PEER TARGETS`.

Says "met" once all have met the server, and goes on when a line comes on stdin.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

import anyio

from tests.peers.walk import WALK_SECONDS, Connect, Heard, Target, outcome

ECHO = ("Echo", {"text": "here"})


class Restart:
    """Comes when all have met the server."""

    def __init__(self, awaited: int) -> None:
        self._awaited = awaited
        self._over = anyio.Event()

    async def wait(self) -> None:
        """Until the server has come back."""
        self._awaited -= 1
        if self._awaited:
            await self._over.wait()
            return
        sys.stdout.write("met\n")
        sys.stdout.flush()
        await anyio.to_thread.run_sync(sys.stdin.readline)
        self._over.set()


async def meet(connect: Connect, target: Target, restart: Restart) -> dict[str, Any]:
    """Call the server before and after, and once more on a new connection."""
    saw = {}
    async with connect(target, Heard()) as host:
        saw["before"] = await outcome(host.call(*ECHO))
        await restart.wait()
        saw["after"] = await outcome(host.call(*ECHO))
    async with connect(target, Heard()) as host:
        saw["again"] = await outcome(host.call(*ECHO))
    return saw


async def main(peer: str, targets: list[Target]) -> None:
    """All of them at the same time."""
    connect: Connect = import_module(f"tests.peers.{peer}_client").connect
    restart = Restart(len(targets))
    saw: list[dict[str, Any]] = [{} for _ in targets]

    async def run(number: int) -> None:
        saw[number] = await meet(connect, targets[number], restart)

    with anyio.fail_after(WALK_SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(len(targets)):
                tasks.start_soon(run, number)
    sys.stdout.write(json.dumps(saw))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], json.loads(sys.argv[2]))
