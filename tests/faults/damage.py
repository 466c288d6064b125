"""Files damaged on the disk: the index, which can be rebuilt, and the memory, which cannot."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.outcomes import Outcome
from tests.support.raw_memory import INDEX, LOG, MEMORY, RawMemory, Refused, raw_memory

DOCUMENTS = 60
SECTIONS = 12
PAGE = 4_096
QUESTIONS = [f"what does part {number} of report d{number * 5} tell" for number in range(SECTIONS)]

# Changes of a damaged memory: they are made, or refused for the damage.
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("Inject", {"text": "Something new.", "metadata": {"uri": "new"}}),
    ("Inject", {"text": "Another text.", "metadata": {"uri": "d1"}}),
    ("delete_document", {"document": "d2"}),
    ("undo_writes", {}),
    ("reembed_memory", {}),
]

Damage = Callable[[bytes, Random], bytes]


def flipped(content: bytes, chance: Random) -> bytes:
    """Eight bytes changed, anywhere."""
    changed = bytearray(content)
    for _ in range(8):
        changed[chance.randrange(len(changed))] ^= chance.randint(1, 255)
    return bytes(changed)


def zeroed(content: bytes, chance: Random) -> bytes:
    """One page of zeros."""
    start = chance.randrange(max(1, len(content) // PAGE)) * PAGE
    end = min(len(content), start + PAGE)
    return content[:start] + bytes(end - start) + content[end:]


def overwritten(content: bytes, chance: Random) -> bytes:
    """64 bytes of 0xFF, anywhere."""
    start = chance.randrange(max(1, len(content) - 64))
    return content[:start] + b"\xff" * min(64, len(content) - start) + content[start + 64 :]


def truncated(content: bytes, chance: Random) -> bytes:
    """The end is missing."""
    return content[: chance.randrange(len(content))]


def header_lost(content: bytes, chance: Random) -> bytes:
    """The beginning of one page overwritten, where SQLite keeps what is in it."""
    start = chance.randrange(len(content) // PAGE) * PAGE
    return content[:start] + chance.randbytes(64) + content[start + 64 :]


INDEX_DAMAGES: list[Damage] = [flipped, zeroed, overwritten, truncated]
DATABASE_DAMAGES: list[Damage] = [header_lost, zeroed, overwritten]


def fill(folder: Path) -> list[list[tuple[str, int]]]:
    """A memory of DOCUMENTS with SECTIONS chunks each, and its index; nothing runs afterwards.

    Returns what is found for each question.
    """
    with raw_memory(folder) as memory:
        for number in range(DOCUMENTS):
            sections = [
                f"# Part {part}\n\nPart {part} of report d{number} tells of {number * part}.\n"
                for part in range(SECTIONS)
            ]
            text = "\n".join(sections)
            memory.send(f"d{number}", "Inject", {"text": text, "metadata": {"uri": f"d{number}"}})
        assert len(memory.results(DOCUMENTS)) == DOCUMENTS
        memory.end()
    with raw_memory(folder) as memory:  # saves the rest of the index
        found = answers(memory)
        memory.end()
    return found


def answers(memory: RawMemory) -> list[list[tuple[str, int]]]:
    """What is found for each question."""
    found = [memory.call("Query", query=question, top_k=5)["hits"] for question in QUESTIONS]
    return [[(hit["uri"], hit["start_line"]) for hit in hits] for hits in found]


def index_files(folder: Path, count: int, chance: Random) -> Outcome:
    """Damage one file of the index: the answers are right all the same, from the first on."""
    outcome = Outcome("damaged index files")
    right = fill(folder)
    sound = folder / "sound"
    shutil.copytree(folder / INDEX, sound)
    # What marks the folder, and the lock, hold nothing that is searched.
    paths = sorted(path.relative_to(sound) for path in sound.rglob("*") if path.suffix in {".index", ".json"})
    cases = [(path, damage) for path in paths for damage in INDEX_DAMAGES if (sound / path).stat().st_size]
    for path, damage in chance.sample(cases * (count // len(cases) + 1), count):
        content = (sound / path).read_bytes()
        harmed = damage(content, chance)
        if harmed == content:
            continue
        shutil.rmtree(folder / INDEX)
        shutil.copytree(sound, folder / INDEX)
        (folder / LOG).write_bytes(b"")
        (folder / INDEX / path).write_bytes(harmed)
        what = f"{path.name} {damage.__name__}"
        with outcome.attempt(what), raw_memory(folder) as memory:
            wrong = sum(one != other for one, other in zip(answers(memory), right, strict=True))
            is_told = "damaged" in (folder / LOG).read_text(encoding="utf-8")
            if wrong:
                said = "the log says so" if is_told else "the log says nothing"
                outcome.lost.append(f"{what}: {wrong} of {len(right)} answers are wrong, {said}")
            memory.end()
    return outcome


def database_pages(folder: Path, count: int, chance: Random) -> Outcome:
    """Damage one page of the memory: an answer is right, or an error says that the file is damaged."""
    outcome = Outcome("damaged database pages")
    fill(folder)
    with raw_memory(folder) as memory:
        right = looked_at(memory)
        memory.end()
    sound = folder / "sound"
    sound.mkdir()
    shutil.copy(folder / MEMORY, sound)
    shutil.copytree(folder / INDEX, sound / INDEX)
    for number in range(count):
        damage = DATABASE_DAMAGES[number % len(DATABASE_DAMAGES)]
        for path in folder.glob(f"{MEMORY}-*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if chance.random() < 0.5:  # else the index is made again, of all that is in the file
            shutil.copytree(sound / INDEX, folder / INDEX)
        (folder / MEMORY).write_bytes(damage((sound / MEMORY).read_bytes(), chance))
        what = f"page {damage.__name__} {number}"
        # SQLite has no checksums: it detects a broken structure, not changed content.
        is_visible = damage is not overwritten and not is_sound(folder / MEMORY)
        with outcome.attempt(what), raw_memory(folder) as memory:
            wrong = [
                f"{name}: {answer if isinstance(answer, Refused) else 'wrong without a word'}"
                for name, answer in looked_at(memory).items()
                if not is_fair(answer, right[name], is_visible)
            ]
            if wrong:
                outcome.lost.append(f"{what}: {len(wrong)} of {len(right)} looks, first {wrong[0]}")
            for tool, arguments in WRITES:
                try:
                    memory.call(tool, **arguments)
                except Refused as error:
                    if not is_told(error):
                        outcome.lost.append(f"{what}: {tool} is refused with {error}")
            memory.end()
    return outcome


def looked_at(memory: RawMemory) -> dict[str, Any]:
    """What each way to look at a memory brings: an answer or a Refused."""
    looks: dict[str, tuple[str, dict[str, Any]]] = {
        "list_documents": ("list_documents", {"limit": 1_000, "max_tokens": 1_000_000}),
        "list_journal": ("list_journal", {"limit": 1_000, "max_tokens": 1_000_000}),
        **{f"get_document {n}": ("get_document", {"document": f"d{n}"}) for n in range(DOCUMENTS)},
        **{f"Query {question}": ("Query", {"query": question, "top_k": 5}) for question in QUESTIONS},
        'Query "phrase"': ("Query", {"query": '"part 3 of report d30 tells"', "top_k": 5}),
        "Query with filter": ("Query", {"query": QUESTIONS[0], "filter": {"uri": "d1*"}}),
    }
    found: dict[str, Any] = {}
    for name, (tool, arguments) in looks.items():
        try:
            found[name] = memory.call(tool, **arguments)
        except Refused as error:
            found[name] = error
    return found


def is_told(error: Refused) -> bool:
    """Whether an error says that the file is damaged, or so much so that it is no database."""
    return error.code == "NOT_A_MEMORY" or "damaged" in str(error)


def is_fair(answer: Any, right: Any, is_visible: bool) -> bool:
    """Whether an answer is right or reports the damage; `is_visible`: SQLite can see the damage."""
    if isinstance(answer, Refused):
        return is_told(answer)
    # A Query that leaves out what it cannot read says so.
    return bool(answer == right) or not is_visible or "damaged" in answer.get("notice", "")


def is_sound(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with a file."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    except sqlite3.DatabaseError:
        return False
