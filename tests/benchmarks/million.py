"""A memory of a million chunks: loading it, what lies on the disk, and what it costs to start, ask and end.

Asked for by name (`make bench-million`), since it takes about ten minutes and 6 GB. CHUNKS=100000 makes a
smaller one.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from sys import executable
from typing import Any

from tests.benchmarks.corpus import questions, write_folder
from tests.benchmarks.memory import environment
from tests.benchmarks.raw import RawClient, anonymous_mebibytes
from tests.benchmarks.report import table

CHUNKS = int(os.environ.get("CHUNKS", "1_000_000"))
# Of a file. Short paragraphs share a chunk.
PARAGRAPHS, CHUNKS_PER_FILE = 482, 400
# Enough for full batches; as many bytes as `ragchat inject` has on their way.
IN_FLIGHT = 48
QUERIES = 300
# One document of so many is removed before the last visit.
REMOVED = 10
# Of these many chunks the postings and words are counted.
SAMPLE = 2_000


@dataclass
class Peaks:
    """The most that was seen while the process `pid` ran, in MiB."""

    pid: int = 0
    anonymous: float = 0.0
    index: float = 0.0


@dataclass(frozen=True)
class Visit:
    """One process: seconds from spawn to its first answer, milliseconds of each Query, and how it ended."""

    first: float
    spans: list[float]
    anonymous: float
    resident: float
    ending: float


def memory(home: Path, **variables: str) -> RawClient:
    command = [executable, "-m", "ragmemory", "--toolsets", "memory,documents,maintenance"]
    return RawClient(command, environment(home) | variables)


def index_of(home: Path) -> Path:
    return home / "data" / "memory.db-index"


def mebibytes(folder: Path) -> float:
    """What all files under a folder take; those that vanish meanwhile are left out."""
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue
    return size / 2**20


@contextmanager
def watched(index: Path) -> Iterator[Peaks]:
    """Look at a process, once its `pid` is set, and its index ten times a second until the `with` ends."""
    peaks, over = Peaks(), threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            peaks.anonymous = max(peaks.anonymous, anonymous_mebibytes(peaks.pid) or 0.0)
            peaks.index = max(peaks.index, mebibytes(index))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield peaks
    finally:
        over.set()
        looking.join()


def load(client: RawClient, folder: Path) -> int:
    """Inject every file, IN_FLIGHT at a time: how many chunks were stored."""
    paths = sorted(folder.iterdir())
    room = threading.Semaphore(IN_FLIGHT)

    def send() -> None:
        for path in paths:
            room.acquire()
            document = {"text": path.read_text(encoding="utf-8"), "metadata": {"uri": path.name}}
            client.begin("tools/call", {"name": "Inject", "arguments": document})

    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    chunks = 0
    answers = client.results()
    for _ in paths:
        chunks += next(answers)[1]["structuredContent"]["chunks"]
        room.release()
    sending.join()
    return chunks


def visit(home: Path, note: str = "") -> Visit:
    """Start, ask, and end; with a `note`, that is stored before the last questions."""
    with memory(home) as client:
        client.call("Query", {"query": "when did the crisis begin", "top_k": 8})
        first = time.perf_counter() - client.spawned
        if note:
            client.call("Inject", {"text": note, "metadata": {"uri": "note"}})
        spans = []
        for question in questions(QUERIES + 20):
            began = time.perf_counter()
            client.call("Query", {"query": question, "top_k": 8})
            spans.append((time.perf_counter() - began) * 1e3)
        if note:
            client.call("Inject", {"text": f"{note} Once more.", "metadata": {"uri": "note"}})
        pid = client.process.pid
        anonymous, resident = anonymous_mebibytes(pid) or 0.0, client.peak_mebibytes() or 0.0
        told = time.perf_counter()
    return Visit(first, spans[20:], anonymous, resident, time.perf_counter() - told)


def remove(home: Path) -> tuple[int, float]:
    """Remove every tenth file: how many chunks went with them, and the median milliseconds of one removal."""
    chunks, spans = 0, []
    with memory(home) as client:
        client.call("Query", {"query": "anything", "top_k": 1})
        for path in sorted((home / "notes").iterdir())[::REMOVED]:
            began = time.perf_counter()
            removed = client.call("delete_document", {"document": path.name})
            spans.append((time.perf_counter() - began) * 1e3)
            chunks += removed["structuredContent"]["chunks"]
    return chunks, statistics.median(spans)


def map_documents(home: Path) -> tuple[float, float]:
    """Seconds of the first map, and the peak of MiB in memory until then."""
    with memory(home) as client:
        began = time.perf_counter()
        client.call("map_documents", {"limit": 10_000, "max_tokens": 1_000_000})
        return time.perf_counter() - began, client.peak_mebibytes() or 0.0


def own_size(home: Path, chunks: int) -> float:
    """MiB of vectors and postings without any overhead.

    Vectors of 256 float16, as the database holds them, and 8 bytes a posting (row and frequency), which are
    counted in a sample of the chunks.
    """
    from ragmemory.text.analysis import stems, terms

    with closing(sqlite3.connect(home / "data" / "memory.db")) as db:
        rows: list[Any] = db.execute(
            "SELECT title, heading, text FROM chunks JOIN documents ON number = document"
            " WHERE chunk_id % max(1, ? / ?) = 0",
            [chunks, SAMPLE],
        ).fetchall()
    postings = statistics.mean(len(set(terms(stems(" ".join(row))))) for row in rows)
    return chunks * (256 * 2 + postings * 8) / 2**20


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "notes").mkdir()
        write_folder(home / "notes", -(-CHUNKS // CHUNKS_PER_FILE), PARAGRAPHS)
        _run(home)


def _run(home: Path) -> None:
    with watched(index_of(home)) as loading:
        with memory(home) as client:
            loading.pid = client.process.pid
            client.call("Query", {"query": "anything", "top_k": 1})  # the start is not part of the load
            began = time.perf_counter()
            chunks = load(client, home / "notes")
            seconds = time.perf_counter() - began
            resident = client.peak_mebibytes() or 0.0
            told = time.perf_counter()
        ending = time.perf_counter() - told
    visits = {
        "right after the load": visit(home),
        "the next start": visit(home),
        "with two Injects": visit(home, "# A note\n\nIt was written after the load."),
        "after them": visit(home),
    }
    map_seconds, map_resident = map_documents(home)
    size, own = mebibytes(index_of(home)), own_size(home, chunks)
    removed, removal = remove(home)
    visits[f"after removing {removed:,}"] = visit(home)
    table(
        f"Loading {chunks:,} chunks over stdio",
        ["", "measured", "goal"],
        [
            ["load, s", f"{seconds:.1f}", ""],
            ["chunks/s", f"{chunks / seconds:,.0f}", "5,800 (as before)"],
            ["peak resident, MiB", f"{resident:,.0f}", "1,024"],
            ["peak anonymous, MiB", f"{loading.anonymous:,.0f}", ""],
            ["ending right after the load, s", f"{ending:.2f}", "0.5"],
            ["index, MiB", f"{size:,.0f}", ""],
            ["index, most at any time, MiB", f"{loading.index:,.0f}", ""],
            ["index / (vectors + postings)", f"{size / own:.2f} (of {own:,.0f} MiB)", "1.2"],
            ["the first map of the documents, s", f"{map_seconds:.1f}", ""],
            ["peak resident with it, MiB", f"{map_resident:,.0f}", ""],
            ["removing a document, p50 ms", f"{removal:.1f}", ""],
        ],
    )
    table(
        f"Processes on {chunks:,} chunks, {QUERIES} questions each",
        [
            "",
            "spawn to first Query, s (goal 0.5)",
            "Query p50 ms (goal 10)",
            "p99 ms",
            "anonymous MiB (goal 150)",
            "peak resident MiB",
            "ending, s (goal 0.5)",
        ],
        [
            [
                name,
                f"{one.first:.2f}",
                f"{statistics.median(one.spans):.1f}",
                f"{statistics.quantiles(one.spans, n=100)[98]:.1f}",
                f"{one.anonymous:,.0f}",
                f"{one.resident:,.0f}",
                f"{one.ending:.2f}",
            ]
            for name, one in visits.items()
        ],
    )
