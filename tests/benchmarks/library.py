"""Loading folders, syncing them unchanged, and what a client waits for while a folder is loaded."""

from __future__ import annotations

import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.corpus import questions, write_folder
from tests.benchmarks.memory import environment
from tests.benchmarks.raw import RawClient
from tests.benchmarks.report import table

REPOSITORY = Path(__file__).resolve().parents[2]
# What a clone of the repository holds.
SOURCES = ("client", "server", "shared", "config", "tests", "README.md", "CHANGELOG.md", "pyproject.toml")
SYNCS = 3
FOLDERS = 100


@dataclass(frozen=True)
class Took:
    """Seconds by the clock, and of processors."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} / {self.processor:.2f}"


def ragchat(home: Path, *words: str) -> tuple[dict[str, object], Took]:
    """The JSON that a command prints, and the time that it and its server took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "ragchat", *words, "--json"],
        env=environment(home),
        capture_output=True,
        check=True,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), Took(wall, processor)


def notes(folder: Path) -> None:
    """2,000 Markdown files in one folder."""
    write_folder(folder, 2_000, 5)


def repository(folder: Path) -> None:
    """This project."""
    for name in SOURCES:
        path = REPOSITORY / name
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, folder / name)


def large_repository(folder: Path) -> None:
    """10,000 Markdown files in many folders."""
    write_folder(folder, 10_000, 2)
    for number, path in enumerate(sorted(folder.iterdir())):
        inner = folder / f"part{number % FOLDERS}"
        inner.mkdir(exist_ok=True)
        path.rename(inner / path.name)


def loaded(home: Path, library: Path) -> list[str]:
    """Load a folder, then sync it unchanged."""
    _, first = ragchat(home, "source", "add", str(library))
    syncs = [ragchat(home, "sync") for _ in range(SYNCS)]
    unchanged = statistics.median_low([took.wall for _, took in syncs])
    [again] = [took for _, took in syncs if took.wall == unchanged][:1]
    documents = syncs[0][0]["documents"]
    assert isinstance(documents, list)
    assert {one["status"] for one in documents} == {"unchanged"}
    chunks = sum(one["chunks"] for one in documents)
    return [f"{len(documents):,}", f"{chunks:,}", str(first), f"{chunks / first.wall:,.0f}", str(again)]


def waits(home: Path, library: Path) -> list[str]:
    """What `ping` and `Query` take while a folder is loaded."""
    asked = questions(1_000)
    pings: list[float] = []
    queries: list[float] = []
    command = [sys.executable, "-m", "ragmemory", "--toolsets", "memory,ingestion", "--root=*"]
    # Only older revisions have `ping`.
    with RawClient(command, environment(home), legacy=True) as client:
        client.call("Query", {"query": asked[0]})  # the model is loaded
        job = client.call("start_ingestion", {"path": str(library)})["structuredContent"]
        while job["status"] == "running":
            began = time.perf_counter()
            client.request("ping")
            middle = time.perf_counter()
            client.call("Query", {"query": asked[len(queries) % len(asked)]})
            queries.append(time.perf_counter() - middle)
            pings.append(middle - began)
            if len(queries) % 10 == 0:
                status = client.call("get_ingestion_status", {"job_id": job["job_id"]})
                job = status["structuredContent"]["job"]
    return [f"{len(pings):,}", _percentiles(pings), _percentiles(queries)]


def _percentiles(seconds: list[float]) -> str:
    cuts = statistics.quantiles(seconds, n=100)
    return f"{cuts[49] * 1e3:.1f} / {cuts[98] * 1e3:.1f}"


def run() -> None:
    rows, waited = [], []
    for make in (notes, repository, large_repository):
        name = (make.__doc__ or "").rstrip(".")
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "library"
            library.mkdir()
            make(library)
            rows.append([name, *loaded(Path(folder) / "home", library)])
            if make is not repository:
                waited.append([name, *waits(Path(folder) / "other", library)])
    table(
        "`ragchat source add FOLDER`, then `ragchat sync` without a change (seconds: clock / processors)",
        ["folder", "files", "chunks", "first load", "chunks/s", "no-change sync (goal 1)"],
        rows,
    )
    table(
        "While a folder is loaded (milliseconds: p50 / p99)",
        ["folder", "asked", "ping (goal p99 50)", "Query"],
        waited,
    )
