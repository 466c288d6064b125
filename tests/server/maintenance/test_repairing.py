"""Repair of real damage: what follows from the texts is rebuilt, the rest named and left alone.

Covers `ragmemory.stores.repairing`.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from ragmemory.service import MemoryService
from tests.support.memories import ORIGIN, SwitchableEmbedder, service_for
from tests.support.stores import sql

COUNT = 30


async def ignore(*_: object) -> None:
    """Reports no progress."""


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    with anyio.fail_after(60):
        async with service_for(tmp_path) as memory:
            for number in range(COUNT):
                await memory.writer.inject(
                    f"Report {number}: the kettle boils.", {"uri": f"u{number}"}, ORIGIN
                )
            await memory.search.query("kettle", 3)
        yield tmp_path


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "memory.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def rows(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT chunk_id, vector FROM embeddings ORDER BY chunk_id").fetchall()


async def hits(memory: MemoryService, query: str) -> list[tuple[str, float]]:
    return sorted((hit.uri, round(hit.score, 4)) for hit in (await memory.search.query(query, 100)).hits)


DAMAGES = {
    "full text lost": ["INSERT INTO fulltext(fulltext) VALUES('delete-all')"],
    "full text broken": ["UPDATE fulltext_data SET block = x'00' WHERE id > 10"],
    "vectors missing": ["DELETE FROM embeddings WHERE chunk_id < 5"],
    "vector cut off": ["UPDATE embeddings SET vector = x'00' WHERE chunk_id = 7"],
    "vector overwritten": ["UPDATE embeddings SET vector = randomblob(512) WHERE chunk_id = 9"],
    "vectors of nothing": ["INSERT INTO embeddings(chunk_id, vector) VALUES(9999, zeroblob(512))"],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_what_follows_from_the_texts_is_repaired_after_a_copy(folder: Path, damage: list[str]) -> None:
    async with service_for(folder) as memory:
        right = await hits(memory, '"report 7"'), await hits(memory, "a boiling pot")
    change(folder, *damage)
    damaged = rows(folder / "memory.db")
    async with service_for(folder) as memory:
        assert not (await memory.maintenance.verify(ignore)).ok
        done = await memory.maintenance.repair(ignore)
        assert done.ok, done.problems
        assert done.problems == []
        assert done.repaired
        assert done.backup.startswith(f"{folder}/memory.db.")
        assert (await memory.maintenance.verify(ignore)).ok
        assert rows(Path(done.backup)) == damaged
        assert (await hits(memory, '"report 7"'), await hits(memory, "a boiling pot")) == right


@pytest.mark.usefixtures("_engine")
@pytest.mark.parametrize("_engine", [pytest.param("postgres", marks=pytest.mark.full)], indirect=True)
async def test_a_memory_in_a_database_is_repaired_without_a_copy(folder: Path) -> None:
    path = folder / "memory.db"
    async with service_for(folder) as memory:
        right = await hits(memory, '"report 7"'), await hits(memory, "a boiling pot")
    sql(path, "DELETE FROM fulltext WHERE rowid > 5")
    sql(path, "DELETE FROM embeddings WHERE chunk_id < 5")
    sql(path, "UPDATE embeddings SET vector = ? WHERE chunk_id = 7", b"\0")
    async with service_for(folder) as memory:
        assert len((await memory.maintenance.verify(ignore)).problems) == 2
        done = await memory.maintenance.repair(ignore)
        assert (done.ok, done.problems, len(done.repaired), done.backup) == (True, [], 2, "")
        assert (await hits(memory, '"report 7"'), await hits(memory, "a boiling pot")) == right


async def test_a_damaged_text_is_named_and_left_alone(folder: Path) -> None:
    change(
        folder,
        "UPDATE chunks SET text = text || '!' WHERE chunk_id = 3",
        "DELETE FROM embeddings WHERE chunk_id = 5",
    )
    async with service_for(folder) as memory:
        done = await memory.maintenance.repair(ignore)
        assert not done.ok
        assert [problem.startswith("The document u2 is damaged.") for problem in done.problems] == [True]
        [repaired] = done.repaired
        assert repaired.startswith("1 embeddings are missing")
        assert (await memory.documents.read("u2"))[1].endswith("!")


async def test_a_repair_of_what_cannot_be_opened_names_the_damage_and_what_to_do(folder: Path) -> None:
    change(
        folder,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET name = CAST(x'ba' AS TEXT), sql = 'no' WHERE name = 'chunks'",
    )
    before = (folder / "memory.db").read_bytes()
    async with service_for(folder) as memory:
        verified = await memory.maintenance.verify(ignore)
        done = await memory.maintenance.repair(ignore)
    assert verified.problems == [
        f"{folder}/memory.db cannot be opened: the description of its tables is damaged. Nothing can be read "
        "or repaired in it. Move it away and load the documents again, or put a backup of the file in its "
        "place."
    ]
    assert (done.ok, done.problems, done.backup) == (False, verified.problems, "")
    assert (folder / "memory.db").read_bytes() == before


async def test_a_sound_memory_is_not_changed_or_copied(folder: Path) -> None:
    async with service_for(folder) as memory:
        done = await memory.maintenance.repair(ignore)
    assert (done.ok, done.repaired, done.backup) == (True, [], "")


async def test_vectors_of_another_embedder_are_not_repaired_with_this_one(folder: Path) -> None:
    change(folder, "DELETE FROM embeddings WHERE chunk_id = 5")
    async with service_for(folder, SwitchableEmbedder("another")) as memory:
        done = await memory.maintenance.repair(ignore)
    assert not done.ok
    assert any("`ragchat memory reembed`" in problem for problem in done.problems)


async def test_a_lost_index_is_built_again(folder: Path) -> None:
    async with service_for(folder) as memory:
        right = await hits(memory, "a boiling pot")
    shutil.rmtree(folder / "memory.db-index")
    async with service_for(folder) as memory:
        assert await hits(memory, "a boiling pot") == right
