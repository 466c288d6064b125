"""The engine of a memory in PostgreSQL: opening, connections, the order of commits.

A memory is a schema. Every transaction first updates the one row of the table `memory`, whose lock it keeps
until the commit: so commits have an order, ids rise with it, and an index that follows them misses none.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

import anyio
import anyio.lowlevel

from ragcommon.contract.maintenance import Verified
from ragcommon.migrations import migrations
from ragmemory.errors import (
    CLOSED,
    OF_READ_ONLY,
    BackupFailed,
    CommitUnknown,
    CopyFailed,
    DatabaseUnavailable,
    MemoryReadOnly,
    MemoryTooNew,
    MemoryUnusable,
    NotAMemory,
    NotStored,
    first_line,
)
from ragmemory.stores.engine import EXISTS, Connections, Engine, OnCopied, OnProgress
from ragmemory.stores.postgres.connection import (
    READ_SECONDS,
    RIGHTS_HINT,
    WRITE_SECONDS,
    PostgresConnection,
    concerns_the_database,
    is_lost,
    mapped_errors,
)
from ragmemory.stores.postgres.dialect import PostgresDialect
from ragmemory.stores.postgres.pool import SIZE, Pool, PostgresReader, close

if TYPE_CHECKING:
    from psycopg import AsyncConnection

logger = logging.getLogger(__name__)

# A program that was stopped or cut off from the network keeps the lock no longer than this.
_IDLE_SECONDS = 60
# PostgreSQL cuts off what is longer where a schema is made, but not where it is looked for.
_NAME_BYTES = 63
_NAME_HINT = f"Choose one of at most {_NAME_BYTES} bytes that does not begin with pg_."
# A uri is in indexes, whose rows take at most 2,704 bytes. What repeats in it is compressed.
_URI_BYTES = 2_600
# What a URL does not say otherwise: a server that is cut off from the network is noticed within a minute.
_OPTIONS = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # ms
    "fallback_application_name": "ragmemory",
}
# The tables, as a list of migrations.
MIGRATIONS = migrations(Path(__file__).with_name("schema.sql"))
# The schema of a memory whose URL names none.
SCHEMA = "ragmemory"


class PostgresEngine(Engine):
    """`url` may name a schema: `postgresql://host/database?schema=notes`.

    `path` is where the files that belong to the memory on this machine lie, such as its index.
    """

    dialect = PostgresDialect()
    is_file = False

    def __init__(
        self, url: str, path: Path, busy_seconds: float, *, machine: str = "", read_only: bool = False
    ) -> None:
        super().__init__(path, url, machine)
        self._conninfo, self._schema = without_schema(url)
        self._process = secrets.token_hex(8)
        self._busy_seconds = busy_seconds
        self._read_only = read_only
        self._pool = Pool(url, busy_seconds, self._configured)
        self._opening = anyio.Lock()
        self._write_lock = anyio.Lock()
        self._is_open = self._is_closed = False

    @property
    def is_writable(self) -> bool:
        return not self._read_only

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def connections(self) -> Connections:
        return Connections(SIZE, self._pool.in_use, self._pool.waiting)

    async def ensure_open(self) -> None:
        if self._is_open:
            return
        async with self._opening:
            if self._is_closed:
                raise MemoryUnusable(self.place, CLOSED, hint="")
            if not self._is_open:
                self.on_opening()
                async with self._mapped():
                    try:
                        connection, _ = await self._pool.begin(self._prepare)
                    except BaseException:
                        await self._pool.drop_idle()
                        raise
                    await self._pool.give_back(connection)
                self._is_open = True
                await self.on_open()

    def _mapped(self) -> AbstractAsyncContextManager[None]:
        return mapped_errors(self.place, self._busy_seconds)

    async def _connect(self) -> AsyncConnection[Any]:
        from psycopg import AsyncConnection
        from psycopg.conninfo import conninfo_to_dict

        if len(self._schema.encode()) > _NAME_BYTES or self._schema.startswith("pg_"):
            reason = f"PostgreSQL takes no schema with the name {self._schema}"
            raise DatabaseUnavailable(self.place, reason, _NAME_HINT)
        # It warns of every statement that is cancelled.
        logging.getLogger("psycopg").setLevel(logging.ERROR)
        # libpq waits for at least two seconds, and for whole ones.
        seconds = max(2, int(self._busy_seconds))
        options = {"connect_timeout": seconds, **_OPTIONS, **conninfo_to_dict(self._conninfo)}
        return await AsyncConnection.connect("", autocommit=True, **options)

    async def _configured(self) -> AsyncConnection[Any]:
        connection = await self._connect()
        # It may lead to another server than the last one, or to the same with an older backup.
        self.openings += 1
        settings = {
            "search_path": quoted(self._schema),
            "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
            "lock_timeout": f"{max(1, int(1_000 * self._busy_seconds))}ms",  # 0: forever
            "statement_timeout": f"{READ_SECONDS}s",
        }
        try:
            await _configure(PostgresConnection(connection, READ_SECONDS), settings, is_local=False)
        except BaseException:
            await close(connection)
            raise
        return connection

    async def _prepare(self, own: PostgresConnection) -> None:
        """Check that the schema is a memory's, and migrate it. Raises NotAMemory, MemoryTooNew."""
        async with own.raw.transaction():
            # One process at a time, also where the schema is not there yet.
            await own.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", [self._schema])
            tables = await _tables(own, self._schema)
            if tables and "memory" not in tables:
                raise NotAMemory(self.place, f"its schema {self._schema} has the tables of another program")
            done = 0
            if tables:
                [(is_allowed,)] = await own.execute_fetchall(
                    "SELECT has_schema_privilege(?, 'USAGE')", [self._schema]
                )
                if not is_allowed:  # Its tables would seem not to exist.
                    reason = f"permission denied for schema {self._schema}"
                    raise DatabaseUnavailable(self.place, reason, RIGHTS_HINT)
                [(done,)] = await own.execute_fetchall("SELECT migrations FROM memory")
            if done > len(MIGRATIONS):
                raise MemoryTooNew(self.place, done, len(MIGRATIONS))
            if done == len(MIGRATIONS):
                return
            if self._read_only:
                reason = "memory.read_only is set, and its tables have to be made"
                raise MemoryReadOnly(self.place, reason, OF_READ_ONLY)
            await own.execute("SET LOCAL statement_timeout = 0")
            [(there,)] = await own.execute_fetchall("SELECT to_regnamespace(?)", [quoted(self._schema)])
            if there is None:  # IF NOT EXISTS would need the right to make one all the same.
                await own.execute(f"CREATE SCHEMA {quoted(self._schema)}")
            for migration in MIGRATIONS[done:]:
                for statement in migration:
                    await own.execute(statement)
            await own.execute("UPDATE memory SET migrations = ?", [len(MIGRATIONS)])

    async def close(self) -> None:
        async with self._opening:
            self._is_open, self._is_closed = False, True
            await self._pool.close()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[PostgresConnection]:
        await self.ensure_open()
        async with self._mapped():
            yield PostgresReader(self._pool)

    @asynccontextmanager
    async def transaction(self, *, ordered: bool = True) -> AsyncIterator[PostgresConnection]:
        if self._read_only:
            raise MemoryReadOnly(self.place, "memory.read_only is set", OF_READ_ONLY)
        await self.ensure_open()
        async with self._mapped(), self._write_lock if ordered else nullcontext():
            started = monotonic()
            # Waiting for the lock can be cancelled, which closes the connection. What follows cannot: it
            # would leave open whether it was committed.
            try:
                connection, _ = await self._pool.begin(partial(self._begin, ordered=ordered))
            finally:
                self.lock_seconds += monotonic() - started
            try:
                with anyio.CancelScope(shield=True):
                    yield connection
                    await self._commit(connection)
            finally:
                await self._end(connection)
        if ordered:
            self.on_commit()

    @asynccontextmanager
    async def session(self, settings: Mapping[str, str], seconds: float) -> AsyncIterator[PostgresConnection]:
        """Statements on one connection with some settings, each of which may take some seconds.

        Unlike a `transaction` it has no lock, also reads if the memory is only read, and can be cancelled.
        """
        await self.ensure_open()
        async with self._mapped():
            connection, _ = await self._pool.begin(partial(_begin_session, settings, seconds))
            try:
                yield connection
                await connection.execute("COMMIT")
            finally:
                await self._end(connection)

    async def _begin(self, connection: PostgresConnection, *, ordered: bool) -> None:
        """Begin a transaction; one that is `ordered` has the lock of the memory until its end."""
        await connection.execute("BEGIN")
        await connection.execute("SET LOCAL statement_timeout = 0")
        if ordered:
            [(done,)] = await connection.execute_fetchall(
                "UPDATE memory SET version = ? RETURNING migrations", [secrets.randbits(63)]
            )
            if done > len(MIGRATIONS):  # A later release has changed the tables since they were opened.
                raise MemoryTooNew(self.place, done, len(MIGRATIONS))
        connection.answer_seconds = WRITE_SECONDS

    async def _commit(self, connection: PostgresConnection) -> None:
        connection.answer_seconds = READ_SECONDS
        try:
            await connection.execute("COMMIT")
        except Exception as error:
            if isinstance(error, TimeoutError) or is_lost(error):
                raise CommitUnknown(self.place) from error
            raise

    async def _end(self, connection: PostgresConnection) -> None:
        """Roll back what was not committed, and give the connection back."""
        connection.answer_seconds = READ_SECONDS
        with anyio.CancelScope(shield=True):
            try:
                if not connection.is_idle and not connection.raw.closed:
                    await connection.execute("ROLLBACK")
            except Exception as error:  # Without its connection the server rolls back too.
                logger.info("A transaction was not rolled back: %s", error)
            await self._pool.give_back(connection)

    def concerns_all(self, error: Exception) -> bool:
        return concerns_the_database(error)

    def error_of_write(self, error: Exception, uri: str) -> Exception:
        import psycopg

        size = len(uri.encode())
        if isinstance(error, psycopg.errors.ProgramLimitExceeded) and size > _URI_BYTES:
            return NotStored(uri, f"its uri has {size:,} bytes, and PostgreSQL takes {_URI_BYTES:,}")
        return NotStored(uri, first_line(error)) if isinstance(error, psycopg.Error) else error

    async def version(self) -> tuple[int, int]:
        [(version,)] = await self.read("SELECT version FROM memory")
        return self.openings, version

    async def send_hint(self) -> None:
        """Not in the transaction: commits that notify wait for each other."""
        await self.read("SELECT pg_notify(?, ?)", [self._schema, self._process])

    async def listen(self, on_hint: Callable[[], object]) -> None:
        """Raises DatabaseUnavailable when the connection is lost."""
        async with self._mapped():
            connection = await self._connect()
            try:
                own = PostgresConnection(connection, READ_SECONDS)
                await own.execute(f"LISTEN {quoted(self._schema)}")
                on_hint()
                async for hint in connection.notifies():
                    if hint.payload != self._process:
                        on_hint()
            finally:
                await close(connection)

    async def size(self) -> int:
        [(size,)] = await self.read(
            "SELECT CAST(sum(pg_total_relation_size(CAST(quote_ident(tablename) AS REGCLASS))) AS BIGINT)"
            " FROM pg_tables WHERE schemaname = current_schema()"
        )
        return int(size)

    async def backup(self, target: Path, *, force: bool, on_progress: OnCopied) -> int:  # noqa: ARG002
        """pg_dump is the program for it."""
        hint = "Use pg_dump, or `ragchat memory copy` to a file."
        raise BackupFailed(str(target), "the memory is in PostgreSQL", hint)

    async def verify(self, on_progress: OnProgress) -> Verified:
        from ragmemory.stores.postgres.verifying import verify

        async with self.reading() as connection:
            return await verify(connection, on_progress)

    async def exists(self) -> bool:
        async with self._mapped(), await self._connect() as connection:
            return bool(await _tables(PostgresConnection(connection, READ_SECONDS), self._schema))

    @asynccontextmanager
    async def filling(self) -> AsyncIterator[None]:
        async with self._mapped(), await self._connect() as connection:
            own = PostgresConnection(connection, READ_SECONDS)
            # The lock ends with the connection, also that of a killed process.
            [(is_ours,)] = await own.execute_fetchall(
                "SELECT pg_try_advisory_lock(hashtextextended(?, 1))", [self._schema]
            )
            if not is_ours:
                raise CopyFailed(self.place, "another process copies to it", "Wait until that one has ended.")
            try:
                yield
            finally:
                # A server may notice late that a connection was closed, and would refuse the next copy.
                try:
                    await own.execute("SELECT pg_advisory_unlock_all()")
                except Exception as error:  # The copy is made or has failed all the same.
                    logger.info("The lock of a copy was not released: %s", error)

    def unfinished(self) -> PostgresEngine:
        copy = PostgresEngine(self.place, self.path, self._busy_seconds, machine=self.machine)
        # PostgreSQL cuts names after 63 bytes.
        copy._schema = f"copying_{sha256(self._schema.encode()).hexdigest()[:32]}"
        return copy

    async def take(self, copy: PostgresEngine) -> None:
        if await self.exists():
            raise CopyFailed(self.place, EXISTS)
        async with copy.transaction() as connection:
            for table, key in _NUMBERED:
                await connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{key}'), max({key})) FROM {table}"
                )
            # An administrator may have made the schema. It is empty.
            await connection.execute(f"DROP SCHEMA IF EXISTS {quoted(self._schema)} RESTRICT")
            await connection.execute(f"ALTER SCHEMA {quoted(copy._schema)} RENAME TO {quoted(self._schema)}")
        await copy.close()


# Tables whose ids the engine numbers.
_NUMBERED = (("journal", "seq"), ("sources", "number"), ("removed_embeddings", "number"))


async def _tables(connection: PostgresConnection, schema: str) -> set[str]:
    rows = await connection.execute_fetchall("SELECT tablename FROM pg_tables WHERE schemaname = ?", [schema])
    return {name for [name] in rows}


async def _configure(connection: PostgresConnection, settings: Mapping[str, str], *, is_local: bool) -> None:
    """Set what SET would, which takes no parameters; `is_local`: until the end of the transaction."""
    calls = ", ".join([f"set_config(?, ?, {is_local})"] * len(settings))
    await connection.execute(f"SELECT {calls}", [word for setting in settings.items() for word in setting])


async def _begin_session(settings: Mapping[str, str], seconds: float, connection: PostgresConnection) -> None:
    await connection.execute("BEGIN")
    await _configure(connection, {**settings, "statement_timeout": f"{seconds:g}s"}, is_local=True)
    connection.answer_seconds = seconds + READ_SECONDS


def quoted(name: str) -> str:
    """A name in SQL, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def without_schema(url: str) -> tuple[str, str]:
    """A URL as libpq takes it, and the schema that it names."""
    place, _, query = url.partition("?")
    parameters = dict(parse_qsl(query))
    schema = parameters.pop("schema", SCHEMA)
    # libpq does not read "+" as a space.
    query = urlencode(parameters, quote_via=quote)
    return f"{place}?{query}" if query else place, schema
