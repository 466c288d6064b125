"""The store of past conversations: every turn with its trace, saved as it happens (aiosqlite, WAL).

Opened at first use, so it is not on the way to the prompt. Several programs may use one file at once.
Not the memory: what was said stands here, what was read stands there.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from ragchat.errors import AmbiguousSession, NoSession, SessionsUnavailable, UnknownSession
from ragchat.sanitize import one_line
from ragchat.sessions.export import ExportKind, export
from ragchat.sessions.search import any_of, snippet, terms
from ragchat.types import Session, SessionInfo, SessionMatch, Turn
from ragconfig import wal
from ragconfig.home import private_folder
from ragconfig.readable import Readable, obstacle_of, readable, reason_of
from ragconfig.settings import Settings
from ragconfig.text_rules import searchable

if TYPE_CHECKING:
    import aiosqlite

BUSY_SECONDS = 10.0
TITLE_CHARACTERS = 80

# Each runs once, in order, in a transaction; `PRAGMA user_version` counts them.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE sessions (
            session_id TEXT PRIMARY KEY, title TEXT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL
        ) STRICT""",
        """CREATE TABLE turns (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, turn_id TEXT NOT NULL UNIQUE,
            session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, record BLOB NOT NULL
        ) STRICT""",
        "CREATE INDEX turns_by_session ON turns (session_id, seq)",
        "CREATE VIRTUAL TABLE turn_words USING fts5 (question, answer, tokenize = 'porter unicode61')",
        """CREATE TRIGGER turn_words_follow AFTER DELETE ON turns
            BEGIN DELETE FROM turn_words WHERE rowid = old.seq; END""",
    ),
)


def sessions_path(settings: Settings) -> Path:
    """The SQLite file of past conversations. Raises SettingsError."""
    return settings.path("sessions.path", "sessions.db")


def session_title(question: str) -> str:
    """The title of a session, from its first question."""
    return one_line(question, TITLE_CHARACTERS)


class SessionStore:
    """All sessions of one file. Every method raises SessionsUnavailable when the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: aiosqlite.Connection | None = None
        self._way: Readable | None = None  # how it is read, where it cannot be written
        self._saving: asyncio.Task[None] | None = None
        self._lock = anyio.Lock()

    async def __aenter__(self) -> SessionStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            if self._saving is not None:
                await asyncio.wait([self._saving])
            await self._close()

    async def save_turn(self, turn: Turn, *, replaces: str | None = None) -> None:
        """Add a turn, and its session with the first one; the turn with the id `replaces` goes.

        Who is cancelled here no longer waits, but the turn is saved: the user has seen it, and will go on
        from it.
        """
        self._saving = asyncio.create_task(self._save_turn(turn, replaces))
        await asyncio.shield(self._saving)

    async def _save_turn(self, turn: Turn, replaces: str | None) -> None:
        async with self._writing() as db:
            await db.execute(
                """INSERT INTO sessions VALUES (:id, :title, :at, :at)
                ON CONFLICT (session_id) DO UPDATE SET updated_at = excluded.updated_at""",
                {
                    "id": turn.session_id,
                    "title": session_title(turn.question),
                    "at": turn.created_at,
                },
            )
            if replaces is not None:
                await db.execute("DELETE FROM turns WHERE turn_id = ?", (replaces,))
            cursor = await db.execute(
                "INSERT INTO turns (turn_id, session_id, record) VALUES (?, ?, ?)",
                (turn.turn_id, turn.session_id, msgspec.json.encode(turn)),
            )
            await db.execute(
                "INSERT INTO turn_words (rowid, question, answer) VALUES (?, ?, ?)",
                (cursor.lastrowid, searchable(turn.question), searchable(turn.answer)),
            )

    async def list(self, limit: int | None = None) -> Sequence[SessionInfo]:
        """The sessions, the one used last first."""
        rows = await self._rows(
            """SELECT session_id, title, created_at, updated_at, count(turns.seq)
            FROM sessions LEFT JOIN turns USING (session_id)
            GROUP BY session_id ORDER BY updated_at DESC, max(turns.seq) DESC LIMIT ?""",
            (-1 if limit is None else limit,),
        )
        return [SessionInfo(*row) for row in rows]

    async def load(self, session_id: str) -> Session:
        """A session by its id or the beginning of it. Raises UnknownSession, AmbiguousSession."""
        found = await self._rows(
            "SELECT session_id, title, created_at FROM sessions WHERE substr(session_id, 1, ?) = ?",
            (len(session_id), session_id),
        )
        exact = [row for row in found if row[0] == session_id] or found
        if not exact or not session_id:
            raise UnknownSession(session_id)
        if len(exact) > 1:
            raise AmbiguousSession(session_id, [row[0] for row in exact])
        key, title, created_at = exact[0]
        rows = await self._rows("SELECT record FROM turns WHERE session_id = ? ORDER BY seq", (key,))
        return Session(key, title, created_at, [msgspec.json.decode(row[0], type=Turn) for row in rows])

    async def load_last(self, but: str = "") -> Session:
        """The session that was used last, but not the one with this id. Raises NoSession."""
        others = [info.session_id for info in await self.list(limit=2) if info.session_id != but]
        if not others:
            raise NoSession
        return await self.load(others[0])

    async def remove(self, session_id: str) -> SessionInfo:
        """Remove a session by its id or the beginning of it. Raises UnknownSession, AmbiguousSession."""
        session = await self.load(session_id)
        async with self._writing() as db:
            await db.execute("DELETE FROM sessions WHERE session_id = ?", (session.session_id,))
        updated_at = session.turns[-1].created_at if session.turns else session.created_at
        return SessionInfo(
            session.session_id, session.title, session.created_at, updated_at, len(session.turns)
        )

    async def export(self, session_id: str, kind: ExportKind) -> str:
        """A session as Markdown or JSON. Raises UnknownSession, AmbiguousSession."""
        return export(await self.load(session_id), kind)

    async def search(self, text: str, limit: int = 20) -> Sequence[SessionMatch]:
        """Turns that hold all words of any text (else some of them), the best first."""
        words = terms(text)
        if not words:
            return []
        rows = await self._match(" ".join(words), limit) or await self._match(any_of(words), limit)
        matches = []
        for title, record in rows:
            turn = msgspec.json.decode(record, type=Turn)
            matches.append(
                SessionMatch(
                    turn.session_id,
                    turn.turn_id,
                    title,
                    turn.question,
                    snippet(turn.answer, text),
                    turn.created_at,
                )
            )
        return matches

    async def _match(self, expression: str, limit: int) -> Sequence[tuple[Any, ...]]:
        return await self._rows(
            """SELECT title, record FROM turn_words
            JOIN turns ON turns.seq = turn_words.rowid JOIN sessions USING (session_id)
            WHERE turn_words MATCH ? ORDER BY turn_words.rank LIMIT ?""",
            (expression, limit),
        )

    async def _rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        with self._mapped():
            db = await self._open()
            return [tuple(row) for row in await db.execute_fetchall(sql, values)]

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[aiosqlite.Connection]:
        """One transaction, one at a time in this process; another process is waited for."""
        with self._mapped():
            db = await self._open(to_write=True)
            async with self._lock, wal.transaction(db, BUSY_SECONDS):
                yield db

    def _mapped(self) -> _Mapped:
        return _Mapped(self.path)

    async def _open(self, *, to_write: bool = False) -> aiosqlite.Connection:
        """A connection: for reading alone where the disk is full or read-only, unless it is to write."""
        async with self._lock:
            if self._way is not None and (to_write or self._way.is_outdated()):
                await self._close()
            if self._connection is None:
                await self._reopen(to_write=to_write)
            assert self._connection is not None
            return self._connection

    async def _reopen(self, *, to_write: bool) -> None:
        try:
            self._connection = await _connect(self.path)
        except (sqlite3.Error, OSError) as error:
            if to_write or obstacle_of(error, self.path) is None:
                raise
            self._connection, self._way = await _connect_to_read(self.path)

    async def _close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        if self._way is not None:
            self._way.close()
        self._connection = self._way = None


class _Mapped:
    """The border to SQLite: its errors become ours."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (sqlite3.Error, OSError)):
            obstacle = obstacle_of(error, self.path)
            reason = reason_of(obstacle, self.path) if obstacle else str(error)
            raise SessionsUnavailable(str(self.path), reason) from error


async def _connect_to_read(path: Path) -> tuple[aiosqlite.Connection, Readable]:
    way = await anyio.to_thread.run_sync(readable, path, len(MIGRATIONS))
    try:
        db = await wal.connect(way.uri, BUSY_SECONDS)
        if way.is_private:
            await _prepared(db, _migrate)
        return db, way
    except BaseException:
        way.close()
        raise


async def _connect(path: Path) -> aiosqlite.Connection:
    await anyio.to_thread.run_sync(_prepare, path)
    db = await wal.connect(path, BUSY_SECONDS)
    await _prepared(db, _prepare_to_write)
    return db


async def _prepare_to_write(db: aiosqlite.Connection) -> None:
    await wal.prepare(db, MIGRATIONS, BUSY_SECONDS)


async def _migrate(db: aiosqlite.Connection) -> None:
    await wal.migrate(db, MIGRATIONS, BUSY_SECONDS)


async def _prepared(
    db: aiosqlite.Connection, prepare: Callable[[aiosqlite.Connection], Awaitable[None]]
) -> None:
    """`prepare` the connection; where that fails, close it."""
    try:
        await prepare(db)
    except BaseException:
        await wal.close(db)
        raise


def _prepare(path: Path) -> None:
    """Import aiosqlite; make the file its owner's only, before SQLite does (its -wal and -shm follow)."""
    import aiosqlite  # noqa: F401 (here in a thread, not in the event loop)

    private_folder(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
