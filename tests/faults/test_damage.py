"""A memory file with damaged pages: typed errors, what can be read is read, and the check says what to do."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import settings

from ragmemory.errors import MemoryDamaged, RagMemoryError
from ragmemory.service import MemoryService
from tests.support.memories import ORIGIN, service_for
from tests.support.program import program_in

PAGE = 4096
KINDS = ("zeros", "ones", "noise", "bytes", "cut off")
IS_SHORT = settings.get_current_profile_name() == "short"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a memory that holds some of everything."""
    words = random.Random(1)
    texts = [" ".join(f"w{words.randrange(900)}é" for _ in range(300)) for _ in range(25)]
    uris = [f"u{number}" for number in (*range(20), *range(5))]
    return anyio.run(written, tmp_path_factory.mktemp("whole"), [*zip(uris, texts, strict=True)])


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a memory whose document was long, and is short."""
    # Its text stays in the hidden document: it has more chunks than a transaction writes.
    long_text = "\n\n".join(f"# Part {n}\n\n" + f"word{n} " * 400 for n in range(450))
    texts = [("a", long_text), ("a", "a short text")]
    return anyio.run(written, tmp_path_factory.mktemp("updated"), texts)


async def written(folder: Path, texts: list[tuple[str, str]]) -> bytes:
    async with service_for(folder) as service:
        for uri, text in texts:
            await service.writer.inject(text, {"uri": uri, "tags": ["a"]}, ORIGIN)
    return (folder / "memory.db").read_bytes()


async def outcome(work: Awaitable[Any]) -> str:
    """ "" or the code of the error; any other exception than the memory's own comes out."""
    try:
        await work
    except RagMemoryError as error:
        return error.code
    return ""


async def used(service: MemoryService) -> list[str]:
    return [
        await outcome(service.search.query("w1 w2 w3", 8)),
        await outcome(service.documents.page(100)),
        await outcome(service.documents.read("u4")),
        await outcome(service.history.journal(50)),
        await outcome(service.maintenance.stats()),
        await outcome(service.history.undo(ORIGIN)),
        await outcome(service.writer.inject("a new text", {"uri": "new"}, ORIGIN)),
        await outcome(service.writer.inject("a new text", {"uri": "u12"}, ORIGIN)),
        await outcome(service.writer.forget("u13", ORIGIN)),
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_damaged_page_is_reported_as_damage_by_every_call(
    tmp_path: Path, whole: bytes, kind: str
) -> None:
    noise, outcomes = random.Random(2), Counter[str]()
    path = tmp_path / "memory.db"
    # In a short run, each page is damaged in one of the ways.
    pages = range(len(whole) // PAGE)
    for page in pages[KINDS.index(kind) :: len(KINDS)] if IS_SHORT else pages:
        path.write_bytes(damaged(whole, page, kind, noise))
        async with service_for(tmp_path) as service:
            outcomes.update(await used(service))
    assert outcomes["MEMORY_DAMAGED"] > 0
    assert set(outcomes) <= {"", "MEMORY_DAMAGED", "NOT_A_MEMORY", "RESOURCE_NOT_FOUND", "NOTHING_TO_UNDO"}


def damaged(whole: bytes, page: int, kind: str, noise: random.Random) -> bytes:
    content = bytearray(whole[page * PAGE : (page + 1) * PAGE])
    match kind:
        case "zeros":
            content[:] = bytes(PAGE)
        case "ones":
            content[:] = b"\xff" * PAGE
        case "noise":
            content[:] = noise.randbytes(PAGE)
        case "bytes":
            for _ in range(8):
                content[noise.randrange(PAGE)] = noise.randrange(256)
        case _:
            return whole[: page * PAGE + PAGE // 2]
    return whole[: page * PAGE] + bytes(content) + whole[(page + 1) * PAGE :]


def test_a_damaged_page_is_one_sentence_with_its_place_and_what_to_do(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    text = "The garden gate is green. " * 2000
    (ragchat.folder / "gate.md").write_text(text, encoding="utf-8")
    assert ragchat("inject", ".").code == 0
    path = ragchat.home / "data" / "memory.db"
    with closing(sqlite3.connect(path)) as memory:
        [(page,)] = memory.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'chunks'")
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(bytes(PAGE))
    told = ragchat("memory", "show", "gate.md", "--json")
    assert (told.code, told.json["error"]["code"]) == (1, "MEMORY_DAMAGED")
    assert told.json["error"]["message"] == (
        f"The memory {path} is damaged at the table chunks: database disk image is malformed."
    )
    assert told.json["error"]["hint"].startswith("`ragchat memory verify`")
    assert ragchat("memory", "ls", "--json").json["total"] == 1
    checked = ragchat("memory", "verify")
    assert checked.code == 1
    assert checked.out.startswith("The table chunks is damaged: ")


@pytest.mark.smoke
async def test_the_check_names_what_is_damaged_and_its_advice_mends_it(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as memory, memory:
        memory.execute("UPDATE chunks SET text = 'x' WHERE document = 8")
        memory.execute("DELETE FROM embeddings WHERE chunk_id = 30")
    async with service_for(tmp_path) as service:
        assert (await service.search.query("w1 w2 w3", 8)).hits
        [document, embeddings] = (await service.maintenance.verify(noted)).problems
        assert document.startswith("The document u7 is damaged. Inject it again")
        assert "`ragchat memory verify --repair`" in embeddings
        await service.writer.inject("a new text", {"uri": "u7"}, ORIGIN)
        # The words of the damaged text are still in the full text.
        assert (await service.maintenance.repair(noted)).ok


async def test_a_length_larger_than_the_computers_memory_is_reported_as_damage(
    tmp_path: Path, whole: bytes
) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(whole)
    path.write_bytes(with_endless_vector(whole, path))
    async with service_for(tmp_path) as service:
        assert (
            (await service.maintenance.verify(noted))
            .problems[0]
            .startswith("The table embeddings is damaged: ")
        )
        # The damaged vectors are not read: new ones take their place.
        assert await outcome(service.maintenance.reembed(noted)) == ""
        assert set(await used(service)) <= {"", "MEMORY_DAMAGED"}


# Damage to the journal's entry of an update, and to the hidden document that holds the text before it.
ENTRY_DAMAGES = {
    "no metadata": "UPDATE journal SET before_metadata = NULL WHERE seq = 2",
    "metadata that are no object": "UPDATE journal SET before_metadata = '[1]' WHERE seq = 2",
    "another uri": """UPDATE journal SET before_metadata = '{"uri":"other"}' WHERE seq = 2""",
    "a text that is not UTF-8": "UPDATE journal SET before_text = CAST(x'ff' AS TEXT) WHERE seq = 2",
    "no hidden document": "UPDATE journal SET before_document = 99 WHERE seq = 2",
    "a visible document": "UPDATE journal SET before_document ="
    " (SELECT number FROM documents WHERE hidden = 0) WHERE seq = 2",
    "a missing chunk": "DELETE FROM chunks WHERE chunk_id ="
    " (SELECT min(chunk_id) FROM chunks JOIN documents ON number = document WHERE hidden <> 0)",
}


@pytest.mark.parametrize("change", ENTRY_DAMAGES.values(), ids=ENTRY_DAMAGES.keys())
async def test_an_undo_from_a_damaged_entry_changes_nothing_and_the_check_names_the_entry(
    tmp_path: Path, updated: bytes, change: str
) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(updated)
    with closing(sqlite3.connect(path)) as memory, memory:
        memory.execute(change)
    async with service_for(tmp_path) as service:
        assert await outcome(service.history.undo(ORIGIN)) == "MEMORY_DAMAGED"
        assert (await service.documents.read("a"))[1] == "a short text"
        assert (
            "Entry 2 of the journal is damaged: a cannot be restored from it."
            in (await service.maintenance.verify(noted)).problems
        )


async def test_a_read_that_fails_does_not_hide_later_writes_from_other_reads(tmp_path: Path) -> None:
    async with service_for(tmp_path) as service:
        await service.writer.inject("a text", {"uri": "a"}, ORIGIN)
        with closing(sqlite3.connect(tmp_path / "memory.db")) as memory, memory:
            memory.execute("UPDATE journal SET client = CAST(x'ff' AS TEXT)")
        with pytest.raises(MemoryDamaged) as kept:  # its traceback refers to the statement
            await service.history.journal(10)
        await service.writer.inject("a text", {"uri": "b"}, ORIGIN)
        assert (await service.maintenance.stats()).documents == 2
        assert (await service.maintenance.reembed(noted)).chunks == 2
        assert kept.value.code == "MEMORY_DAMAGED"


def with_endless_vector(whole: bytes, path: Path) -> bytes:
    """The last page of the embeddings' table, its first row with the length 0xFFFFFFFF."""
    with closing(sqlite3.connect(path)) as memory:
        [(page,)] = memory.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'embeddings'")
    content = bytearray(whole)
    # https://www.sqlite.org/fileformat2.html#b_tree_pages: type 5 is an interior page, the number of its
    # last child is at 8; in a leaf the place of the first row is there.
    while content[start := (page - 1) * PAGE] == 5:
        page = int.from_bytes(content[start + 8 : start + 12], "big")
    row = start + int.from_bytes(content[start + 8 : start + 10], "big")
    content[row : row + 9] = b"\xff" * 9
    return bytes(content)


async def noted(*_: object) -> None:
    """No progress is looked at."""
