"""Ingestion: background jobs that load files and folders into memory.

A job walks its paths, and loads the files that are new or changed (`loading`). Its progress is in the
database: if the process is killed, another one of the same machine restarts the job, which skips the files
already stored.

Several machines may share a memory, each with files of its own. A job removes, or reports as missing, only
what its own machine has loaded: it does not see the files of the others.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Container, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import from_thread, to_thread
from msgspec.structs import replace

from ragcommon.contract.files import FileOutcome, Ingestion, SyncOutcome
from ragcommon.contract.history import Origin
from ragcommon.errors import StructuredError, leaf, of_the_system
from ragcommon.files.uris import HIDDEN, USERINFO, is_address, path_of
from ragconfig.home import UnknownHome, user_path
from ragconfig.repository import may_hold, root_of
from ragmemory.errors import (
    BadArgument,
    IngestionFailed,
    IngestionGivenUp,
    IngestionNotFound,
    MemoryFull,
    MemoryReadOnly,
    PagesNotAllowed,
    PathNotAllowed,
    RagMemoryError,
)
from ragmemory.files.formats.image import NOT_READ
from ragmemory.files.loading import STILL_HELD, JobRun, Loading, end_job, now, size_of
from ragmemory.files.reading import is_found_from
from ragmemory.files.roots import ANY_ROOT, is_within, of_stored
from ragmemory.files.walking import (
    MADE,
    MISSING,
    SECRET,
    FoundFiles,
    Subset,
    find_files,
    has_files,
    is_gone,
    refused,
    resolved,
)
from ragmemory.stores.ingestions import is_same

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import TaskGroup

    from ragmemory.files.ocr import Ocr
    from ragmemory.ingest.writer import Writer
    from ragmemory.stores.store import Store
    from ragmemory.web.fetching import Web

logger = logging.getLogger(__name__)

# Seconds between two heartbeats of a job, and without a heartbeat until its process counts as killed.
BEAT_SECONDS = 1.0
SILENT_SECONDS = 5.0
# The same if another process may read its files, but not this one: it may be starting again.
ABANDONED_SECONDS = 600.0
# A job is given up after so many kills in a row without a stored document: a file may need too much memory.
MAX_RESUMED = 4
# Ended jobs whose outcomes stay in memory, and the total of outcomes: 100,000 take about 40 MB. The newest
# job is always kept.
KEPT_RUNS = 10
KEPT_OUTCOMES = 100_000
# Reasons, as the end of a sentence. NOTHING_REMOVED follows the reason why a sync does not prune a folder;
# IGNORED is why it removes the document of an existing file.
OUTSIDE = "is outside the repository whose memory this is"
NOTHING_REMOVED = ", so nothing is removed. Is the disk mounted?"
IGNORED = "is excluded by .gitignore"


def may_use(memory: Path, uri: str) -> bool:
    """Whether a path stored in a memory may be used: see `repository.may_hold`."""
    if is_address(uri):
        return root_of(memory) is None  # Others may have written the memory of a repository.
    try:
        return may_hold(memory, path_of(uri))
    except ValueError:  # Not a valid file URI: not written by this program.
        return False


class Ingestions:
    """The jobs of one memory. `roots`: the folders whose files may be read; "*": all.

    `web` loads pages; None: this process must not, because others than its user may call it.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        roots: Sequence[str],
        tasks: TaskGroup,
        *,
        web: Web | None = None,
        ocr: Ocr | None = None,
    ) -> None:
        """Jobs run in `tasks`; `ocr` reads scanned pages."""
        self.web = web
        self._store = store
        self._writer = writer
        self.roots = roots
        self._tasks = tasks
        self._ocr = ocr
        self._run_id = os.urandom(8).hex()
        self._runs: dict[str, JobRun] = {}
        self._woken = anyio.Event()

    def wake(self) -> None:
        """Check soon for jobs of killed processes."""
        self._woken.set()

    async def run(self) -> None:
        """Resume jobs of killed processes whenever woken, until cancelled."""
        while True:
            await self._woken.wait()
            self._woken = anyio.Event()
            try:
                await self._take_over()
            except RagMemoryError as error:
                logger.warning("Ingestions of killed processes were not resumed: %s", error)

    async def _take_over(self) -> None:
        while others := await self._store.ingestions.of_others(self._run_id):
            limits = [self._silence_limit(job) for job in others]
            left = [limit - job.silent_seconds for limit, job in zip(limits, others, strict=True)]
            await anyio.sleep(max(BEAT_SECONDS, min(SILENT_SECONDS, *left)))
            for limit, job in zip(limits, others, strict=True):
                if await self._store.ingestions.take_over(job.job_id, self._run_id, limit):
                    await self._resume(job)

    async def _resume(self, job: Ingestion) -> None:
        sources = _files(job)
        if not sources or not all(map(self._may_resume, sources)):
            logger.warning("The ingestion %s is not resumed: its sources may not be read", job.job_id)
            end_job(job, "cancelled")
            await self._store.ingestions.end(job)
            return
        resumed = 0 if job.added or job.updated else job.resumed + 1
        if resumed > MAX_RESUMED:
            error = IngestionGivenUp(resumed)
            logger.warning("The ingestion %s is not resumed: %s", job.job_id, error)
            end_job(job, "failed", error)
            await self._store.ingestions.end(job)
            return
        logger.info("Resuming the ingestion %s", job.job_id)
        ids = job.job_id, sources, job.prune, self._run_id, job.group, job.started_at
        fresh = Ingestion(*ids, within=job.within, resumed=resumed)
        await self._store.ingestions.save(fresh)  # It counts even if this process is killed at once.
        roots = of_stored(self._store.path, self.roots)
        self._start(JobRun(fresh, Origin("ingestion", job.job_id, job.group), roots))

    def _silence_limit(self, job: Ingestion) -> float:
        """The seconds for which a job may be silent until this process takes it over."""
        return ABANDONED_SECONDS if any(map(self._is_for_others, _files(job))) else SILENT_SECONDS

    def _is_for_others(self, source: str) -> bool:
        """Whether another process may read a file, but not this one."""
        return not self._is_allowed(source) and may_use(self._store.path, source)

    def _may_resume(self, source: str) -> bool:
        return self._is_allowed(source) and may_use(self._store.path, source)

    def _is_allowed(self, source: str) -> bool:
        with suppress(BadArgument, PathNotAllowed):
            self.allowed(source)
            return True
        return False

    async def start(
        self,
        sources: Sequence[str],
        *,
        prune: bool,
        origin: Origin,
        within: Sequence[str] = (),
        are_stored: bool = False,
    ) -> Ingestion:
        """Start to load files and folders (paths or file URIs), or return the running job for the same ones.

        `within` limits the walk to these files and folders. `are_stored`: the sources come from the memory,
        not from the user. Raises BadArgument, PathNotAllowed.
        """
        uris = [self.allowed(source) for source in dict.fromkeys(sources)]
        job_id = os.urandom(8).hex()
        group = origin.group or job_id
        parts = [self._resolved_uri(source) for source in dict.fromkeys(within)]
        job = Ingestion(job_id, uris, prune, self._run_id, group, now(), within=parts)
        try:
            running = await self._begin(job)
        except (MemoryFull, MemoryReadOnly) as error:
            # Run the job anyway, and save it once that is possible: unchanged files need no writes, and the
            # others report the error.
            logger.warning("The ingestion %s was not saved: %s", job_id, error)
            running = self._running_here(job) or job
        if running.job_id == job_id:
            roots = of_stored(self._store.path, self.roots) if are_stored else self.roots
            self._start(JobRun(job, replace(origin, group=group), roots))
            return job
        if running.run_id != self._run_id:
            self.wake()
        return running

    async def _begin(self, job: Ingestion) -> Ingestion:
        """Store a new job, or return the running one for the same request."""
        running = await self._store.ingestions.begin(job)
        run = self._runs.get(running.job_id)
        if run is not None and run.ended.is_set():
            # Its end could not be saved, for example because the disk was full.
            await self._store.ingestions.save(run.job)
            running = await self._store.ingestions.begin(job)
        return running

    def _running_here(self, job: Ingestion) -> Ingestion | None:
        """The running job of this process for the same request."""
        same = (run.job for run in self._runs.values() if not run.ended.is_set() and is_same(run.job, job))
        return next(same, None)

    def _start(self, run: JobRun) -> None:
        ended = [other for other in self._runs.values() if other.ended.is_set()]
        for number, other in enumerate(ended[:-1]):
            outcomes = sum(len(kept.outcomes) for kept in ended[number:])
            if len(ended) - number > KEPT_RUNS or outcomes > KEPT_OUTCOMES:
                del self._runs[other.job.job_id]
        self._runs[run.job.job_id] = run
        self._tasks.start_soon(self._work_on, run)

    async def status(
        self, job_id: str, after: int = 0, limit: int = 1000, wait_seconds: float = 0.0
    ) -> tuple[Ingestion, list[FileOutcome]]:
        """A job, and the outcomes of its files from index `after` on, if it runs in this process.

        Waits at most `wait_seconds` for its end. Raises IngestionNotFound.
        """
        run = self._runs.get(job_id)
        if run is None:
            return await self._stored(job_id, wait_seconds), []
        with anyio.move_on_after(wait_seconds):
            await run.ended.wait()
        run.update()
        return run.job, run.outcomes[after : after + limit]

    async def _stored(self, job_id: str, wait_seconds: float = 0.0) -> Ingestion:
        """A job of another process."""
        until = anyio.current_time() + wait_seconds
        while True:
            job = await self._store.ingestions.find(job_id)
            if job is None:
                raise IngestionNotFound(job_id)
            left = until - anyio.current_time()
            if job.status != "running" or left <= 0:
                return job
            await anyio.sleep(min(left, BEAT_SECONDS))

    async def cancel(self, job_id: str) -> Ingestion:
        """Cancel a job. Stored documents stay. Raises IngestionNotFound."""
        run = self._runs.get(job_id)
        if run is not None:
            run.scope.cancel()
            await run.ended.wait()
            return run.job
        job = await self._stored(job_id)
        if job.status == "running":
            end_job(job, "cancelled")
            await self._store.ingestions.end(job)
        return job

    async def cancel_group(self, group: str) -> None:
        """Cancel the jobs whose writes belong to a group."""
        unsaved = [run.job for run in self._runs.values() if not run.ended.is_set()]
        for job in [*unsaved, *await self._store.ingestions.running()]:
            if job.group == group:
                await self.cancel(job.job_id)

    async def newest(self, limit: int) -> list[Ingestion]:
        """The newest jobs, newest first."""
        jobs = await self._store.ingestions.newest(limit)
        return [self._runs[job.job_id].job if job.job_id in self._runs else job for job in jobs]

    def allowed(self, source: str) -> str:
        """The URI of a path, without resolving links; "" for "". Raises BadArgument, PathNotAllowed.

        Of an address: its normal form, without a password; PagesNotAllowed, unless this process loads pages.
        """
        if is_address(source):
            source = USERINFO.sub(HIDDEN, source)
            if self.web is None:
                raise PagesNotAllowed(source)
            return self.web.named(source)
        try:
            path = user_path(_path(source) or ".")
        except ValueError:
            raise BadArgument("paths", f"must be paths or URIs of files, not {source}") from None
        except UnknownHome:
            if ANY_ROOT in self.roots:
                return source  # The walk reports the same error.
            raise PathNotAllowed(source) from None
        if "\0" in str(path):
            raise BadArgument("paths", "must not contain NUL characters")
        # An early error: the walk checks the path again when it opens it.
        if not is_within(self.roots, resolved(path)):
            raise PathNotAllowed(path.as_uri())
        return path.as_uri() if source else source

    def _resolved_uri(self, source: str) -> str:
        """The URI of the resolved path. Raises BadArgument, PathNotAllowed."""
        uri = self.allowed(source)
        if not uri.startswith("file:"):
            raise BadArgument("within", f"must name files and folders, not {source!r}")
        return resolved(path_of(uri)).as_uri()

    # One job

    async def _work_on(self, run: JobRun) -> None:
        try:
            with run.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._beat, run)
                    await self._load(run)
                    tasks.cancel_scope.cancel()
            if run.scope.cancelled_caught and run.loading is not None:
                await run.loading.settle()
            run.end("cancelled" if run.scope.cancelled_caught else "completed")
        except* Exception as group:
            error = leaf(group)
            if not isinstance(error, RagMemoryError):
                logger.error("The ingestion %s failed", run.job.job_id, exc_info=group)
            run.end("failed", _in_words(error))
        try:
            if not await self._store.ingestions.save(run.job):
                await self._hand_over(run)
            if run.job.prune and run.job.status != "running":
                await self._store.sources.note_sync(_sync_outcomes(run))
        except RagMemoryError as error:
            logger.warning("The end of the ingestion %s was not saved: %s", run.job.job_id, error)
        run.ended.set()

    async def _hand_over(self, run: JobRun) -> None:
        """Another process has cancelled the job, or has taken it over for want of a heartbeat."""
        run.job = await self._store.ingestions.find(run.job.job_id) or run.job
        if run.job.status == "running":
            del self._runs[run.job.job_id]

    async def _beat(self, run: JobRun) -> None:
        """Save the job every BEAT_SECONDS; stop if another process has cancelled it or taken it over."""
        while True:
            await anyio.sleep(BEAT_SECONDS)
            run.update()
            try:
                if not await self._store.ingestions.save(run.job):
                    run.scope.cancel()
            except RagMemoryError as error:
                logger.warning("The progress of the ingestion %s was not saved: %s", run.job.job_id, error)

    async def _load(self, run: JobRun) -> None:
        job = run.job
        subset = Subset(map(path_of, job.within))
        addresses = [source for source in job.sources if is_address(source)]
        paths = [_path(source) for source in job.sources if not is_address(source)]
        image_refusal = self._ocr.image_refusal if self._ocr else NOT_READ
        check = from_thread.check_cancelled
        find = partial(find_files, paths, self._store.path, check, subset, run.roots, image_refusal)
        found = await to_thread.run_sync(find, abandon_on_cancel=True)
        held = await self._still_held(found)
        for refusal in found.refusals:
            if job.prune and refusal.reason == MISSING:
                refusal = replace(refusal, reason=MISSING + NOTHING_REMOVED)
            elif refusal.uri in held:
                refusal = replace(refusal, status="skipped", reason=refusal.reason + STILL_HELD)
            run.add(refusal)
        job.files = len(found.files)
        job.bytes = size_of(found.files)
        run.loading = Loading(self._store, self._writer, found.files, run, self._ocr)
        await run.loading.run()
        if self.web is not None and addresses:
            from ragmemory.files.pages import PageLoading  # with the HTTP client

            await PageLoading(self._store, self._writer, self.web, addresses, run, self._ocr).run()
        seen = {file.uri for file in found.files}
        for folder in found.folders:
            unseen = await self._unseen(subset.of(folder), seen)
            missing = await to_thread.run_sync(lambda uris: list(filter(is_gone, uris)), unseen)
            missing += await self._moved(found, folder, seen)
            if missing:
                await self._report_missing(run, folder, missing)
                seen.update(missing)
            if job.prune and (ignored := await self._ignored(found, folder, unseen)):
                await self._writer.forget_all(ignored, run.origin, self._store.engine.machine)
                for uri in ignored:
                    run.add(FileOutcome(uri, "removed", reason=IGNORED))
                seen.update(ignored)

    async def _still_held(self, found: FoundFiles) -> set[str]:
        """The files of keys, and those made from others, that an earlier release loaded with their folder."""
        uris = [refusal.uri for refusal in found.refusals if refusal.reason in (MADE, SECRET)]
        stored = await self._store.documents.files(uris) if uris else {}
        return {
            uri
            for uri, file in stored.items()
            # Development versions did not note from where.
            if "@" not in file.stamp or any(is_found_from(file.stamp, folder) for folder in found.folders)
        }

    async def _unseen(self, paths: Sequence[Path], seen: Container[str]) -> list[str]:
        """URIs of documents under these paths that this machine has loaded and the walk has not found."""
        documents, machine = self._store.documents, self._store.engine.machine
        stored = [uri for path in paths for uri in await documents.uris_under(path.as_uri(), machine)]
        return [uri for uri in dict.fromkeys(stored) if uri not in seen]

    async def _moved(self, found: FoundFiles, folder: Path, seen: Container[str]) -> list[str]:
        """Documents of files that this folder holds, by the path of a link to it that was a folder before."""
        links = [link for link, target in found.links.items() if target == folder]
        stored = [(uri, link) for link in links for uri in await self._unseen([link], ())]
        return [uri for uri, link in stored if (folder / path_of(uri).relative_to(link)).as_uri() in seen]

    async def _ignored(self, found: FoundFiles, folder: Path, uris: Sequence[str]) -> list[str]:
        """The documents that an earlier walk of `folder` found and .gitignore excludes now.

        Ignored files stay if the user named them or a folder that contains them.
        """
        excluded = [uri for uri in uris if found.ignores(path_of(uri))]
        stored = await self._store.documents.files(excluded)
        return [uri for uri, file in stored.items() if is_found_from(file.stamp, folder)]

    async def _report_missing(self, run: JobRun, folder: Path, missing: Sequence[str]) -> None:
        """Remove the documents if the job prunes, unless the folder holds no files at all."""
        prune = run.job.prune
        if prune and not await to_thread.run_sync(has_files, folder):
            prune = False
            run.add(refused(folder, "holds no files" + NOTHING_REMOVED, failed=False))
        if prune:
            await self._writer.forget_all(missing, run.origin, self._store.engine.machine)
        for uri in missing:
            run.add(FileOutcome(uri, "removed" if prune else "missing"))


def _files(job: Ingestion) -> list[str]:
    """The sources of a job that may be resumed: only what the user of this process names is fetched."""
    return [source for source in job.sources if not is_address(source)]


def _path(source: str) -> str:
    """The path of a file URI or path."""
    return str(path_of(source)) if source.startswith("file:") else source


def _sync_outcomes(run: JobRun) -> dict[str, SyncOutcome]:
    """The outcome of each source that a job looked at, by the URI of its resolved path."""
    outcomes, subset = {}, Subset(map(path_of, run.job.within))
    for source in filter(None, run.job.sources):
        uri = source if is_address(source) else resolved(path_of(source)).as_uri()
        if is_address(source) or subset.leads_to(path_of(uri)):
            outcomes[uri] = _sync_outcome(run, {source, uri})
    return outcomes


def _sync_outcome(run: JobRun, uris: set[str]) -> SyncOutcome:
    """The outcome of one source, which is known by these URIs."""
    job = run.job
    below = tuple(f"{uri.rstrip('/')}/" for uri in uris if not is_address(uri))
    mine = [one for one in run.outcomes if one.uri in uris or one.uri.startswith(below)]
    error = job.error.message if job.error else ""
    if failed := next((one for one in mine if one.uri in uris and one.status == "failed"), None):
        name = failed.uri if is_address(failed.uri) else path_of(failed.uri)
        error = error or failed.error or f"{name} {failed.reason}"
    status = "failed" if error else job.status
    assert status != "running"
    return SyncOutcome(status, Counter(one.status for one in mine), error)


def _in_words(error: BaseException) -> StructuredError:
    return error if isinstance(error, RagMemoryError) else of_the_system(error) or IngestionFailed(str(error))
