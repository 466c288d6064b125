"""Connections that are lost at every moment, and servers that do not answer: through a proxy that cuts them.

Covers `pool`, and what `database` and `connection` make of its errors.
"""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from ragmemory.errors import CommitUnknown, DatabaseUnavailable, MemoryBusy
from ragmemory.stores.postgres import connection as connections
from ragmemory.stores.postgres import pool
from ragmemory.stores.postgres.database import PostgresEngine
from ragmemory.stores.store import Store
from tests.support.database_proxy import DatabaseProxy, database_proxy
from tests.support.processes import Held
from tests.support.stores import put, status

pytestmark = pytest.mark.full

# Another program of ours: it holds the lock of a memory until the database ends its session.
HOLDER = """
import sys, anyio
from pathlib import Path
from ragmemory.stores.postgres import database
database._IDLE_SECONDS = 1

async def hold():
    engine = database.PostgresEngine(sys.argv[1], Path("memory.db"), 5)
    async with engine.transaction():
        print("held", flush=True)
        await anyio.sleep_forever()

anyio.run(hold)
"""


@pytest.fixture
def url(database: str) -> str:
    return f"{database}&schema=test_{secrets.token_hex(6)}"


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[DatabaseProxy]:
    with anyio.fail_after(60):
        async with database_proxy(url) as proxy:
            yield proxy


@asynccontextmanager
async def opened(url: str, busy_seconds: float = 5) -> AsyncIterator[Store]:
    engine = PostgresEngine(url, Path("memory.db"), busy_seconds)
    await engine.ensure_open()
    try:
        yield Store(engine, 100)
    finally:
        await engine.close()


async def use_all_connections(store: Store) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(pool.SIZE):
            tasks.start_soon(store.engine.read, "SELECT pg_sleep(.2)")


async def test_a_free_connection_is_taken_without_time_to_wait_for_one(url: str) -> None:
    async with opened(url, busy_seconds=0) as store:
        assert (await store.stats()).documents == 0


async def test_a_read_whose_connection_was_lost_is_repeated(proxy: DatabaseProxy) -> None:
    async with opened(proxy.url) as store:
        await put(store, "one")
        await use_all_connections(store)
        proxy.cut()
        assert (await store.stats()).documents == 1
        proxy.cut_after("FROM documents")  # while it is executed
        assert (await store.stats()).documents == 1


async def test_a_write_that_finds_its_connection_lost_begins_again(proxy: DatabaseProxy) -> None:
    async with opened(proxy.url) as store:
        await put(store, "one")
        proxy.cut()
        assert await put(store, "two") is not None
        proxy.cut_after("UPDATE memory")
        assert await put(store, "three") is not None


async def test_a_connection_lost_before_the_commit_stores_nothing(proxy: DatabaseProxy) -> None:
    async with opened(proxy.url) as store:
        proxy.cut_before("INSERT INTO documents")
        with pytest.raises(DatabaseUnavailable):
            await put(store, "one")
        assert (await store.stats()).documents == 0
        assert status(await put(store, "one")) == "added"


async def test_a_connection_lost_at_the_commit_leaves_open_whether_it_is_stored(proxy: DatabaseProxy) -> None:
    async with opened(proxy.url) as store:
        proxy.cut_before("COMMIT")
        with pytest.raises(CommitUnknown, match="may be stored or not"):
            await put(store, "one")
        assert status(await put(store, "one")) == "added"
        proxy.cut_after("COMMIT")
        with pytest.raises(CommitUnknown):
            await put(store, "two", "other")
        assert status(await put(store, "two", "other")) == "unchanged"  # Repeating it is safe.


async def test_a_server_that_was_away_is_used_again(proxy: DatabaseProxy) -> None:
    async with opened(proxy.url) as store:
        await put(store, "one")
        await proxy.go_down()
        with pytest.raises(DatabaseUnavailable, match=r"refused"):
            await store.stats()
        with pytest.raises(DatabaseUnavailable, match=r"refused"):
            await put(store, "two")
        await proxy.come_up()
        assert (await store.stats()).documents == 1
        assert await put(store, "two") is not None


async def test_a_server_that_answers_nothing_is_given_up(
    proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(proxy.url, busy_seconds=1) as store:
        await put(store, "one")
        for module in (pool, connections):
            monkeypatch.setattr(module, "READ_SECONDS", 0.1)
        proxy.stop_passing()
        with pytest.raises(DatabaseUnavailable, match="did not answer"):
            await store.stats()


async def test_a_read_that_takes_too_long_is_ended_by_the_server(url: str) -> None:
    async with opened(url) as store:
        [(limit,)] = await store.engine.read("SELECT current_setting('statement_timeout')")
        assert limit == "1min"
        async with store.engine.transaction() as connection:
            [(limit,)] = await connection.execute_fetchall("SELECT current_setting('statement_timeout')")
        assert limit == "0"


async def test_a_use_waits_for_a_free_connection_only_as_long_as_it_may(url: str) -> None:
    async with opened(url, busy_seconds=0.1) as store, anyio.create_task_group() as tasks:
        for _ in range(pool.SIZE):
            tasks.start_soon(store.engine.read, "SELECT pg_sleep(20)")
        await anyio.wait_all_tasks_blocked()
        connections = store.engine.connections
        assert connections is not None
        assert (connections.allowed, connections.in_use, connections.waiting) == (pool.SIZE, pool.SIZE, 0)
        with pytest.raises(DatabaseUnavailable, match=r"all 4 connections .* in use for 0\.1 s"):
            await store.stats()
        tasks.cancel_scope.cancel()


async def test_a_terminated_transaction_is_an_error_and_the_next_one_is_none(url: str) -> None:
    async with opened(url) as store:
        with pytest.raises(DatabaseUnavailable, match="terminating connection"):
            async with store.engine.transaction() as connection:
                await connection.execute_fetchall("SELECT pg_terminate_backend(pg_backend_pid())")
        assert await put(store, "one") is not None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot stop a process")
async def test_a_stopped_process_does_not_keep_the_lock(url: str) -> None:
    async with opened(url, busy_seconds=0.1) as hasty, opened(url, busy_seconds=30) as patient:
        with Held([sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE) as holder:
            assert await anyio.to_thread.run_sync(holder.line) == b"held\n"
            holder.send_signal(signal.SIGSTOP)
            with pytest.raises(MemoryBusy):
                await put(hasty, "one")
            assert (await hasty.stats()).documents == 0
            assert await put(patient, "one") is not None
            holder.kill()
