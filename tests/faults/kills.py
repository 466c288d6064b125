"""Processes that are killed while they write, while they end, and beside others that write."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Lock

from ragmemory.search.index.folder import MANIFEST
from tests.faults.outcomes import Outcome
from tests.support.raw_memory import INDEX, MEMORY, RawMemory, check_integrity, raw_memory, text_of

# Writes of a process until it is killed, or not.
BATCH = 20
PROCESSES = 3
# Chunks in memory before processes are killed while they close it: saving its index must take a moment.
CHUNKS = 4_000


def kills(folder: Path, count: int, chance: Random) -> Outcome:
    """Each process writes BATCH documents and is killed after one of its answers, or before the first.

    The next one must find all that was acknowledged.
    """
    outcome = Outcome("kills while writing")
    acknowledged: list[str] = []
    recent: list[str] = []
    for number in range(count):
        with outcome.attempt(f"kill {number}"), raw_memory(folder) as memory:
            check_found(memory, recent + chance.sample(acknowledged, min(3, len(acknowledged))), outcome)
            recent = write_until_killed(memory, [f"k{number}n{n}" for n in range(BATCH)], chance)
            acknowledged += recent
    check_all(folder, acknowledged, outcome)
    return outcome


def write_until_killed(memory: RawMemory, names: list[str], chance: Random) -> list[str]:
    """Write all, kill the process after some answer, and return the names that it acknowledged."""
    for name in names:
        memory.inject(name)
    most = chance.randint(0, len(names))
    acknowledged: list[str] = []
    if not most:
        memory.kill()
    for answer in memory.answers():
        if "result" in answer:
            acknowledged.append(answer["id"])
        if len(acknowledged) == most:
            memory.kill()  # what it had sent before is read to the end
    return acknowledged


def several_writers(folder: Path, count: int, chance: Random) -> Outcome:
    """PROCESSES write to one file side by side, `count` batches each; some of the batches end with a kill."""
    outcome = Outcome("several writers, with kills")
    acknowledged: list[str] = []
    together = Lock()

    def write(writer: int, chance: Random) -> None:
        for number in range(count):
            names = [f"w{writer}b{number}n{n}" for n in range(BATCH)]
            with outcome.attempt(f"batch {number} of writer {writer}"), raw_memory(folder) as memory:
                if (writer + number) % 2:
                    stored = write_until_killed(memory, names, chance)
                else:
                    stored = write_and_end(memory, names)
                with together:
                    acknowledged.extend(stored)

    with ThreadPoolExecutor(PROCESSES) as processes:
        writers = [processes.submit(write, n, Random(chance.random())) for n in range(PROCESSES)]
    for writer in writers:
        writer.result()
    check_all(folder, acknowledged, outcome)
    return outcome


def write_and_end(memory: RawMemory, names: list[str]) -> list[str]:
    """Write all, wait for all answers, and end the process as a host does."""
    for name in names:
        memory.inject(name)
    acknowledged = memory.results(len(names))
    memory.end()
    return acknowledged


def kills_while_closing(folder: Path, count: int, chance: Random) -> Outcome:
    """Each process writes one document, gets SIGTERM, and is killed once it has begun to save its index.

    Afterwards there may be one partial segment: no more than twice what a clean index takes.
    """
    outcome = Outcome("kills while closing")
    acknowledged: list[str] = []
    with raw_memory(folder) as memory:
        sections = (f"# Part {n}\n\nPart {n} tells of {chance.getrandbits(64)}.\n" for n in range(CHUNKS))
        memory.call("Inject", text="\n".join(sections), metadata={"uri": "base"})
        memory.end()
    for number in range(count):
        with outcome.attempt(f"kill {number}"), raw_memory(folder) as memory:
            name = f"c{number}"
            memory.call("Inject", text=text_of(name), metadata={"uri": name})
            acknowledged.append(name)
            kill_while_saving(memory, folder / INDEX, chance)
    left = size_of(folder / INDEX)
    clean = size_of_a_clean_index(folder)
    if left > 2 * clean:
        outcome.lost.append(f"the index takes {left:,} bytes, a clean one {clean:,}")
    check_all(folder, acknowledged, outcome)
    return outcome


def kill_while_saving(memory: RawMemory, index: Path, chance: Random) -> None:
    """Tell it to end; kill it a moment after it began to change its index, if it still runs."""
    before = state_of(index)
    memory.process.send_signal(signal.SIGTERM)
    while memory.process.poll() is None and state_of(index) == before:
        os.sched_yield()
    try:
        memory.process.wait(chance.choice([0, 0, 0.001, 0.005, 0.03]))
    except subprocess.TimeoutExpired:
        memory.kill()


def state_of(folder: Path) -> set[tuple[str, int]]:
    """The files below a folder and their sizes; one that vanishes meanwhile is left out."""
    state = set()
    for path in files_below(folder):
        with suppress(FileNotFoundError):
            state.add((path.name, path.stat().st_size))
    return state


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in files_below(folder))


def files_below(folder: Path) -> list[Path]:
    """Those that are there now: a process may be writing and removing some."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def size_of_a_clean_index(folder: Path) -> int:
    """Bytes of the index that a copy of the memory has after one start, query and end.

    It is saved a moment after the query: at the end there is time for little.
    """
    copy = folder / "copy"
    copy.mkdir()
    for path in folder.glob(f"{MEMORY}*"):
        if path.is_file():
            shutil.copy(path, copy)
    with raw_memory(copy) as memory:
        memory.call("Query", query="report")
        while not (copy / INDEX / MANIFEST).exists():
            memory.call("get_memory_stats")
        memory.end()
    return size_of(copy / INDEX)


def check_found(memory: RawMemory, names: list[str], outcome: Outcome) -> None:
    outcome.lost += [f"{name} was acknowledged and is not found" for name in names if not memory.finds(name)]


def check_all(folder: Path, acknowledged: list[str], outcome: Outcome) -> None:
    """Whether everything that was acknowledged is there and found, and the file sound."""
    with outcome.attempt("the end"), raw_memory(folder) as memory:
        there: set[str] = set()
        cursor: str | None = ""
        while cursor is not None:
            page = memory.call("list_documents", max_tokens=1_000_000, cursor=cursor)
            there |= {document["uri"] for document in page["documents"]}
            cursor = page.get("next_cursor")
        outcome.lost += [f"{name} was acknowledged and is gone" for name in acknowledged if name not in there]
        step = max(1, len(acknowledged) // 500)
        check_found(memory, [name for name in acknowledged[::step] if name in there], outcome)
        memory.end()
    outcome.count -= 1  # looking is no attempt
    try:
        check_integrity(folder)
    except AssertionError as error:
        outcome.lost.append(f"the file is damaged: {error}")
