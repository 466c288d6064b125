"""The memory end to end: loading a folder, Query over stdio at 10,000 and 100,000 chunks, memory used."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.benchmarks.corpus import questions, write_folder
from tests.benchmarks.raw import RawClient
from tests.benchmarks.report import median, table

FILES = 2_000


def environment(home: Path) -> dict[str, str]:
    """The environment of a fresh user, offline: nothing of the real one's home is read or written."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAGCHAT_", "OPENAI_"))}
    # The memory is named: the working folder may be in a repository with its own.
    return {**kept, "RAGCHAT_HOME": str(home), "RAGCHAT_MEMORY": str(home / "data" / "memory.db")}


def load(home: Path, paragraphs_per_file: int) -> tuple[int, int, float]:
    """`ragchat inject FOLDER` of FILES Markdown files: chunks stored, words, seconds from spawn to exit."""
    folder = home / "notes"
    folder.mkdir(parents=True)
    write_folder(folder, FILES, paragraphs_per_file)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "ragchat", "inject", str(folder), "--json"],
        env=environment(home),
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - began
    chunks = sum(document["chunks"] for document in json.loads(done.stdout)["documents"])
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in folder.iterdir())
    return chunks, words, seconds


def first_answer(home: Path) -> float:
    """Seconds from spawn to the first answered Query."""
    with RawClient([sys.executable, "-m", "ragmemory"], environment(home)) as client:
        client.call("Query", {"query": "when did the crisis begin", "top_k": 8})
        return time.perf_counter() - client.spawned


def latencies(home: Path) -> tuple[list[float], float | None]:
    """Milliseconds of 300 different questions, one at a time, and the server's peak MiB."""
    with RawClient([sys.executable, "-m", "ragmemory"], environment(home)) as client:
        spans = []
        for question in questions(320):
            began = time.perf_counter()
            client.call("Query", {"query": question, "top_k": 8})
            spans.append((time.perf_counter() - began) * 1e3)
        return spans[20:], client.peak_mebibytes()


def run() -> None:
    rows = []
    for paragraphs_per_file in (5, 50):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            chunks, words, seconds = load(home, paragraphs_per_file)
            first_answer(home)  # leaves the saved index behind, as any use does
            first = median(partial(first_answer, home), 5)
            spans, peak = latencies(home)
            rows.append(
                [
                    f"{chunks:,}",
                    f"{seconds:.1f}",
                    f"{chunks / seconds:,.0f}",
                    f"{words / seconds:,.0f}",
                    f"{first:.2f}",
                    f"{statistics.median(spans):.1f}",
                    f"{statistics.quantiles(spans, n=100)[98]:.1f}",
                    "–" if peak is None else f"{peak:,.0f}",
                ]
            )
    table(
        f"`ragchat inject` of {FILES:,} Markdown files, then Query over stdio",
        [
            "chunks",
            "inject s",
            "chunks/s (goal 4,000)",
            "words/s",
            "spawn to first Query, s (goal 0.5)",
            "Query p50 ms (goal 5)",
            "p99 ms",
            "peak MiB",
        ],
        rows,
    )
