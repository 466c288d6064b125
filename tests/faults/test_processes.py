"""Several real processes on one memory, and processes that are killed."""

from __future__ import annotations

import math
import shutil
import signal
import sqlite3
import sys
from contextlib import AsyncExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from anyio import to_thread

from ragmcp.client.features import Client
from tests.support.embeddings_server import EmbeddingsServer, embeddings_server
from tests.support.processes import LONGEST_SECONDS, called, memory_process, uris
from tests.support.raw_memory import check_integrity, raw_memory, text_of

PROCESSES = 8
DOCUMENTS = 25
KILLS = 2
FILES = 150


async def test_eight_processes_write_at_once_and_none_loses_anything(tmp_path: Path) -> None:
    async def write(client: Client, number: int) -> None:
        async def one(name: str) -> None:
            done = await called(client, "Inject", text=text_of(name), metadata={"uri": name})
            assert done["status"] == "added"

        async with anyio.create_task_group() as tasks:
            for index in range(DOCUMENTS):
                tasks.start_soon(one, f"{number}-{index}")

    with anyio.fail_after(120):
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(memory_process(tmp_path)) for _ in range(PROCESSES)]
            async with anyio.create_task_group() as tasks:
                for number, client in enumerate(clients):
                    tasks.start_soon(write, client, number)
            for client in clients:
                assert (await called(client, "get_memory_stats"))["documents"] == PROCESSES * DOCUMENTS
            found = await called(clients[0], "Query", query='"finding of report 7-24"')
            assert found["hits"][0]["uri"] == "7-24"
    assert "locked" not in (tmp_path / "log").read_text(encoding="utf-8")
    check_integrity(tmp_path)


async def test_two_processes_fight_over_one_document_and_one_of_them_wins_whole(tmp_path: Path) -> None:
    with anyio.fail_after(120):
        async with memory_process(tmp_path) as one, memory_process(tmp_path) as two:

            async def write(client: Client, name: str) -> None:
                for version in range(20):
                    text = f"{name} {version}. " * 300
                    await called(client, "Inject", text=text, metadata={"uri": "shared"})

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write, one, "left")
                tasks.start_soon(write, two, "right")
            text = (await called(one, "get_document", document="shared"))["text"]
            assert text in {f"{name} 19. " * 300 for name in ("left", "right")}
            hits = (await called(two, "Query", query="left right", top_k=100))["hits"]
            assert all(hit["text"] in text for hit in hits)
    check_integrity(tmp_path)


@pytest.mark.smoke
async def test_a_second_process_finds_what_the_first_has_just_written(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with memory_process(tmp_path) as one, memory_process(tmp_path) as two:
            assert uris(await called(two, "Query", query="report")) == []
            await called(one, "Inject", text=text_of("a"), metadata={"uri": "a"})
            assert set(uris(await called(two, "Query", query="report a"))) == {"a"}
            await called(two, "delete_document", document="a")
            assert uris(await called(one, "Query", query="report a")) == []


@pytest.mark.parametrize("kill_after", [1, 40])
async def test_what_was_acknowledged_survives_a_kill_and_a_repeat_brings_no_duplicate(
    tmp_path: Path, kill_after: int
) -> None:
    names = [f"n{number}" for number in range(60)]
    acknowledged = set()
    with raw_memory(tmp_path) as memory:
        for name in names:
            memory.inject(name)
        for answer in memory.answers():
            assert answer["result"]["structuredContent"]["status"] == "added"
            acknowledged.add(answer["id"])
            if len(acknowledged) == kill_after:
                memory.kill()
    assert len(acknowledged) >= kill_after
    check_integrity(tmp_path)

    with anyio.fail_after(60):
        async with memory_process(tmp_path) as client:
            there = await called(client, "list_documents", max_tokens=1_000_000)
            assert acknowledged <= {document["uri"] for document in there["documents"]}
            statuses = {}
            for name in names:
                done = await called(client, "Inject", text=text_of(name), metadata={"uri": name})
                statuses[name] = done["status"]
            assert {statuses[name] for name in acknowledged} == {"unchanged"}
            stats = await called(client, "get_memory_stats")
            assert stats["documents"] == len(names)
            entries = (await called(client, "list_journal", limit=100, max_tokens=1_000_000))["entries"]
            assert [entry["action"] for entry in entries] == ["added"] * len(names)
            for name in ("n0", "n59"):
                hits = (await called(client, "Query", query=f'"finding of report {name} "'))["hits"]
                assert hits[0]["uri"] == name
    check_integrity(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_server_that_waits_for_the_lock_of_another_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with raw_memory(tmp_path) as memory:
        memory.inject("first")
        assert next(memory.answers())["id"] == "first"
        with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            memory.inject("second")
            memory.send("count", "get_memory_stats", {})
            assert next(memory.answers())["id"] == "count"
            memory.process.send_signal(signal.SIGTERM)
            assert memory.process.wait(20) == 0  # busy_seconds are 30


async def test_a_memory_killed_while_it_is_reembedded_has_all_old_or_all_new_embeddings(
    tmp_path: Path,
) -> None:
    names = [f"n{number}" for number in range(10)]
    async with memory_process(tmp_path) as client:
        for name in names:
            await called(client, "Inject", text=text_of(name), metadata={"uri": name})
    before = embedder_of(tmp_path)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
        connection.execute("UPDATE meta SET value = 'old:one' WHERE key = 'embedder'")
        connection.execute("UPDATE embeddings SET vector = zeroblob(512)")
    with raw_memory(tmp_path) as memory:
        memory.send("all", "reembed_memory", {})
        assert next(memory.answers())["method"] == "notifications/progress"
        memory.kill()
    check_integrity(tmp_path)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        zeros = connection.execute("SELECT DISTINCT vector = zeroblob(512) FROM embeddings").fetchall()
    assert zeros == ([(1,)] if embedder_of(tmp_path) == "old:one" else [(0,)])

    async with memory_process(tmp_path) as client:
        assert (await called(client, "reembed_memory"))["embedder"] == before
        assert uris(await called(client, "Query", query='"finding of report n7"'))[0] == "n7"


async def test_reembeddings_killed_at_random_points_lose_nothing_and_end_as_an_undisturbed_one(
    tmp_path: Path,
) -> None:
    chance = Random(7)
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    killed.mkdir()
    sections = "".join(f"# Part {n}\n\nPart {n} tells of {chance.getrandbits(64)}.\n\n" for n in range(900))
    with raw_memory(killed) as memory:
        memory.call("Inject", text=sections, metadata={"uri": "parts"})
        memory.inject("first")
        assert memory.results(1) == ["first"]
        memory.end()
    shutil.copytree(killed, undisturbed)
    with embeddings_server() as server, anyio.fail_after(120):
        variables = {"RAGCHAT_EMBEDDER_KIND": "openai", "RAGCHAT_EMBEDDER_BASE_URL": server.url}
        with raw_memory(undisturbed, **variables) as memory:
            chunks = memory.call("reembed_memory")["computed"]
        server.requests.clear()
        for _ in range(KILLS):
            server.hold_after = texts_sent(server) + chance.randrange(400)
            server.go.clear()
            server.reached.clear()
            with raw_memory(killed, **variables) as memory:
                memory.send("all", "reembed_memory", {})
                assert await to_thread.run_sync(server.reached.wait, LONGEST_SECONDS)
                memory.kill()
            server.go.set()
            with raw_memory(killed) as memory:  # with the old embedder
                assert memory.finds("first")
                memory.end()
        server.hold_after = math.inf
        with raw_memory(killed, **variables) as memory:
            assert memory.call("reembed_memory")["chunks"] == chunks
            assert memory.finds("first")
            memory.end()
        # A kill loses at most the work on one page.
        assert texts_sent(server) <= chunks + KILLS * 250
    check_integrity(killed)
    assert embeddings_in(killed) == embeddings_in(undisturbed)


def texts_sent(server: EmbeddingsServer) -> int:
    return sum(len(request["input"]) for request in server.requests)


def embeddings_in(folder: Path) -> list[tuple[int, bytes, bytes]]:
    with closing(sqlite3.connect(folder / "memory.db")) as connection:
        rows = connection.execute("SELECT chunk_id, vector, input FROM embeddings ORDER BY chunk_id")
        return rows.fetchall()


def embedder_of(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "memory.db")) as connection:
        [row] = connection.execute("SELECT value FROM meta WHERE key = 'embedder'")
    return str(row[0])


async def test_a_load_whose_server_is_killed_is_finished_by_the_next_one(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(FILES):
        (docs / f"{number}.md").write_text(f"# Note {number}\n\nThe number is {number}.\n" * 20, "utf-8")
    with anyio.fail_after(120):
        with raw_memory(tmp_path) as raw:
            job = raw.call("start_ingestion", path=str(docs))
            while raw.call("get_memory_stats")["documents"] == 0:
                continue
            raw.process.kill()
        async with memory_process(tmp_path, "--root=*", toolsets="history,ingestion,maintenance") as client:
            status: dict[str, Any] = {"job": {"status": "running"}}
            while status["job"]["status"] == "running":
                status = await called(client, "get_ingestion_status", job_id=job["job_id"], wait_seconds=60)
            assert (status["job"]["status"], status["job"]["files"]) == ("completed", FILES)
            assert (await called(client, "get_memory_stats"))["documents"] == FILES
            journal = (await called(client, "list_journal", limit=1000, max_tokens=1_000_000))["entries"]
    assert sorted(entry["uri"] for entry in journal) == sorted(path.as_uri() for path in docs.iterdir())
    check_integrity(tmp_path)
