"""Nothing is embedded twice: a real endpoint counts the texts that it is sent.

Covers `ragmemory.stores.reuse`.
"""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiosqlite
import anyio
import pytest

from ragmemory.app import make_service
from ragmemory.service import MemoryService
from ragmemory.stores import reuse
from ragmemory.stores.sqlite.connection import SqliteConnection
from ragmemory.types.writes import Embedding
from tests.support.embeddings_server import EmbeddingsServer, embeddings_server
from tests.support.memories import ORIGIN, SwitchableEmbedder, place_of, service_for, settings_for
from tests.support.stores import BOTH_ENGINES, sql

pytestmark = BOTH_ENGINES


def parts(count: int) -> list[str]:
    return [f"# Part {number}\n\nSentence {number} stands here alone.\n\n" for number in range(count)]


PARTS = parts(20)
# More chunks than are removed in one transaction.
LONG = parts(1_200)


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as server:
        yield server


def memory_in(folder: Path, server: EmbeddingsServer) -> MemoryService:
    settings = settings_for(
        folder,
        memory__path=place_of(folder / "memory.db"),
        memory__roots=["*"],
        embedder__kind="openai",
        embedder__model="small",
        embedder__base_url=server.url,
    )
    return make_service(settings)


@pytest.fixture
async def memory(tmp_path: Path, server: EmbeddingsServer) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with memory_in(tmp_path, server) as memory:
            yield memory


def sent(server: EmbeddingsServer) -> list[str]:
    """The texts that were sent since the last call."""
    texts = [text for request in server.requests for text in request["input"]]
    server.requests.clear()
    return texts


async def put(memory: MemoryService, parts: Sequence[str], uri: str = "notes.md") -> None:
    await memory.writer.inject("".join(parts), {"uri": uri, "title": "Notes"}, ORIGIN)


async def sync(memory: MemoryService, folder: Path) -> None:
    """Load a folder; remove the documents of files that are gone."""
    jobs = memory.ingestions
    job = await jobs.start([str(folder)], prune=True, origin=ORIGIN)
    while job.status == "running":
        job, _ = await jobs.status(job.job_id, wait_seconds=10)
    assert job.status == "completed"


@pytest.mark.parametrize("parts", [PARTS, LONG], ids=["short", "long"])
async def test_an_edit_sends_only_the_changed_chunk(
    memory: MemoryService, server: EmbeddingsServer, parts: list[str]
) -> None:
    await put(memory, parts)
    assert len(sent(server)) == len(parts)
    await put(memory, [*parts[:7], "# Part 7\n\nIt says something else.\n\n", *parts[8:]])
    [text] = sent(server)
    assert "something else" in text
    assert {hit.heading for hit in (await memory.search.query("Sentence", 100)).hits} > {"Part 6", "Part 8"}


async def test_a_text_that_occurs_twice_is_sent_once(memory: MemoryService, server: EmbeddingsServer) -> None:
    await put(memory, PARTS[:1] * 3)
    assert len(sent(server)) == 1


@pytest.mark.parametrize("parts", [PARTS, LONG], ids=["short", "long"])
async def test_undo_restore_and_a_copy_send_nothing(
    memory: MemoryService, server: EmbeddingsServer, parts: list[str]
) -> None:
    await put(memory, parts)
    await put(memory, PARTS[:1])
    sent(server)
    await memory.history.restore("notes.md", 1, ORIGIN)
    await memory.history.undo(ORIGIN)
    await memory.history.undo(ORIGIN)
    await memory.writer.forget("notes.md", ORIGIN)
    await memory.history.undo(ORIGIN)
    await put(memory, parts, "copy.md")
    assert sent(server) == []
    assert (await memory.documents.read("copy.md"))[0].chunks == len(parts)


async def test_a_branch_switch_and_back_and_a_rename_send_nothing_twice(
    memory: MemoryService, server: EmbeddingsServer, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()

    def git(*arguments: str) -> None:
        settings = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org")
        subprocess.run(["git", *settings, *arguments], cwd=repository, check=True, capture_output=True)

    git("init", "-b", "main")
    for number in range(10):
        (repository / f"{number}.md").write_text(f"# Note {number}\n\nThe text of {number}.\n")
    git("add", ".")
    git("commit", "-m", "Notes")
    await sync(memory, repository)
    assert len(sent(server)) == 10
    git("checkout", "-b", "other")
    (repository / "3.md").write_text("# Note 3\n\nAnother text.\n")
    (repository / "4.md").unlink()
    git("commit", "-am", "Change and remove")
    await sync(memory, repository)
    assert len(sent(server)) == 1
    for branch in ("main", "other", "main"):
        git("checkout", branch)
        await sync(memory, repository)
        assert (await memory.documents.page(100))[1] == (10 if branch == "main" else 9)
    (repository / "5.md").rename(repository / "renamed.md")
    await sync(memory, repository)
    assert sent(server) == []
    [hit] = (await memory.search.query("text", 1, {"uri": "*renamed.md"})).hits
    assert "text of 5" in hit.text


async def test_a_limited_number_of_removed_embeddings_is_kept(
    memory: MemoryService, server: EmbeddingsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "MAX_REMOVED", 15)
    await put(memory, PARTS)
    await memory.writer.forget("notes.md", ORIGIN)
    assert sql(tmp_path / "memory.db", "SELECT count(*) FROM removed_embeddings") == [(15,)]
    sent(server)
    await memory.history.undo(ORIGIN)
    assert len(sent(server)) == 5


async def test_an_embedding_that_was_cut_off_is_not_used_again(
    memory: MemoryService, server: EmbeddingsServer, tmp_path: Path
) -> None:
    await put(memory, PARTS)
    sql(tmp_path / "memory.db", "UPDATE embeddings SET vector = ? WHERE chunk_id = 5", b"\0")
    sent(server)
    await put(memory, PARTS, "copy.md")
    [text] = sent(server)
    assert "Sentence 4 " in text


class CountingEmbedder(SwitchableEmbedder):
    """The local embedder, which notes the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        self.texts += texts
        return await super().embed_documents(texts, titles)


@pytest.mark.parametrize("parts", [PARTS, LONG], ids=["short", "long"])
async def test_the_local_embedder_embeds_only_what_an_edit_has_changed(
    tmp_path: Path, parts: list[str]
) -> None:
    embedder = CountingEmbedder()
    async with service_for(tmp_path, embedder) as memory:
        await put(memory, parts)
        embedder.texts.clear()
        await put(memory, ["# Before\n\nAnother beginning.\n\n", *parts])
        assert embedder.texts == ["# Before\n\nAnother beginning.\n\n"]
        [hit] = (await memory.search.query("sentence 19", 1)).hits
        assert hit.heading == "Part 19"


async def test_another_title_is_embedded_with_every_chunk(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    async with service_for(tmp_path, embedder) as memory:
        await put(memory, PARTS)
        embedder.texts.clear()
        await memory.writer.inject("".join(PARTS), {"uri": "notes.md", "title": "Another"}, ORIGIN)
        assert len(embedder.texts) == len(PARTS)


async def test_an_embedding_that_is_removed_during_the_lookup_is_found() -> None:
    async with aiosqlite.connect(":memory:", isolation_level=None) as connection:
        for table in ("embeddings", "other_embeddings", "removed_embeddings"):
            await connection.execute(f"CREATE TABLE {table}(input BLOB, vector BLOB)")
        await connection.execute("INSERT INTO embeddings VALUES(x'01', x'02')")
        read = connection.execute_fetchall

        async def read_then_sweep(sql: str, parameters: Iterable[Any] | None = None) -> Iterable[sqlite3.Row]:
            rows = await read(sql, parameters)
            await connection.execute("INSERT INTO removed_embeddings SELECT * FROM embeddings")
            await connection.execute("DELETE FROM embeddings")
            return rows

        connection.execute_fetchall = read_then_sweep  # type: ignore[method-assign,assignment]
        assert await reuse.find(SqliteConnection(connection), [b"\x01"]) == {b"\x01": b"\x02"}
