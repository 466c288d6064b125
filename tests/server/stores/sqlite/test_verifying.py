"""The check of a memory's file: each kind of damage is found, named, and told what to do about."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from anyio import fail_after

from ragcommon.contract.maintenance import Verified
from ragcommon.sqlite.wal import identity
from ragmemory.errors import NotAMemory
from tests.support.memories import EMBEDDER, write_of
from tests.support.stores import store_at

PAGE = 4096


async def noted(*_: object) -> None:
    """No progress is looked at."""


async def verified(path: Path) -> Verified:
    return await store_at(path, 5, 100).engine.verify(noted)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A memory of 30 documents, with a journal that can restore one."""
    path = tmp_path / "m.db"
    store = store_at(path, 5, 100)
    await store.engine.ensure_open()
    try:
        await store.write(
            [write_of(f"text {i} " * 300, {"uri": f"u{i}"}, size=500) for i in range(30)], EMBEDDER
        )
        await store.write([write_of("another text", {"uri": "u7"})], EMBEDDER)
    finally:
        await store.engine.close()
    return path


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def overwrite(path: Path, page: int, content: bytes) -> None:
    """Pages are numbered from 1."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(content)


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def root_page(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", [table])
    return int(page)


async def test_a_whole_memory_has_no_problems_and_is_not_changed(path: Path) -> None:
    before = content_of(path)
    assert await verified(path) == Verified(True, [])
    assert content_of(path) == before


async def test_a_memory_that_is_not_there_has_no_problems_and_stays_away(tmp_path: Path) -> None:
    assert await verified(tmp_path / "m.db") == Verified(True, [])
    assert identity(tmp_path / "m.db") is None


async def test_the_database_of_another_program_is_no_damaged_memory(tmp_path: Path) -> None:
    changed(path := tmp_path / "addresses.db", "CREATE TABLE people (name TEXT)")
    with pytest.raises(NotAMemory, match="another program"):
        await verified(path)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "UPDATE chunks SET text = text || '!' WHERE document = 3",
            "The document u2 is damaged. Inject it again, or put a backup of the file in its place.",
        ),
        (
            "UPDATE chunks SET text = CAST(x'ff' AS TEXT) WHERE document = 3",
            "The document u2 is damaged. Inject it again, or put a backup of the file in its place.",
        ),
        (
            "UPDATE documents SET metadata = '{' WHERE uri = 'u4'",
            "The document u4 is damaged. Inject it again, or put a backup of the file in its place.",
        ),
        (
            "DELETE FROM embeddings WHERE chunk_id <= 2",
            "2 embeddings are missing or damaged; their passages are found only by their words."
            " `ragchat memory verify --repair` makes them again.",
        ),
        (
            "UPDATE embeddings SET vector = x'00' WHERE chunk_id = 9",
            "1 embeddings are missing or damaged; their passages are found only by their words."
            " `ragchat memory verify --repair` makes them again.",
        ),
        (
            "UPDATE journal SET before_metadata = '{' WHERE before_text IS NOT NULL",
            "Entry 31 of the journal is damaged: u7 cannot be restored from it.",
        ),
        (
            "DELETE FROM documents WHERE uri = 'u5'",  # without foreign keys, its chunks stay
            "5 rows of the table chunks refer to rows that do not exist."
            " Put a backup of the file in its place.",
        ),
    ],
)
async def test_what_is_not_as_it_was_stored_is_named_with_what_to_do(
    path: Path, statement: str, problem: str
) -> None:
    changed(path, statement)
    assert await verified(path) == Verified(False, [problem])


async def test_of_many_damaged_documents_some_are_named_and_the_rest_counted(path: Path) -> None:
    changed(path, "UPDATE chunks SET text = 'x'")
    found = (await verified(path)).problems
    assert len(found) == 21
    assert found[-1] == "10 more documents are damaged. Put a backup of the file in its place."


@pytest.mark.parametrize("content", [bytes(PAGE), b"\xff" * PAGE], ids=["zeros", "ones"])
async def test_a_damaged_page_of_any_table_is_found(path: Path, content: bytes) -> None:
    whole = content_of(path)
    for page in range(1, len(whole) // PAGE + 1):
        overwrite(path, page, content)
        assert not (await verified(path)).ok, page
        overwrite(path, page, whole[(page - 1) * PAGE : page * PAGE])


async def test_a_damaged_table_is_named_and_the_others_are_checked_all_the_same(path: Path) -> None:
    changed(path, "UPDATE documents SET metadata = '{' WHERE uri = 'u4'")
    overwrite(path, root_page(path, "embeddings"), b"\xff" * PAGE)
    found = await verified(path)
    assert any(problem.startswith("The table embeddings is damaged: ") for problem in found.problems)
    assert any(problem.startswith("The document u4 is damaged.") for problem in found.problems)


async def test_a_check_ends_also_where_rows_come_again_and_again(tmp_path: Path) -> None:
    store = store_at(path := tmp_path / "m.db", 5, 100)
    await store.write([write_of("text", {"uri": f"u{i}"}) for i in range(3)], EMBEDDER)
    await store.engine.close()
    page = root_page(path, "documents")
    header = content_of(path)[(page - 1) * PAGE :][:8]
    # Each row begins where the page is empty: it has the number 0, whichever is looked for.
    overwrite(path, page, header + b"\x01\x00" * 3)
    with fail_after(30):
        found = await verified(path)
    assert "Documents cannot be read: their order is damaged. Put a backup of the file in its place." in (
        found.problems
    )


async def test_a_damaged_index_is_named_as_what_a_repair_builds_again(path: Path) -> None:
    overwrite(path, root_page(path, "journal_undoable"), b"\x0a\0\0\0\0\x10\0\0")  # a page without entries
    [problem] = (await verified(path)).problems
    assert problem.startswith("The table journal is damaged: row ")
    assert problem.endswith(
        "missing from index journal_undoable. `ragchat memory verify --repair` builds it again."
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"no database at all " * 500),
        lambda path: path.write_bytes(path.read_bytes()[: 5 * PAGE + 100]),
        lambda path: overwrite(path, 1, b"\xff" * PAGE),
    ],
    ids=["another file", "cut off", "first page"],
)
async def test_a_file_that_cannot_even_be_opened_is_a_problem_and_no_error(
    path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    found = await verified(path)
    assert not found.ok
    assert all(problem.endswith("in its place.") for problem in found.problems)
