"""Loading files and texts into memory: start a job of the memory server, and follow it to its end.

The report is filled as files are stored, so that an interrupted caller can still say what was done.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from ragchat.errors import MemoryRefused, RagChatError
from ragchat.ingest.report import Document, InjectReport, OnProgress, Progress
from ragchat.ingest.uploading import check_offered, upload
from ragcommon.contract.errors import FATAL
from ragcommon.contract.files import Ingestion
from ragcommon.files.uris import is_address

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient

# How long one request waits for a job to end. The progress bar moves this often.
WAIT_SECONDS = 0.5
# The number of restarts after which a caller stops waiting for the jobs of other processes.
JOBS_OF_OTHERS = 20
# How long a cancelled caller waits for the job to end.
CANCEL_SECONDS = 2.0


async def load_files(
    memory: MemoryClient,
    paths: Iterable[str | Path],
    on_progress: OnProgress | None = None,
    report: InjectReport | None = None,
    *,
    prune: bool = False,
) -> InjectReport:
    """Load every file that `paths` name or contain, and every page; a bad one never stops the rest.

    With `prune`, remove the documents of the folders whose files no longer exist. `report` is filled on the
    way, for a caller that may be cancelled: that ends the job. Raises RagChatError when memory cannot go on.
    """
    report = report or InjectReport()
    if words := [source_uri(path) for path in paths]:
        start = partial(memory.start_ingestion, words, prune=prune, group=report.group)
        await _load(memory, start, on_progress, report)
    return report


async def sync_files(
    memory: MemoryClient,
    paths: Iterable[str | Path] = (),
    on_progress: OnProgress | None = None,
    report: InjectReport | None = None,
    *,
    within: Iterable[str | Path] = (),
) -> InjectReport:
    """Bring memory in step with `paths`, or else with all sources.

    New and changed files are loaded, documents whose files are gone are removed. Of folders only what is
    `within` is synced, unless that is empty. Otherwise like `load_files`.
    """
    report = report or InjectReport()
    words = [source_uri(path) for path in paths]
    parts = [source_uri(path) for path in within]
    await _load(memory, partial(memory.sync_sources, words, parts, report.group), on_progress, report)
    return report


async def _load(
    memory: MemoryClient,
    start: Callable[[], Awaitable[Ingestion]],
    on_progress: OnProgress | None,
    report: InjectReport,
) -> None:
    """Start a job, and fill the report until it ends.

    For a server on another machine, the files are read first, and reported when they are uploaded.
    """
    if memory.mirror is None:
        await _run(memory, start, on_progress, report)
        return
    await check_offered(memory)
    read = InjectReport(group=report.group)
    job = await _run(memory, start, on_progress, read)
    await upload(memory, memory.mirror, job, read.outcomes, on_progress, report)


async def _run(
    memory: MemoryClient,
    start: Callable[[], Awaitable[Ingestion]],
    on_progress: OnProgress | None,
    report: InjectReport,
) -> Ingestion:
    """Start a job, and fill the report until it ends. Returns the job."""
    job = await start()
    try:
        job = await _follow(memory, job, report, on_progress)
        repeated: set[str] = set()
        for _ in range(JOBS_OF_OTHERS):
            is_of_another = not report.outcomes and (job.files or job.status == "cancelled")
            if not is_of_another or job.status in repeated:
                break
            # Try again once after a cancellation or a failure: a second one concerns this job too.
            if job.status != "completed":
                repeated.add(job.status)
            # Another process ran the same job, or was killed. In a new one, its files count as unchanged;
            # that may be the job of a third process, which waited as well.
            job = await start()
            job = await _follow(memory, job, report, on_progress)
    except anyio.get_cancelled_exc_class():
        with anyio.move_on_after(CANCEL_SECONDS, shield=True):
            await memory.cancel_ingestion(job.job_id)
            await _follow(memory, job, report, None)
        raise
    if job.error is not None:
        raise MemoryRefused(job.error.code, job.error.message, job.error.hint)
    return job


async def _follow(
    memory: MemoryClient, job: Ingestion, report: InjectReport, on_progress: OnProgress | None
) -> Ingestion:
    """Fill the report until the job ends."""
    run_id, seen = job.run_id, len(report.outcomes)
    while True:
        status = await memory.ingestion(job.job_id, seen, WAIT_SECONDS)
        job = status.job
        if job.run_id != run_id:  # After a kill, another process begins the job again.
            run_id, seen = job.run_id, 0
            report.outcomes.clear()
            continue
        seen += len(status.outcomes)
        report.outcomes += status.outcomes
        report.files, report.begun, report.done = job.files, job.begun, job.done
        if on_progress is not None:
            on_progress(Progress(job.files, job.bytes, job.done, job.done_bytes, job.scanning))
        if job.status != "running" and not status.outcomes:
            report.outcomes.sort(key=lambda outcome: outcome.number)
            return job


def source_uri(path: str | Path) -> str:
    """The URI of a path, which need not be UTF-8, or of a URI; the address of a web page as it is.

    The server refuses an empty path, and resolves `~`.
    """
    words = os.fspath(path)
    is_left_to_server = not words or words.startswith(("~", "file://")) or is_address(words)
    return words if is_left_to_server else Path(words).absolute().as_uri()


async def load_text(memory: MemoryClient, text: str, metadata: dict[str, Any], group: str = "") -> Document:
    """Load one document. Raises RagChatError if every other document would fail as well."""
    try:
        injected = await memory.inject(text, metadata, group)
    except MemoryRefused as error:
        if error.word in FATAL:
            raise
        return failed(metadata.get("uri", ""), error)
    return Document(injected.uri, injected.document_id, injected.status, injected.chunks)


def failed(uri: str, error: RagChatError) -> Document:
    return Document(uri, None, "failed", error=str(error))
