"""Check what a memory in PostgreSQL stores. PostgreSQL itself keeps references and constraints."""

from __future__ import annotations

from ragcommon.contract.maintenance import Verified
from ragmemory.stores import chunks, meta
from ragmemory.stores.engine import Connection, OnProgress
from ragmemory.stores.values import are_sound

_PAGE = 1_000
# Damaged documents that are named; beyond that, only their number is given.
_NAMED = 20
_REPAIR = "`ragchat memory verify --repair` makes them again."


async def verify(connection: Connection, on_progress: OnProgress) -> Verified:
    """The problems are sentences that end with what to do."""
    problems: list[str] = []
    checks = {"Documents": _documents, "Full text": _fulltext, "Embeddings": _embeddings}
    for number, (name, check) in enumerate(checks.items()):
        await on_progress(number, len(checks), name)
        problems += await check(connection)
    await on_progress(len(checks), len(checks), None)
    return Verified(ok=not problems, problems=problems)


async def _documents(connection: Connection) -> list[str]:
    damaged: list[str] = []
    number = 0
    while page := await connection.execute_fetchall(
        "SELECT number, uri, digest FROM documents WHERE number > ? AND hidden = 0 ORDER BY number LIMIT ?",
        [number, _PAGE],
    ):
        for number, uri, digest in page:
            text, _ = await chunks.text_of(connection, number)
            if chunks.text_digest(text) != digest:
                damaged.append(f"The document {uri} is damaged. Inject it again, or restore a backup.")
    if len(damaged) > _NAMED:
        rest = f"{len(damaged) - _NAMED:,} more documents are damaged. Restore a backup."
        return [*damaged[:_NAMED], rest]
    return damaged


async def _fulltext(connection: Connection) -> list[str]:
    [(count,)] = await connection.execute_fetchall(
        "SELECT (SELECT count(*) FROM chunks JOIN documents ON number = document WHERE hidden = 0"
        " AND NOT EXISTS (SELECT 1 FROM fulltext WHERE rowid = chunk_id))"
        " + (SELECT count(*) FROM fulltext WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE chunk_id = rowid))"
    )
    lost = f"{count:,} passages are missing from the full text, or no longer exist. {_REPAIR}"
    return [lost] if count else []


async def _embeddings(connection: Connection) -> list[str]:
    _, dimensions = await meta.embedder(connection) or ("", 0)
    after = count = 0
    while page := await connection.execute_fetchall(
        "SELECT chunk_id, vector FROM chunks JOIN documents ON number = document"
        " LEFT JOIN embeddings USING(chunk_id)"
        " WHERE chunk_id > ? AND hidden = 0 ORDER BY chunk_id LIMIT ?",
        [after, _PAGE],
    ):
        after = page[-1][0]
        count += are_sound([row[1] for row in page], dimensions).count(False)
    lost = f"{count:,} embeddings are missing or damaged; their passages are found only by their words."
    return [f"{lost} {_REPAIR}"] if count else []
