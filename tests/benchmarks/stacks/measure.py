"""What is measured of every MCP stack, given its own client's call. Standard library only: for peers too."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable

Call = Callable[[str], Awaitable[object]]

IN_FLIGHT = 64


async def measure(call: Call, *, sequential: int = 400, concurrent: int = 6_400, megabytes: int = 32) -> None:
    """Print one JSON line: `sequential_us` (p50), `per_second` (64 in flight), `large_ms` (best of three)."""
    for _ in range(50):
        await call("warm")
    spans = []
    for _ in range(sequential):
        began = time.perf_counter()
        await call("x")
        spans.append(time.perf_counter() - began)

    async def worker() -> None:
        for _ in range(concurrent // IN_FLIGHT):
            await call("x")

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    rate = concurrent / (time.perf_counter() - began)

    large = []
    payload = "x" * (megabytes << 20)
    for _ in range(3):
        began = time.perf_counter()
        await call(payload)
        large.append(time.perf_counter() - began)
    print(
        json.dumps(
            {
                "sequential_us": statistics.median(spans) * 1e6,
                "per_second": rate,
                "large_ms": min(large) * 1e3,
            }
        )
    )
