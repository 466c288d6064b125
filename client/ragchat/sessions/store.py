"""The store of past sessions: every turn with its trace, saved when it is finished.

The file is opened at first use, so that it does not delay the prompt.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from ragchat.errors import (
    AmbiguousSession,
    NoSession,
    OnlySingleQuestions,
    SessionDamaged,
    UnknownSession,
    UnknownTurn,
)
from ragchat.formatting import utc_now
from ragchat.sanitize import one_line
from ragchat.sessions.database import Database
from ragchat.sessions.search import snippet, terms
from ragchat.sessions.types import Session, SessionInfo, SessionMatch
from ragchat.turn.types import Turn
from ragcommon.errors import DECODE_ERRORS
from ragcommon.text.rules import searchable
from ragconfig.settings import Settings

if TYPE_CHECKING:
    import aiosqlite

log = logging.getLogger(__name__)

TITLE_CHARACTERS = 80
_INFO = """SELECT session_id, title, created_at, updated_at, count(turns.seq), notebook
    FROM sessions LEFT JOIN turns USING (session_id)"""
_INSERT_SESSION = """INSERT INTO sessions (session_id, title, created_at, updated_at, one_shot, notebook)
    VALUES (?, ?, ?, ?, ?, ?)"""


def sessions_path(settings: Settings) -> Path:
    """The SQLite file of past conversations. Raises SettingsError."""
    return settings.path("sessions.path", "sessions.db")


def session_title(question: str) -> str:
    """The title of a session, from its first question."""
    return one_line(question, TITLE_CHARACTERS)


class SessionStore:
    """All sessions of one file. Every method raises SessionsUnavailable if the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path)
        self._saving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> SessionStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the file, once the last turn is saved."""
        closing = asyncio.create_task(self._close())
        try:
            await asyncio.shield(closing)
        finally:  # A signal may cancel us here. An open file would keep the program from ending.
            await asyncio.wait([closing])

    async def _close(self) -> None:
        if self._saving is not None:
            await asyncio.wait([self._saving])
        await self._database.aclose()

    async def save_turn(
        self, turn: Turn, *, replaces: str | None = None, one_shot: bool = False, notebook: str = ""
    ) -> None:
        """Add a turn, with the first one its session too; remove the turn with the id `replaces`.

        `one_shot` marks a session of which no more turns are expected. With its second turn it is a
        conversation like the others. `notebook` is the one that a new session belongs to.

        A cancelled caller no longer waits, but the turn is saved: the user has seen it and may refer to it.
        """
        self._saving = asyncio.create_task(self._save_turn(turn, replaces, one_shot, notebook))
        await asyncio.shield(self._saving)

    async def _save_turn(self, turn: Turn, replaces: str | None, one_shot: bool, notebook: str) -> None:
        title, at = session_title(turn.question), turn.created_at
        async with self._database.transaction() as db:
            await db.execute(
                f"""{_INSERT_SESSION}
                ON CONFLICT (session_id) DO UPDATE SET updated_at = excluded.updated_at, one_shot = 0""",
                (turn.session_id, title, at, at, one_shot, notebook),
            )
            if replaces is not None:
                await db.execute("DELETE FROM turns WHERE turn_id = ?", (replaces,))
            await _insert(db, turn)

    async def list(
        self, limit: int | None = None, *, one_shots: bool = True, notebook: str = ""
    ) -> Sequence[SessionInfo]:
        """The sessions, most recently used first; with or without `one_shots`.

        With `notebook`, only those of it.
        """
        rows = await self._database.rows(
            f"""{_INFO} WHERE one_shot <= ?1 AND ?3 IN ('', notebook)
            GROUP BY session_id ORDER BY updated_at DESC, max(turns.seq) DESC LIMIT ?2""",
            (one_shots, -1 if limit is None else limit, notebook),
        )
        return [SessionInfo(*row) for row in rows]

    async def load(self, session_id: str) -> Session:
        """A session by its id or a prefix of it. Raises UnknownSession, AmbiguousSession, SessionDamaged."""
        info = await self._find(session_id)
        key = info.session_id
        rows = await self._database.rows("SELECT record FROM turns WHERE session_id = ? ORDER BY seq", (key,))
        turns = [_turn(key, row[0]) for row in rows]
        return Session(key, info.title, info.created_at, turns, info.notebook)

    async def _find(self, session_id: str) -> SessionInfo:
        rows = await self._database.rows(
            f"{_INFO} WHERE substr(session_id, 1, ?) = ? GROUP BY session_id", (len(session_id), session_id)
        )
        found = [row for row in rows if row[0] == session_id] or rows
        if not found or not session_id:
            raise UnknownSession(session_id)
        if len(found) > 1:
            raise AmbiguousSession(session_id, [row[0] for row in found])
        return SessionInfo(*found[0])

    async def info(self, session_id: str) -> SessionInfo:
        """A session without its turns, by its whole id. Raises UnknownSession."""
        rows = await self._database.rows(f"{_INFO} WHERE session_id = ? GROUP BY session_id", (session_id,))
        if not rows:
            raise UnknownSession(session_id)
        return SessionInfo(*rows[0])

    async def turns(
        self, session_id: str, limit: int, *, before: str = "", start: str = ""
    ) -> Sequence[Turn]:
        """The last `limit` turns of a session, oldest first, or its last ones before the turn `before`.

        With `start`, the first ones from that turn on.
        """
        sign, order = (">=", "ASC") if start else ("<", "DESC")
        rows = await self._database.rows(
            f"""SELECT record FROM turns WHERE session_id = ?1
            AND (?2 = '' OR seq {sign} (SELECT seq FROM turns WHERE turn_id = ?2))
            ORDER BY seq {order} LIMIT ?3""",
            (session_id, start or before, limit),
        )
        return [_turn(session_id, row[0]) for row in (rows if start else reversed(rows))]

    async def turn(self, session_id: str, turn_id: str) -> Turn:
        """One turn. Raises UnknownSession."""
        if (found := await self.turns(session_id, 1, start=turn_id)) and turn_id:
            return found[0]
        raise UnknownSession(session_id)

    async def load_until(self, turn_id: str) -> Session:
        """The session of a turn, up to that turn, by its id or the beginning of it; "": of the last turn.

        Raises UnknownTurn; NoSession if there is no last turn.
        """
        found = await self._database.rows(
            """SELECT turn_id, session_id FROM turns WHERE substr(turn_id, 1, ?1) = ?2
            ORDER BY seq DESC LIMIT iif(?1, 2, 1)""",
            (len(turn_id), turn_id),
        )
        if not found and not turn_id:
            raise NoSession
        if len(found) != 1:
            raise UnknownTurn(turn_id)
        ((turn_id, session_id),) = found
        session = await self.load(session_id)
        last = next(index for index, turn in enumerate(session.turns) if turn.turn_id == turn_id)
        session.turns = session.turns[: last + 1]
        return session

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title. Raises UnknownSession."""
        async with self._database.transaction() as db:
            cursor = await db.execute(
                "UPDATE sessions SET title = ? WHERE session_id = ?",
                (session_title(title), session_id),
            )
        if not cursor.rowcount:
            raise UnknownSession(session_id)

    async def fork(self, session_id: str, before: str = "") -> Session:
        """A new session with the turns of another one, or with those before the turn `before`.

        It is stored if there are any. Raises UnknownSession, AmbiguousSession.
        """
        session = await self.load(session_id)
        title = session_title(f"{session.title} (fork)")
        fork = Session(secrets.token_hex(6), title, utc_now(), notebook=session.notebook)
        kept = takewhile(lambda turn: turn.turn_id != before, session.turns)
        fork.turns = [
            structs.replace(turn, turn_id=secrets.token_hex(6), session_id=fork.session_id) for turn in kept
        ]
        if fork.turns:
            async with self._database.transaction() as db:
                at = fork.created_at
                await db.execute(_INSERT_SESSION, (fork.session_id, title, at, at, False, fork.notebook))
                for turn in fork.turns:
                    await _insert(db, turn)
        return fork

    async def load_last(self, except_id: str = "", *, one_shots: bool = True, notebook: str = "") -> Session:
        """The session used last, except the one with the id `except_id`; otherwise as `list`.

        Raises NoSession, OnlySingleQuestions.
        """
        last = await self.list(limit=2, one_shots=one_shots, notebook=notebook)
        others = [info.session_id for info in last if info.session_id != except_id]
        if not others:
            has_single = not one_shots and await self.list(limit=1, notebook=notebook)
            raise OnlySingleQuestions if has_single and not last else NoSession
        return await self.load(others[0])

    async def remove(self, session_id: str) -> SessionInfo:
        """Remove a session by its id or a prefix of it. Raises UnknownSession, AmbiguousSession."""
        info = await self._find(session_id)
        async with self._database.transaction() as db:
            await db.execute("DELETE FROM sessions WHERE session_id = ?", (info.session_id,))
        return info

    async def add(self, session: Session) -> int:
        """Add a session of another store, or those of its turns that are missing here.

        Returns the number of added turns. One of that id that belongs to another notebook is left as it is.
        """
        # A shared file may state any time; with a future one, the session would stay the one used last.
        used_at = min(session.turns[-1].created_at, utc_now()) if session.turns else session.created_at
        title = session_title(session.title)
        added = 0
        async with self._database.transaction() as db:
            cursor = await db.execute(
                f"""{_INSERT_SESSION} ON CONFLICT (session_id) DO UPDATE SET notebook = excluded.notebook
                WHERE notebook IN ('', excluded.notebook)""",
                (session.session_id, title, session.created_at, used_at, False, session.notebook),
            )
            for turn in session.turns if cursor.rowcount else ():
                known = await db.execute_fetchall("SELECT 1 FROM turns WHERE turn_id = ?", (turn.turn_id,))
                if not [*known]:
                    await _insert(db, turn)
                    added += 1
        return added

    async def release(self, notebook: str) -> int:
        """Make the sessions of a notebook ordinary ones. Returns their number."""
        async with self._database.transaction() as db:
            cursor = await db.execute("UPDATE sessions SET notebook = '' WHERE notebook = ?", (notebook,))
        return cursor.rowcount

    async def search(self, text: str, limit: int = 20, notebook: str = "") -> Sequence[SessionMatch]:
        """The turns with all words of `text`, else those with any of them; best first, without damaged ones.

        With `notebook`, only those of its sessions.
        """
        words = terms(text)
        if not words:
            return []
        rows = await self._match(" ".join(words), limit, notebook)
        rows = rows or await self._match(" OR ".join(words), limit, notebook)
        matches = []
        for title, session_id, record in rows:
            try:
                turn = _turn(session_id, record)
            except SessionDamaged as error:
                log.warning("%s", error)
                continue
            matches.append(
                SessionMatch(
                    session_id=turn.session_id,
                    turn_id=turn.turn_id,
                    title=title,
                    question=turn.question,
                    snippet=snippet(turn.answer.text, text),
                    created_at=turn.created_at,
                )
            )
        return matches

    async def _match(self, expression: str, limit: int, notebook: str) -> Sequence[tuple[Any, ...]]:
        return await self._database.rows(
            """SELECT title, session_id, record FROM turn_words
            JOIN turns ON turns.seq = turn_words.rowid JOIN sessions USING (session_id)
            WHERE turn_words MATCH ?1 AND ?3 IN ('', notebook)
            ORDER BY turn_words.rank LIMIT ?2""",
            (expression, limit, notebook),
        )


def _turn(session_id: str, record: bytes) -> Turn:
    try:
        return Turn.of_record(record)
    except DECODE_ERRORS as error:
        raise SessionDamaged(session_id) from error


async def _insert(db: aiosqlite.Connection, turn: Turn) -> None:
    cursor = await db.execute(
        "INSERT INTO turns (turn_id, session_id, record) VALUES (?, ?, ?)",
        (turn.turn_id, turn.session_id, msgspec.json.encode(turn.record())),
    )
    await db.execute(
        "INSERT INTO turn_words (rowid, question, answer) VALUES (?, ?, ?)",
        (cursor.lastrowid, searchable(turn.question), searchable(turn.answer.text)),
    )
