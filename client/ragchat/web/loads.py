"""The loads that the page has begun, which go on while it shows something else; and all jobs of memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import TaskGroup

from ragchat.formatting import utc_now
from ragchat.ingest.report import InjectReport, OnProgress, Progress
from ragchat.memory.client import MemoryClient
from ragchat.sanitize import one_line
from ragchat.uris import short_uri
from ragchat.web.errors import NotFound, error_document
from ragcommon.contract.files import Ingestion
from ragmcp.concurrency import background_task

KEPT = 20
FAILURES = 20  # listed of one load


@dataclass(eq=False)
class Load:
    """A load of this page. `report.group` undoes it, and is its id."""

    what: str
    report: InjectReport
    started_at: str = field(default_factory=utc_now)
    progress: Progress = field(default_factory=lambda: Progress(0, 0))
    status: str = "running"
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    outcome: dict[str, Any] = field(default_factory=lambda: {"summary": "", "failures": [], "changes": False})

    def end(self, status: str, error: str = "") -> None:
        report, self.status = self.report, status
        lines = [*filter(None, [error]), *report.failures(FAILURES, error), *report.remarks(FAILURES, "Sync")]
        self.outcome = {
            "summary": report.summary() if report.outcomes or report.texts or not error else "",
            "failures": [one_line(line) for line in lines],
            "changes": bool(report.count("added") + report.count("updated") + len(report.pruned)),
        }

    def public(self) -> dict[str, Any]:
        group = self.report.group
        return {"id": group, "group": group, **_begun(self.what, self.status, self.progress), **self.outcome}


class Loads(AsyncContextManagerMixin):
    """The loads of this page, each in a task of its own until it ends or the page is stopped."""

    def __init__(self) -> None:
        self._loads: dict[str, Load] = {}
        self._tasks: TaskGroup

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncIterator[Self]:
        async with background_task() as self._tasks:
            yield self

    def start(self, what: str, report: InjectReport, work: Callable[[OnProgress], Awaitable[Any]]) -> str:
        """Begin a load, which fills the report; the id of its job."""
        load = self._loads[report.group] = Load(what, report)
        for id in [*self._loads][:-KEPT]:
            if self._loads[id].status != "running":
                del self._loads[id]
        self._tasks.start_soon(self._run, load, work)
        return report.group

    async def all(self, memory: MemoryClient) -> list[dict[str, Any]]:
        """The last jobs, newest first: those of this page, and the others that memory knows of."""
        others = [job for job in await memory.ingestions(KEPT) if job.group not in self._loads]
        jobs = [(load.started_at, load.public()) for load in self._loads.values()]
        jobs += [(job.started_at, _job(job)) for job in others]
        return [job for _, job in sorted(jobs, key=lambda one: one[0], reverse=True)[:KEPT]]

    async def cancel(self, memory: MemoryClient, id: str) -> None:
        """What a load has stored stays. Raises NotFound, MemoryRefused."""
        if (load := self._loads.get(id)) is not None:
            load.scope.cancel()
        elif any(job.job_id == id for job in await memory.ingestions(KEPT)):
            await memory.cancel_ingestion(id)
        else:
            raise NotFound("job of that id")

    async def _run(self, load: Load, work: Callable[[OnProgress], Awaitable[Any]]) -> None:
        def on_progress(progress: Progress) -> None:
            load.progress = progress

        with load.scope:
            try:
                await work(on_progress)
                load.end("completed")
            except Exception as error:
                failure = error_document(error)["error"]
                load.end("failed", f"{failure['message']} {failure['hint']}".rstrip())
        if load.scope.cancelled_caught:
            load.end("cancelled")


def _begun(what: str, status: str, progress: Progress) -> dict[str, Any]:
    """What a load is, and how far it is."""
    return {
        "what": what,
        "status": status,
        "files": progress.files,
        "done": progress.done_files,
        "bytes": progress.bytes,
        "done_bytes": progress.done_bytes,
        "scanning": one_line(progress.scanning),
    }


def _job(job: Ingestion) -> dict[str, Any]:
    """A job that another program has begun."""
    names = [short_uri(uri) for uri in job.sources[:3]]
    if len(job.sources) > len(names):
        names.append(f"{len(job.sources) - len(names):,} more")
    counts = {
        name: getattr(job, name) for name in ("added", "updated", "unchanged", "failed", "removed", "skipped")
    }
    summary = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
    failures = [one.error or f"{short_uri(one.uri)} {one.reason}" for one in job.failures[:FAILURES]]
    if job.error:
        failures.insert(0, f"{job.error.message} {job.error.hint}".rstrip())
    what = f"{'Sync' if job.prune else 'Load'} of {', '.join(names)}"
    progress = Progress(job.files, job.bytes, job.done, job.done_bytes, scanning=job.scanning)
    return {
        "id": job.job_id,
        "group": job.group,
        **_begun(what, job.status, progress),
        "summary": "" if job.status == "running" else f"{summary or 'Nothing to load'}.",
        "failures": [one_line(line) for line in failures],
        "changes": bool(job.added + job.updated + job.removed),
    }
