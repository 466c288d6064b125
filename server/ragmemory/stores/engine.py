"""What the stores need of a database. Two engines provide it: `sqlite`, and `postgres`.

The statements are written once, in SQL that both accept, with `?` or `?1` for a parameter. A `Dialect` has
what the two say differently.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from anyio import sleep_forever
from anyio.lowlevel import checkpoint

from ragcommon.contract.maintenance import Verified

# Called with what is done, what there is to do (None: unknown), and what is being checked.
OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
# Called with what is copied, and what there is to copy.
OnCopied = Callable[[int, int], Awaitable[None]]
Row = Any  # a sequence of its columns
# Why a memory is not copied to a place.
EXISTS = "it already exists"
# An SQL condition, and its parameters.
Condition = tuple[str, list[Any]]


def one_of(column: str, values: Sequence[Any]) -> Condition:
    """As `Dialect.among`, with a parameter for each value.

    In SQLite `among` cuts a text at its first NUL, and older releases stored uris with one.
    """
    return f"{column} IN ({', '.join('?' * len(values))})", list(values)


class FulltextRow(NamedTuple):
    """The texts of one chunk that phrases and prefixes are searched in."""

    chunk_id: int
    title: str
    heading: str
    text: str


class Connections(NamedTuple):
    """The connections of this process to a server."""

    allowed: int
    in_use: int
    waiting: int  # uses that wait for one


class Cursor(Protocol):
    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""


class Connection(Protocol):
    """Executes statements; what it raises is mapped by the engine."""

    @property
    def dialect(self) -> Dialect:
        """The SQL of this engine."""

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Execute one statement."""

    async def execute_fetchall(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[Row]:
        """All rows of one statement."""

    async def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> object:
        """Execute one statement for each of many rows."""

    async def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert many new rows, as fast as the engine can."""


class Dialect(Protocol):
    """The SQL of one engine. A condition comes with its parameters."""

    @property
    def ordered_join(self) -> str:
        """A join whose left side is read first."""

    @property
    def now(self) -> str:
        """The seconds since 1970 by the clock of the engine, which all processes share."""

    @property
    def fulltext_condition(self) -> str:
        """The condition on `fulltext`, whose parameter is a `fulltext_query`."""

    @property
    def holding_some(self) -> str:
        """Selects the ids of some chunks; the parameters are a `fulltext_query` and how many."""

    def fulltext_query(
        self, phrases: Iterable[str], prefixes: Iterable[str] = (), *, in_headings: bool = False
    ) -> str:
        """A query for rows that hold every phrase, and a word with every prefix."""

    def among(self, column: str, values: Sequence[Any]) -> Condition:
        """Whether a column has one of many numbers, or of many texts."""

    def glob(self, column: str, pattern: str) -> Condition:
        """Whether a column matches a glob: `*`, `?` and `[…]`, case-sensitive."""

    def has_tag(self, tag: str) -> Condition:
        """Whether `metadata.tags` is or contains this tag."""

    def has_value(self, key: str, value: Any) -> Condition:
        """Whether metadata has this value under a key; None: nothing or null."""

    async def last_chunk_id(self, connection: Connection) -> int:
        """The highest id that a chunk ever had; 0 before the first."""

    async def insert_fulltext(self, connection: Connection, rows: Iterable[FulltextRow]) -> None:
        """Add chunks to the full text."""

    async def delete_fulltext(self, connection: Connection, rows: Iterable[FulltextRow]) -> None:
        """Remove chunks from the full text, given as they were added."""

    async def clear_fulltext(self, connection: Connection) -> None:
        """Remove all chunks from the full text."""

    async def rebuild_indexes(self, connection: Connection) -> None:
        """Build the indexes of all tables again."""


class Engine(Protocol):
    """One memory, the base of both engines. Opens at the first use.

    Every method raises MemoryUnusable, MemoryBusy, MemoryDamaged, NotAMemory or MemoryTooNew if it does not
    work; writing also MemoryFull and MemoryReadOnly.
    """

    path: Path
    """The file, or where it would be: what is derived from the memory lies next to it."""
    place: str
    """The file or the URL, as errors name it."""
    machine: str
    """The name of this machine, whose files others do not see; "" if all processes see the same files."""
    is_file: bool
    """Whether it is a file, which `backup` copies; a database has backups of its own."""
    on_opening: Callable[[], object]
    """Called before the memory is first opened; its exceptions reach the caller."""
    on_open: Callable[[], Awaitable[object]]
    """Called after that; nothing has been read yet."""
    on_commit: Callable[[], object]
    """Called after every commit of this process."""
    openings: int
    """How many times it was opened."""

    lock_seconds: float
    """How long transactions have waited for the lock on the memory, in all."""

    def __init__(self, path: Path, place: str, machine: str = "") -> None:
        self.path = path
        self.place = place
        self.machine = machine
        self.on_opening = lambda: None
        self.on_open = checkpoint
        self.on_commit = lambda: None
        self.openings = 0
        self.lock_seconds = 0.0

    @property
    def dialect(self) -> Dialect:
        """The SQL of this engine."""

    @property
    def connections(self) -> Connections | None:
        """The connections to a server; None without one."""
        return None

    @property
    def is_open(self) -> bool:
        """Whether it is open, and no other memory is in its place."""

    @property
    def is_writable(self) -> bool:
        """False while the memory is open for reading only."""

    async def ensure_open(self) -> None:
        """Open or create it, or reopen it if another memory is in its place now."""

    async def close(self) -> None:
        """Close it once all uses have ended; it does not open again."""

    def reading(self) -> AbstractAsyncContextManager[Connection]:
        """One use for reading. What is stored is decoded within it, so that damage is mapped.

        Use `execute_fetchall` only. Each statement sees what was committed before it.
        """

    async def read(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[Row]:
        """All rows of one SELECT."""
        async with self.reading() as connection:
            return await connection.execute_fetchall(sql, parameters)

    def transaction(self, *, ordered: bool = True) -> AbstractAsyncContextManager[Connection]:
        """One transaction, alone among all processes; on return it is on the disk.

        One that is not `ordered` writes only what is derived from the memory: it need not wait for others,
        nor change the version.
        """

    def concerns_all(self, error: Exception) -> bool:
        """Whether an error in a transaction is about the whole memory: no other write would succeed."""

    def error_of_write(self, error: Exception, uri: str) -> Exception:
        """The error to report for the one document whose write raised this."""

    async def version(self) -> tuple[int, int]:
        """A version of the content, which every commit of any process changes."""

    async def send_hint(self) -> None:
        """Tell other processes that this one has committed, if the engine can."""
        return

    async def listen(self, on_hint: Callable[[], object]) -> None:  # noqa: ARG002
        """Call `on_hint` now, and when another process has sent a hint; some are lost. Never returns."""
        await sleep_forever()

    async def size(self) -> int:
        """Bytes on the disk."""

    async def backup(self, target: Path, *, force: bool, on_progress: OnCopied) -> int:
        """Copy the memory to a file, and return its bytes. Raises BackupFailed."""

    async def verify(self, on_progress: OnProgress) -> Verified:
        """Check everything that is stored, even if it cannot be opened."""

    async def exists(self) -> bool:
        """Whether there is something in its place; nothing is made."""

    def filling(self) -> AbstractAsyncContextManager[None]:
        """While a copy is made for this place: no other process makes one. Raises CopyFailed.

        A file has no such lock.
        """
        return nullcontext()

    def unfinished(self) -> Self:
        """The engine of a copy that is to take this place, which `exists` says is free."""

    async def take(self, copy: Self) -> None:
        """Move a complete copy to this place, all of it or nothing, and close it. Raises CopyFailed."""


class StorePart:
    """The statements on some tables of a memory."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def _column(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """The first column of one SELECT."""
        return [row[0] for row in await self._engine.read(sql, parameters)]
