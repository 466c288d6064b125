"""The connections of one process to a database: opened when needed, kept for later uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from ragmemory.errors import DatabaseUnavailable
from ragmemory.stores.engine import Row
from ragmemory.stores.postgres.connection import READ_SECONDS, PostgresConnection, is_lost

if TYPE_CHECKING:
    from psycopg import AsyncConnection

T = TypeVar("T")

# One writes, the others read.
SIZE = 4


class Pool:
    """`connect` opens a connection; a use waits at most `seconds` for a free one."""

    def __init__(
        self, place: str, seconds: float, connect: Callable[[], Awaitable[AsyncConnection[Any]]]
    ) -> None:
        self._place = place
        self._seconds = seconds
        self._connect = connect
        self._free = anyio.Semaphore(SIZE, fast_acquire=True)
        self._idle: list[AsyncConnection[Any]] = []
        self._is_closed = False

    @property
    def in_use(self) -> int:
        """How many connections are in use."""
        return SIZE - self._free.value

    @property
    def waiting(self) -> int:
        """How many uses wait for a connection."""
        return self._free.statistics().tasks_waiting

    async def begin(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> tuple[PostgresConnection, T]:
        """A connection on which `work` was done; give it back. `work` is repeated if its connection was lost.

        Raises psycopg.Error, TimeoutError, DatabaseUnavailable.
        """
        is_repeated = False
        while True:
            connection = PostgresConnection(await self._take(), self._seconds + READ_SECONDS)
            try:
                return connection, await work(connection)
            except BaseException as error:
                await self.give_back(connection)
                if is_repeated or not is_lost(error):
                    raise
            is_repeated = True
            await self.drop_idle()  # The same restart or failover will have ended them too.

    async def _take(self) -> AsyncConnection[Any]:
        try:
            self._free.acquire_nowait()
        except anyio.WouldBlock:
            await self._wait()
        try:
            return self._idle.pop() if self._idle else await self._connect()
        except BaseException:
            self._free.release()
            raise

    async def _wait(self) -> None:
        try:
            with anyio.fail_after(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            reason = f"all {SIZE} connections of this process were in use for {self._seconds:g} s"
            raise DatabaseUnavailable(self._place, reason) from None

    async def give_back(self, connection: PostgresConnection) -> None:
        """Keep a connection for later, unless it was lost or left in the middle of something."""
        try:
            if connection.is_idle and not self._is_closed:
                self._idle.append(connection.raw)
            else:
                await close(connection.raw)
        finally:
            self._free.release()

    async def drop_idle(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            await close(self._idle.pop())

    async def close(self) -> None:
        """Close the connections; those in use when they are given back."""
        self._is_closed = True
        await self.drop_idle()


class PostgresReader(PostgresConnection):
    """Executes reads, each on its own connection; repeats one whose connection was lost."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def execute_fetchall(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        connection, rows = await self._pool.begin(lambda one: one.execute_fetchall(sql, parameters))
        await self._pool.give_back(connection)
        return rows


async def close(connection: AsyncConnection[Any]) -> None:
    """Close a connection even if the caller is cancelled."""
    with anyio.CancelScope(shield=True):
        await connection.close()
