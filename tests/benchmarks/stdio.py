"""MCP over stdio beside the official SDK and fastmcp, in one run: cold start, round trip, rate, 32 MiB."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.benchmarks.raw import RawClient
from tests.benchmarks.report import median, table
from tests.support.mcp_process import ENV, ROOT

FASTMCP = ROOT / ".peers" / "fastmcp" / "bin" / "python"

STACKS = {
    "ragmcp": [sys.executable, "-m", "tests.benchmarks.stacks.ragmcp_stack"],
    "official SDK": [sys.executable, "-m", "tests.benchmarks.stacks.sdk_stack"],
    "fastmcp": [str(FASTMCP), "-m", "tests.benchmarks.stacks.fastmcp_stack"],
}


def first_tools_list(command: list[str], *, legacy: bool) -> float:
    """Milliseconds from spawn to the answer of the first tools/list."""
    with RawClient(command, ENV, legacy=legacy) as client:
        client.request("tools/list")
        return (time.perf_counter() - client.spawned) * 1e3


def calls(command: list[str]) -> dict[str, float]:
    """What `measure` printed for one stack: its own client against its own server."""
    done = subprocess.run(
        [*command, "measure"], env=ENV, cwd=ROOT, capture_output=True, text=True, check=True
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def run() -> None:
    present = {name: command for name, command in STACKS.items() if Path(command[0]).exists()}
    starts = {
        name: median(partial(first_tools_list, [*command, "serve"], legacy=True), 7)
        for name, command in present.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        ours = [sys.executable, "-m", "ragmemory", "--memory", f"{folder}/memory.db"]
        starts["ragmemory, modern"] = median(lambda: first_tools_list(ours, legacy=False), 7)
        starts["ragmemory, legacy"] = median(lambda: first_tools_list(ours, legacy=True), 7)
    peer = starts["official SDK"]
    table(
        "Cold start: spawn to the answer of tools/list (median of 7)",
        ["server", "ms", "faster than the SDK"],
        [[name, f"{ms:.0f}", f"{peer / ms:.1f} x"] for name, ms in starts.items()],
    )
    figures = {name: calls(command) for name, command in present.items()}
    sdk = figures["official SDK"]
    table(
        "A trivial tool over stdio, each stack's client against its own server",
        [
            "stack",
            "one at a time, p50 µs",
            "x SDK",
            "64 in flight, calls/s",
            "x SDK",
            "32 MiB argument, ms",
            "x SDK",
        ],
        [
            [
                name,
                f"{own['sequential_us']:.0f}",
                f"{sdk['sequential_us'] / own['sequential_us']:.1f}",
                f"{own['per_second']:,.0f}",
                f"{own['per_second'] / sdk['per_second']:.1f}",
                f"{own['large_ms']:.0f}",
                f"{sdk['large_ms'] / own['large_ms']:.1f}",
            ]
            for name, own in figures.items()
        ],
    )
