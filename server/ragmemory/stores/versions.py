"""The versions of a document: what each write that is not undone made of it.

A version has the number of its write in the journal. With each write the journal keeps the document before
it, so an earlier version is read from the write that replaced it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragmemory.stores.journal import UNDOABLE
from ragmemory.types import Origin, Version

if TYPE_CHECKING:
    import aiosqlite


async def uri_of(connection: aiosqlite.Connection, document: str) -> str | None:
    """The uri of a document that was ever written, by its id or uri; the id takes precedence."""
    for sql in (
        "SELECT uri FROM documents WHERE document_id = ? AND hidden = 0",
        "SELECT uri FROM documents WHERE uri = ? AND hidden = 0",
        f"SELECT uri FROM journal WHERE uri = ? AND {UNDOABLE} LIMIT 1",
        f"SELECT uri FROM journal WHERE document_id = ? AND {UNDOABLE} LIMIT 1",
    ):
        for [uri] in await connection.execute_fetchall(sql, [document]):
            return str(uri)
    return None


async def newest(connection: aiosqlite.Connection, uri: str, limit: int) -> list[Version]:
    """The newest versions of a document, the current one first; a removal is a version without text."""
    rows = await connection.execute_fetchall(
        "SELECT characters FROM documents WHERE uri = ? AND hidden = 0", [uri]
    )
    # Of the text after the write of a row: what the next write, the row before it here, has replaced.
    characters = next((row[0] for row in rows), None)
    versions: list[Version] = []
    async with connection.execute(
        "SELECT seq, at, action, client, session, host, write_group, before_text, before_document,"
        " (SELECT characters FROM documents WHERE number = before_document)"
        f" FROM journal WHERE uri = ? AND {UNDOABLE} ORDER BY seq DESC LIMIT ?",
        [uri, limit],
    ) as cursor:
        async for seq, at, action, client, session, host, group, text, document, count in cursor:
            size = 0 if action == "removed" else characters
            origin = Origin(client, session, group, host)
            versions.append(Version(seq, at, action, origin, size, current=not versions))
            # `length` of SQLite would end at a NUL character.
            characters = count if document is not None else None if text is None else len(text)
    return versions


async def replaced_by(connection: aiosqlite.Connection, uri: str, number: int) -> int | None:
    """The write that replaced a version of a document; None for the current one."""
    rows = await connection.execute_fetchall(
        f"SELECT min(seq) FROM journal WHERE uri = ? AND {UNDOABLE} AND seq > ?", [uri, number]
    )
    [(seq,)] = rows
    return None if seq is None else int(seq)
