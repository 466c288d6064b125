"""The host beside the official SDK: time until 1, 5 and 20 servers are ready, and the overhead of a call."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from ragmcp.stdio.connect import open_stdio
from tests.benchmarks.report import table
from tests.support.mcp_process import ENV, MESSAGE_BYTES, SERVER
from tests.support.servers import GOOD, managed, tool, write

COUNTS = (1, 5, 20)
CALLS = 1_000
ROUNDS = 5


async def seconds_until_ready(count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), **{f"server{number}": GOOD for number in range(count)})
        began = time.perf_counter()
        async with managed(Path(folder)):
            return time.perf_counter() - began


async def microseconds_a_call(call: Callable[[], Awaitable[object]]) -> float:
    """The median."""
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


async def overheads() -> dict[str, float]:
    """Microseconds of a call of the same server, in turns: medians of the rounds."""
    arguments = {"text": "x"}
    parameters = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env=ENV)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), good=GOOD)
        async with (
            managed(Path(folder)) as manager,
            open_stdio(
                SERVER, client_name="b", client_version="0", message_bytes=MESSAGE_BYTES, env=ENV
            ) as ours,
            stdio_client(parameters) as (read, send),
            ClientSession(read, send) as sdk,
        ):
            await sdk.initialize()
            echo = tool(manager, "good__Echo")
            callers: dict[str, Callable[[], Awaitable[object]]] = {
                "the manager": lambda: echo.call(arguments),
                "ragmcp's client": lambda: ours.call_tool("Echo", arguments, timeout=60),
                "the official SDK": lambda: sdk.call_tool("Echo", arguments),
            }
            figures: dict[str, list[float]] = {name: [] for name in callers}
            for _ in range(ROUNDS):
                for name, call in callers.items():
                    figures[name].append(await microseconds_a_call(call))
            return {name: statistics.median(taken) for name, taken in figures.items()}


def run() -> None:
    rows = [
        [
            str(count),
            f"{statistics.median([anyio.run(seconds_until_ready, count) for _ in range(3)]) * 1e3:.0f}",
        ]
        for count in COUNTS
    ]
    table("Servers started at once until all are ready (median of 3)", ["servers", "ms"], rows)
    figures = anyio.run(overheads)
    sdk, direct = figures["the official SDK"], figures["ragmcp's client"]
    table(
        "A trivial tool of one server (goal: through the manager in less time than directly with the SDK)",
        ["called through", "p50 µs", "over ragmcp's client", "faster than the SDK"],
        [[name, f"{own:.0f}", f"{own - direct:+.0f}", f"{sdk / own:.1f} x"] for name, own in figures.items()],
    )
