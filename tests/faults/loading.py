"""Servers that are killed while they load and sync a folder, beside one that never is."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.outcomes import Outcome
from tests.support.raw_memory import MEMORY, RawMemory, check_integrity, raw_memory

# Files that are added before a sync, at most; as many are changed and removed.
MOST_CHANGES = 15
# Paragraphs of a text that is stored in several transactions.
LONG = 2_500
WORDS = (
    "tea",
    "boat",
    "lamp",
    "hill",
    "stone",
    "river",
    "bread",
    "clock",
    "wolf",
    "paper",
    "green",
    "copper",
)
# Codes of present and former texts that are searched for after each sync.
MOST_CODES = 40
SPEAKERS = ("Anna", "Ben")


def kills_while_loading(folder: Path, count: int, chance: Random) -> Outcome:
    """Each sync of a changing folder is killed at a random moment, its resumption sometimes as well.

    Once the next process has finished the job, documents, chunks, hits and sources are those of a memory
    whose process is never killed.
    """
    outcome = Outcome("kills while loading and syncing")
    library, killed, steady = folder / "library", folder / "killed", folder / "steady"
    for path in (library, killed, steady):
        path.mkdir()
    with raw_memory(steady) as undisturbed:
        undisturbed.call("add_sources", paths=[str(library)])
        with raw_memory(killed) as memory:
            memory.call("add_sources", paths=[str(library)])
            memory.end()
        codes: list[str] = []
        for number in range(count):
            with outcome.attempt(f"kill {number}"):
                changed = _change(library, number, codes, chance)
                within = [str(path) for path in changed] if chance.random() < 0.3 else []
                began = time.perf_counter()
                _finish(undisturbed, within)
                took = time.perf_counter() - began
                _sync_with_kills(killed, within, took, chance)
                with raw_memory(killed) as memory:
                    _finish(memory, within)
                    asked = chance.sample(codes, min(len(codes), MOST_CODES))
                    outcome.lost += _differences(_state(memory, asked), _state(undisturbed, asked))
                    memory.end()
    try:
        check_integrity(killed)
    except AssertionError as error:
        outcome.lost.append(f"the file is damaged: {error}")
    return outcome


def _sync_with_kills(folder: Path, within: list[str], seconds: float, chance: Random) -> None:
    """Begin a sync that takes about so many seconds, and kill its process; then perhaps the next one."""
    with raw_memory(folder) as memory:
        memory.call("sync_sources", within=within)
        _kill_within(memory, seconds, chance)
    while chance.random() < 0.3:
        _silence(folder)
        with raw_memory(folder) as memory:
            memory.call("get_memory_stats")  # it opens the file, and finds the job
            _kill_within(memory, 1 + seconds, chance)
    _silence(folder)


def _kill_within(memory: RawMemory, seconds: float, chance: Random) -> None:
    try:
        memory.process.wait(chance.uniform(0, seconds))
    except subprocess.TimeoutExpired:
        memory.kill()


def _silence(folder: Path) -> None:
    """As if the killed process had been silent for so long that another one takes over its jobs."""
    with closing(sqlite3.connect(folder / MEMORY)) as connection, connection:
        connection.execute("UPDATE ingestions SET beat = 0")


def _finish(memory: RawMemory, within: list[str]) -> None:
    """Sync to the end; if the same sync runs already, that is awaited."""
    job = memory.call("sync_sources", within=within)
    while job["status"] == "running":
        job = memory.call("get_ingestion_status", job_id=job["job_id"], wait_seconds=10)["job"]
    if job["status"] != "completed" or job["failed"]:
        raise AssertionError(f"the sync {job['status']}: {job.get('error') or job['failures']}")


def _change(library: Path, number: int, codes: list[str], chance: Random) -> list[Path]:
    """Add, change and remove files of several formats, each with a new code; return their paths."""
    there = sorted(library.iterdir())
    chosen = chance.sample(there, min(len(there), chance.randint(0, MOST_CHANGES)))
    removed = chosen[: len(chosen) // 2] if len(there) > MOST_CHANGES else []
    for path in removed:
        path.unlink()
    changed = [path for path in chosen if path not in removed]
    added = [library / f"{number}-{n}.{chance.choice(KINDS)}" for n in range(chance.randint(1, MOST_CHANGES))]
    for path in [*changed, *added]:
        codes.append(f"X{len(codes)}Y{chance.getrandbits(32)}")
        path.write_text(_text(path.suffix, codes[-1], chance), encoding="utf-8")
    return [*removed, *changed, *added]


KINDS = ("md", "md", "md", "txt", "csv", "html", "rst")


def _text(suffix: str, code: str, chance: Random) -> str:
    paragraphs = LONG if chance.random() < 0.03 else chance.randint(1, 12)
    said = [" ".join(chance.choices(WORDS, k=12)).capitalize() + "." for _ in range(paragraphs)]
    said.insert(chance.randint(0, paragraphs), f"The code is {code}.")
    match suffix:
        case ".csv":
            return "what,how many\n" + "".join(f"{line},{n}\n" for n, line in enumerate(said))
        case ".html":
            return "<h1>Page</h1>" + "".join(f"<p>{line}</p>" for line in said)
        case ".txt":
            return "".join(f"[2026-05-03 10:42] {SPEAKERS[n % 2]}: {line}\n" for n, line in enumerate(said))
    return f"# {said[0]}\n\n" + "\n\n".join(said) + "\n"


def _state(memory: RawMemory, codes: list[str]) -> dict[str, Any]:
    """What a client sees: the documents and their texts, chunks, hits, and the state of the sources."""
    documents = memory.call("list_documents", limit=10_000)["documents"]
    [source] = memory.call("list_sources")["sources"]
    state: dict[str, Any] = {
        "source": (source["documents"], source["outcome"]["status"], source["outcome"]["error"]),
        "chunks": memory.call("get_memory_stats")["chunks"],
    }
    for document in documents:
        text = memory.call("get_document", document=document["document_id"])["text"]
        state[document["uri"]] = (document["title"], document["chunks"], text)
    for code in codes:
        hits = memory.call("Query", query=code)["hits"]
        state[code] = [
            (hit["uri"], hit["start_line"], hit["end_line"]) for hit in hits if code in hit["text"]
        ]
    return state


def _differences(state: dict[str, Any], expected: dict[str, Any]) -> Iterable[str]:
    for key in sorted(state.keys() | expected.keys()):
        if state.get(key) != expected.get(key):
            yield f"{key}: {str(state.get(key))[:300]} is not {str(expected.get(key))[:300]}"
