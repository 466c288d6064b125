"""Writes that are taken back, writes that cannot be stored, and files that are not the program's own."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio

from ragmemory.app import make_service
from ragmemory.errors import RagMemoryError
from ragmemory.service import MemoryService
from tests.faults.kills import files_below
from tests.faults.outcomes import Outcome
from tests.support.http_memory import Host, host, http_memory
from tests.support.memories import LOCAL, ORIGIN, settings_for
from tests.support.raw_memory import INDEX, MEMORY

Step = Callable[[Path], Awaitable[None]]

CLIENTS = 3
TWO_HOURS = 7_200.0


def undo(folder: Path, count: int, chance: Random) -> Outcome:
    """Sequences of writes and undos under undo depths that change; an undo takes back a write, or refuses.

    Also with one depth: as many writes as it says can be taken back, however many undos came before.
    """
    outcome = Outcome("undo, with changing depths")
    for number in range(count):
        within = folder / str(number)
        within.mkdir()
        with outcome.attempt(f"sequence {number}"):
            steady = chance.randint(1, 6) if number % 2 else None
            anyio.run(_undo_sequence, within, steady, Random(chance.random()), outcome)
    return outcome


@dataclass
class Model:
    """What memory holds, and for each write that is not taken back its number, document and text before."""

    texts: dict[str, str] = field(default_factory=dict)
    writes: list[tuple[int, str, str | None]] = field(default_factory=list)


async def _undo_sequence(folder: Path, steady: int | None, chance: Random, outcome: Outcome) -> None:
    model = Model()
    for round in range(4):
        depth = chance.choice([0, 1, 2, 5, 1_000]) if steady is None else steady
        settings = settings_for(folder, memory__path=str(folder / MEMORY), memory__undo_depth=depth)
        async with make_service(settings, LOCAL) as memory:
            for number in range(chance.randint(0, 4)):
                await _write(memory, model, chance, f"{round}.{number}")
            owed = min(depth, len(model.writes)) if steady and round == 0 else 0
            for number in range(max(owed, chance.randint(0, 5))):
                undone = await _undone(memory, model, outcome)
                if not undone and number < owed:
                    outcome.lost.append(f"undo {number + 1} of a depth of {depth} was refused")


async def _write(memory: MemoryService, model: Model, chance: Random, version: str) -> None:
    """Inject or forget some document, and note what it was before."""
    name = chance.choice(["a.txt", "b.txt"])
    before = model.texts.get(name)
    if before is not None and chance.random() < 0.1:
        await memory.writer.forget(name, ORIGIN)
        del model.texts[name]
    else:
        model.texts[name] = f"{name} in version {version}."
        await memory.writer.inject(model.texts[name], {"uri": name}, ORIGIN)
    [entry] = await memory.history.journal(1)
    model.writes.append((entry.seq, name, before))


async def _undone(memory: MemoryService, model: Model, outcome: Outcome) -> bool:
    """Undo once and return whether it was done. Whatever differs from the model is recorded as lost."""
    try:
        entry = (await memory.history.undo(ORIGIN)).entry
    except RagMemoryError:
        entry = None
    if entry is not None:
        seq, name, before = model.writes.pop()
        if entry.seq != seq:
            outcome.lost.append(f"write {entry.seq} was taken back, {seq} was the last")
        model.texts.pop(name) if before is None else model.texts.update({name: before})
    infos, _ = await memory.documents.page(100)
    there = {info.uri: (await memory.documents.read(info.uri))[1] for info in infos}
    if there != model.texts:
        what = "after an undo that was refused" if entry is None else f"after {entry.action} was undone"
        outcome.lost.append(f"{what}: {sorted(there.items())} is not {sorted(model.texts.items())}")
        model.texts = there
    return entry is not None


# Metadata that cannot be stored or sent.
BAD: list[Callable[[int], dict[str, Any]]] = [
    lambda n: {"uri": f"\0bad{n}"},
    lambda n: {"uri": f"bad{n}\0{n}"},
    lambda n: {"uri": "\0" * (1 + n % 2)},
    lambda n: {"uri": f"bad{n}", "title": "a\0b"},
    lambda n: {"uri": f"bad{n}", "tags": ["a\0b"]},
    lambda n: {"uri": f"bad{n}", "k\0": n},
    lambda n: {"uri": f"bad{n}", "number": 10**400 + n},
]


def bad_writes(folder: Path, count: int, _: Random) -> Outcome:
    """CLIENTS write over HTTP while another sends what cannot be stored: no write but those fails.

    What was accepted of those can be looked at, forgotten and undone.
    """
    outcome = Outcome("bad writes among good ones")
    with http_memory(folder, "--toolsets", "memory,documents,history,maintenance") as memory:

        def good(client: int) -> None:
            with host(memory.url) as speaker:
                for number in range(count):
                    name = f"good{client}-{number}"
                    said = _said(speaker, "Inject", text=f"Text {name}.", metadata={"uri": name})
                    outcome.count += 1
                    if said != "":
                        outcome.lost.append(f"{name}: {said}")

        def bad() -> None:
            with host(memory.url) as speaker:
                for number in range(count):
                    metadata = BAD[number % len(BAD)](number)
                    said = _said(speaker, "Inject", text=f"Bad text {number}.", metadata=metadata)
                    if said == "INTERNAL_ERROR":
                        outcome.lost.append(f"{json.dumps(metadata)[:60]}: {said}")

        with ThreadPoolExecutor(CLIENTS + 2) as together:
            writers = [together.submit(good, client) for client in range(CLIENTS)]
            writers += [together.submit(bad) for _ in range(2)]
        for writer in writers:
            writer.result()
        with host(memory.url) as speaker:
            listed = speaker.call("list_documents", limit=10_000, max_tokens=1_000_000)
            for document in listed["structuredContent"]["documents"]:
                if not document["uri"].startswith("good"):
                    _check_can_be_forgotten(speaker, document, outcome)
            if said := _said(speaker, "undo_writes"):
                outcome.lost.append(f"undo_writes: {said}")
    return outcome


def _check_can_be_forgotten(speaker: Host, document: dict[str, Any], outcome: Outcome) -> None:
    for tool in ("get_document", "delete_document"):
        if said := _said(speaker, tool, document=document["document_id"]):
            outcome.lost.append(f"{tool} of {document['uri']!r}, which was accepted: {said}")


def _said(speaker: Host, tool: str, **arguments: Any) -> str:
    """The errorCode of a call; "" for one that did not fail."""
    message = speaker.request("tools/call", {"name": tool, "arguments": arguments})
    if "error" in message:
        return str(message["error"]["data"]["errorCode"])
    result = message["result"]
    return str(result["structuredContent"]["errorCode"]) if result.get("isError") else ""


def own_files(folder: Path, count: int, chance: Random) -> Outcome:
    """Files that the user keeps beside the index, old ones too, are there after everything the program does.

    In every second run they are there before the index, which is then refused.
    """
    outcome = Outcome("the user's own files beside the index")
    for number in range(count):
        within = folder / str(number)
        within.mkdir()
        words = [*STEPS] if number == 0 else ["inject", *chance.choices([*STEPS], k=6)]
        if number % 2 == 0:
            anyio.run(_inject, within)
        kept = _keep_files(within / INDEX)
        for word in words:
            with outcome.attempt(word):
                _try(STEPS[word], within)
            gone = [
                str(path.relative_to(within)) for path, content in kept.items() if not _holds(path, content)
            ]
            if gone:
                outcome.lost.append(f"{word} removed {', '.join(gone)}")
                kept = _keep_files(within / INDEX)
    return outcome


def _try(step: Step, folder: Path) -> None:
    """A refusal is as good as an answer."""
    try:
        anyio.run(step, folder)
    except* RagMemoryError:
        pass


# Folders and files that anyone could have made there, and their contents.
OWN = {
    "myproject/src/main.py": b"print()\n",
    "1-0.backup/header.json": b"{}",
    "12-3.abcdefgh/thesis.txt": b"chapter one",
    "notes.txt": b"mine",
    "vectors.npy.bak": b"mine",
    ".hidden/key": b"secret",
}


def _keep_files(index: Path) -> dict[Path, bytes]:
    """Put OWN there, two hours old: the files and their contents."""
    kept = {index / name: content for name, content in OWN.items()}
    then = time.time() - TWO_HOURS
    for path, content in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (then, then))
    for path in kept:
        for above in path.parents[: len(path.relative_to(index).parts) - 1]:
            os.utime(above, (then, then))
    return kept


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _memory_in(folder: Path) -> MemoryService:
    return make_service(settings_for(folder, memory__path=str(folder / MEMORY)), LOCAL)


async def _inject(folder: Path) -> None:
    async with _memory_in(folder) as memory:
        await memory.writer.inject(f"A note of {time.monotonic_ns()}.", {"uri": "note"}, ORIGIN)


async def _query(folder: Path) -> None:
    async with _memory_in(folder) as memory:
        await memory.search.query("note", 3)


async def _reembed(folder: Path) -> None:
    async def unheard(*_: Any) -> None:
        pass

    async with _memory_in(folder) as memory:
        await memory.maintenance.reembed(unheard)


async def _undo(folder: Path) -> None:
    async with _memory_in(folder) as memory:
        await memory.history.undo(ORIGIN)


async def _back_up(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.copy(folder / MEMORY, folder / "backup")


async def _replace(folder: Path) -> None:
    """By the backup, or by another memory."""
    for suffix in ("", "-wal", "-shm"):
        (folder / f"{MEMORY}{suffix}").unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        shutil.copy(folder / "backup", folder / MEMORY)


async def _damage(folder: Path) -> None:
    index = folder / INDEX
    for path in files_below(index):
        if str(path.relative_to(index)) not in OWN:
            path.write_bytes(b"\xff" * 100)


# What is done with a memory, in an order that makes sense.
STEPS: dict[str, Step] = {
    "inject": _inject,
    "query": _query,
    "backup": _back_up,
    "another inject": _inject,
    "replacement by the backup": _replace,
    "query of the backup": _query,
    "damage to the index": _damage,
    "query of a damaged index": _query,
    "reembed": _reembed,
    "query after that": _query,
    "undo": _undo,
    "the last inject": _inject,
}
