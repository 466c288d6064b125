"""MCP over HTTP beside the official SDK and fastmcp, in one run: rate, latency, sessions, 1,000 at once."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.load import drain, open_session, rate, session_call, stateless_call
from tests.benchmarks.raw import resident_mebibytes
from tests.benchmarks.report import table
from tests.benchmarks.stdio import STACKS
from tests.support.mcp_process import ENV, ROOT
from tests.support.processes import Held

CALLS = 4_000
CONNECTIONS = 64
SESSIONS = 500
AT_ONCE = 1_000


@contextmanager
def server(command: list[str]) -> Iterator[tuple[int, int]]:
    """The port and process id of a running server."""
    with Held(
        [*command, "serve-http"], env=ENV, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield int(process.line()), process.pid


async def figures(port: int, pid: int) -> dict[str, float]:
    found: dict[str, float] = {}
    call = stateless_call(port)
    found["rate_1"], spans = await rate(port, [call], CALLS // 4)
    found["p50_1"], found["p99_1"] = spans[len(spans) // 2], spans[len(spans) * 99 // 100]
    found["rate_64"], spans = await rate(port, [call] * CONNECTIONS, CALLS)
    found["p99_64"] = spans[len(spans) * 99 // 100]
    found["drain"] = await drain(port, call, AT_ONCE)
    sessions = [session_call(port, await open_session(port)) for _ in range(CONNECTIONS)]
    found["session_1"], _ = await rate(port, sessions[:1], CALLS // 4)
    found["session_64"], _ = await rate(port, sessions, CALLS)
    before = resident_mebibytes(pid) or 0
    for _ in range(SESSIONS):
        await open_session(port)
    found["session_kib"] = ((resident_mebibytes(pid) or 0) - before) * 1024 / SESSIONS
    return found


def run() -> None:
    measured = {}
    for name, command in STACKS.items():
        if Path(command[0]).exists():
            with server(command) as (port, pid):
                measured[name] = asyncio.run(figures(port, pid))
    sdk = measured["official SDK"]
    table(
        "A trivial tool over HTTP, the same load on each server",
        [
            "server",
            "1 conn.: p50 / p99 ms",
            "64: calls/s",
            "x SDK",
            "p99 ms",
            "1,000 at once, s",
            "x SDK",
        ],
        [
            [
                name,
                f"{own['p50_1'] * 1e3:.2f} / {own['p99_1'] * 1e3:.2f}",
                f"{own['rate_64']:,.0f}",
                f"{own['rate_64'] / sdk['rate_64']:.1f}",
                f"{own['p99_64'] * 1e3:.0f}",
                f"{own['drain']:.2f}",
                f"{sdk['drain'] / own['drain']:.1f}",
            ]
            for name, own in measured.items()
        ],
    )
    table(
        "Calls a second, stateless (2026-07-28) and in sessions (2025-11-25)",
        ["server", "1 conn.", "x SDK", "session", "x SDK", "64 sessions", "x SDK", "KiB a session"],
        [
            [
                name,
                f"{own['rate_1']:,.0f}",
                f"{own['rate_1'] / sdk['rate_1']:.1f}",
                f"{own['session_1']:,.0f}",
                f"{own['session_1'] / sdk['session_1']:.1f}",
                f"{own['session_64']:,.0f}",
                f"{own['session_64'] / sdk['session_64']:.1f}",
                f"{own['session_kib']:.0f}",
            ]
            for name, own in measured.items()
        ],
    )
