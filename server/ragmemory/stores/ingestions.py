"""Ingestion jobs, and which state of its file each document was read from.

A job belongs to the process with its `run_id`, which writes a beat about once a second. A job whose last beat
is too old belongs to a killed process; any other process may take it over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ragmemory.types import Ingestion, StoredFile

if TYPE_CHECKING:
    import aiosqlite

# Ended jobs that are kept.
KEPT = 100
_INSERT = "INSERT INTO ingestions(job_id, request, status, run_id, beat, job) VALUES(?, ?, ?, ?, ?, ?)"


async def begin(connection: aiosqlite.Connection, job: Ingestion, now: float) -> Ingestion:
    """Store a new job, unless one for the same request runs already; return the one that runs."""
    rows = await connection.execute_fetchall(
        "SELECT job FROM ingestions WHERE request = ? AND status = 'running'", [_request(job)]
    )
    for (running,) in rows:
        return msgspec.json.decode(running, type=Ingestion)
    await connection.execute(_INSERT, _row(job, now))
    await connection.execute(
        "DELETE FROM ingestions WHERE status <> 'running'"
        " AND number <= (SELECT number FROM ingestions ORDER BY number DESC LIMIT 1 OFFSET ?)",
        [KEPT],
    )
    return job


async def save(connection: aiosqlite.Connection, job: Ingestion, now: float) -> bool:
    """Store the progress of a job, which is a beat. False if it was cancelled or taken over.

    A job that is not stored yet, because the disk was full when it began, is added.
    """
    cursor = await connection.execute(
        f"{_INSERT} ON CONFLICT(job_id) DO UPDATE SET status = excluded.status, beat = excluded.beat,"
        " job = excluded.job WHERE run_id = excluded.run_id AND status = 'running'",
        _row(job, now),
    )
    return cursor.rowcount > 0


async def cancel(connection: aiosqlite.Connection, job: Ingestion) -> None:
    """Mark a job of another process as cancelled; that process ends it at its next beat."""
    await connection.execute(
        "UPDATE ingestions SET status = ?, job = ? WHERE job_id = ? AND status = 'running'",
        [job.status, _encoded(job), job.job_id],
    )


async def take_over(
    connection: aiosqlite.Connection, run_id: str, now: float, oldest: float
) -> list[Ingestion]:
    """Take over the jobs of other processes whose last beat came before `oldest`."""
    rows = await connection.execute_fetchall(
        "UPDATE ingestions SET run_id = ?1, beat = ?2"
        " WHERE status = 'running' AND beat < ?3 AND run_id <> ?1 RETURNING job",
        [run_id, now, oldest],
    )
    return [msgspec.json.decode(row[0], type=Ingestion) for row in rows]


async def last_beat(connection: aiosqlite.Connection, run_id: str) -> float | None:
    """The last beat of the job of another process that was silent for the longest time; None if none runs."""
    [(beat,)] = await connection.execute_fetchall(
        "SELECT min(beat) FROM ingestions WHERE status = 'running' AND run_id <> ?", [run_id]
    )
    return None if beat is None else float(beat)


async def running(connection: aiosqlite.Connection) -> list[Ingestion]:
    """The jobs that run in any process."""
    rows = await connection.execute_fetchall("SELECT job FROM ingestions WHERE status = 'running'")
    return [msgspec.json.decode(row[0], type=Ingestion) for row in rows]


async def newest(connection: aiosqlite.Connection, limit: int) -> list[Ingestion]:
    """The newest jobs, newest first."""
    rows = await connection.execute_fetchall(
        "SELECT job FROM ingestions ORDER BY number DESC LIMIT ?", [limit]
    )
    return [msgspec.json.decode(row[0], type=Ingestion) for row in rows]


async def find(connection: aiosqlite.Connection, job_id: str) -> Ingestion | None:
    """One job."""
    rows = await connection.execute_fetchall("SELECT job FROM ingestions WHERE job_id = ?", [job_id])
    return next((msgspec.json.decode(row[0], type=Ingestion) for row in rows), None)


async def files(connection: aiosqlite.Connection, uris: Sequence[str]) -> dict[str, StoredFile]:
    """What is stored under these uris."""
    rows = await connection.execute_fetchall(
        "SELECT uri, document_id, chunks, stamp FROM documents"
        " WHERE hidden = 0 AND uri IN (SELECT value FROM json_each(?))",
        [msgspec.json.encode(uris).decode()],
    )
    return {row[0]: StoredFile(*row[1:]) for row in rows}


async def set_stamps(connection: aiosqlite.Connection, stamps: Mapping[str, tuple[str, bytes]]) -> None:
    """Set the stamps of documents, by uri, unless their text has another digest by now."""
    await connection.executemany(
        "UPDATE documents SET stamp = ? WHERE uri = ? AND digest = ? AND hidden = 0",
        ((stamp, uri, digest) for uri, (stamp, digest) in stamps.items()),
    )


# A condition on documents, with the parameters of `range_under`.
UNDER = "hidden = 0 AND (uri = ? OR uri > ? AND uri < ?)"


def range_under(place: str) -> list[str]:
    """The parameters of UNDER: the uri of a file, or a folder with all that is below it."""
    # A range of the unique index on uri: "0" comes after "/".
    folder = place.rstrip("/")
    return [place, f"{folder}/", f"{folder}0"]


async def uris_under(connection: aiosqlite.Connection, place: str) -> list[str]:
    """The uris of all documents of a file or below a folder."""
    rows = await connection.execute_fetchall(
        f"SELECT uri FROM documents WHERE {UNDER} ORDER BY uri", range_under(place)
    )
    return [row[0] for row in rows]


def is_same(job: Ingestion, other: Ingestion) -> bool:
    """Whether two jobs are for the same request."""
    return _request(job) == _request(other)


def _row(job: Ingestion, now: float) -> list[str | float]:
    return [job.job_id, _request(job), job.status, job.run_id, now, _encoded(job)]


def _request(job: Ingestion) -> str:
    return msgspec.json.encode([job.sources, job.prune, job.within]).decode()


def _encoded(job: Ingestion) -> str:
    return msgspec.json.encode(job).decode()
