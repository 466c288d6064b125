"""Ingestion jobs.

A job belongs to the process with its `run_id`, which writes a beat about once a second. A job whose last beat
is too old belongs to a killed process; any other process of its machine may take it over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ragcommon.contract.files import Ingestion
from ragcommon.errors import DECODE_ERRORS
from ragmemory.stores.engine import StorePart

logger = logging.getLogger(__name__)

# Ended jobs that are kept.
KEPT = 100
_INSERT = (
    "INSERT INTO ingestions(job_id, request, status, run_id, job, machine, beat)"
    " VALUES(?, ?, ?, ?, ?, ?, {now})"
)
_SAME = "request = ? AND machine = ? AND status = 'running'"


class IngestionStore(StorePart):
    """The jobs of one memory."""

    @property
    def _select(self) -> str:
        """Select jobs, with the seconds since each running one was saved."""
        silence = f"CASE status WHEN 'running' THEN {self._engine.dialect.now} - beat ELSE 0 END"
        return f"SELECT job, {silence} FROM ingestions"

    @property
    def _insert(self) -> str:
        return _INSERT.format(now=self._engine.dialect.now)

    async def begin(self, job: Ingestion) -> Ingestion:
        """Store a new job, unless one for the same request runs on this machine; return the one that runs."""
        same = [_request(job), self._engine.machine]
        async with self._engine.transaction() as connection:
            rows = await connection.execute_fetchall(f"SELECT job, 0 FROM ingestions WHERE {_SAME}", same)
            for running in _decoded(rows):
                return running
            # Only damaged ones are left.
            await connection.execute(f"DELETE FROM ingestions WHERE {_SAME}", same)
            await connection.execute(self._insert, self._row(job))
            await connection.execute(
                "DELETE FROM ingestions WHERE status <> 'running'"
                " AND number <= (SELECT number FROM ingestions ORDER BY number DESC LIMIT 1 OFFSET ?)",
                [KEPT],
            )
        return job

    async def save(self, job: Ingestion) -> bool:
        """Store the progress of a job, which is a beat. False if it was cancelled or taken over.

        A job that is not stored yet, because the disk was full when it began, is added.
        """
        async with self._engine.transaction() as connection:
            cursor = await connection.execute(
                f"{self._insert} ON CONFLICT(job_id) DO UPDATE"
                " SET status = excluded.status, beat = excluded.beat, job = excluded.job"
                " WHERE ingestions.run_id = excluded.run_id AND ingestions.status = 'running'",
                self._row(job),
            )
            return cursor.rowcount > 0

    async def end(self, job: Ingestion) -> None:
        """Mark a job of another process as ended; that process stops at its next beat."""
        async with self._engine.transaction() as connection:
            await connection.execute(
                "UPDATE ingestions SET status = ?, job = ? WHERE job_id = ? AND status = 'running'",
                [job.status, _encoded(job), job.job_id],
            )

    async def of_others(self, run_id: str) -> list[Ingestion]:
        """The jobs that run in other processes of this machine."""
        sql = f"{self._select} WHERE status = 'running' AND run_id <> ? AND machine = ?"
        return _decoded(await self._engine.read(sql, [run_id, self._engine.machine]))

    async def take_over(self, job_id: str, run_id: str, silent_seconds: float) -> bool:
        """Take over a job, unless its process has saved it in the last seconds, or another has taken it."""
        async with self._engine.transaction() as connection:
            now = self._engine.dialect.now
            cursor = await connection.execute(
                f"UPDATE ingestions SET run_id = ?1, beat = {now} WHERE job_id = ?2"
                f" AND status = 'running' AND beat < {now} - ?3 AND run_id <> ?1 AND machine = ?4",
                [run_id, job_id, silent_seconds, self._engine.machine],
            )
            return cursor.rowcount > 0

    async def running(self) -> list[Ingestion]:
        """The jobs that run in any process."""
        return _decoded(await self._engine.read(f"{self._select} WHERE status = 'running'"))

    async def newest(self, limit: int) -> list[Ingestion]:
        """The newest jobs, newest first."""
        sql = f"{self._select} ORDER BY number DESC LIMIT ?"
        return _decoded(await self._engine.read(sql, [limit]))

    async def find(self, job_id: str) -> Ingestion | None:
        """One job."""
        rows = await self._engine.read(f"{self._select} WHERE job_id = ?", [job_id])
        return next(iter(_decoded(rows)), None)

    def _row(self, job: Ingestion) -> list[str]:
        return [job.job_id, _request(job), job.status, job.run_id, _encoded(job), self._engine.machine]


def is_same(job: Ingestion, other: Ingestion) -> bool:
    """Whether two jobs are for the same request."""
    return _request(job) == _request(other)


def _request(job: Ingestion) -> str:
    return msgspec.json.encode([job.sources, job.prune, job.within]).decode()


def _decoded(rows: Iterable[Sequence[Any]]) -> list[Ingestion]:
    """The jobs in the first column without damaged ones; the second one has the seconds of silence."""
    jobs = []
    for stored, silence in rows:
        try:
            job = msgspec.json.decode(stored, type=Ingestion)
            job.silent_seconds = max(0.0, float(silence))
            jobs.append(job)
        except DECODE_ERRORS as error:
            logger.warning("A stored job is damaged: %s", error)
    return jobs


def _encoded(job: Ingestion) -> str:
    return msgspec.json.encode(job).decode()
