"""Group commit: documents that arrive while a batch is in progress form the next batch.

A batch is one embedding call and one transaction, however many callers it answers. Two stages overlap: while
one batch is committed, the next is chunked and embedded. The queue only schedules; its callbacks do the work.

A long document is not batched, so that others need not wait for it: the submitting task prepares and commits
it, and cancelling that task ends the work.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from msgspec.structs import replace

from ragcommon.contract.documents import Injected
from ragmemory.errors import RagMemoryError
from ragmemory.types.writes import StagedDocument, Write

logger = logging.getLogger(__name__)

# Limits of a batch: they bound the wait of its first document, and its memory.
_DOCUMENTS = 256
_CHARACTERS = 2_000_000

LONG: Final = "long"
Prepared = Write | Injected | Exception | Literal["long"] | None
# Prepare documents without the write lock. For each: the outcome if nothing has to be written, its error,
# None if the batch has no room, LONG for a long document, else the write with chunks and embeddings.
Prepare = Callable[[Sequence[Write]], Awaitable[Sequence[Prepared]]]
# Prepare a long document; None means try again. Abandon removes what was not committed.
Build = Callable[[Write], Awaitable[Write | None]]
Abandon = Callable[[StagedDocument], Awaitable[None]]
# Commit writes. For each: the outcome, its error, or None if it has to be prepared again.
Commit = Callable[[Sequence[Write]], Awaitable[Sequence[Injected | Exception | None]]]
# Called after that; delays the outcomes, and the next commit, while the index lags.
KeepUp = Callable[[Sequence[Write]], Awaitable[None]]
# Called with the uri of a document, and its outcome or error.
OnOutcome = Callable[[str, Injected | Exception], None]


@dataclass(eq=False)
class _Job:
    """A document in the queue. When it has an outcome, it is put into `ended`, which its caller reads."""

    submitted: Write
    prepared: Write
    ended: asyncio.Queue[_Job]
    outcome: Injected | Exception | Literal["long"] | None = None
    is_done: bool = False

    def end(self, outcome: Injected | Exception | Literal["long"] | None) -> None:
        if not self.is_done:
            self.outcome, self.is_done = outcome, True
            self.ended.put_nowait(self)


@dataclass(eq=False)
class WriteQueue:
    """Documents with the same uri are written in the order of submission; no batch holds a uri twice."""

    _prepare: Prepare
    _commit: Commit
    _keep_up: KeepUp
    _build: Build
    _abandon: Abandon
    _ended: Callable[[], Exception]
    """Makes the error of documents that are submitted, or not written yet, when `run` ends."""

    def __post_init__(self) -> None:
        self._waiting: deque[_Job] = deque()
        self._in_progress: dict[str, _Job] = {}  # by uri
        self._has_ended = False
        self._preparing: list[_Job] = []
        self._preparation: anyio.CancelScope | None = None
        self._changed = anyio.Event()
        self._finished = anyio.Event()

    async def submit(self, write: Write) -> Injected:
        """Return after the commit. Raises the error of the write.

        If it is cancelled before the commit begins, nothing is written.
        """
        outcomes: list[Injected | Exception] = []
        await self.submit_all([write], lambda _, outcome: outcomes.append(outcome))
        [outcome] = outcomes
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def submit_all(self, writes: Sequence[Write], on_outcome: OnOutcome) -> None:
        """Submit documents with different uris; call `on_outcome` for each as soon as its outcome is known.

        Long ones are written last, one after another. If it is cancelled, what is not being committed is
        not written.
        """
        counts = Counter(write.document.uri for write in writes)
        if repeated := [uri for uri, count in counts.items() if count > 1]:
            raise ValueError(f"{repeated[0]} is submitted twice at once. Submit its texts one after another.")
        ended: asyncio.Queue[_Job] = asyncio.Queue()
        jobs = [_Job(write, write, ended) for write in writes]
        if self._has_ended:
            for job in jobs:
                job.end(self._ended())
        else:
            self._waiting += jobs
            self._changed.set()
        long = []
        try:
            for _ in jobs:
                job = await ended.get()
                if isinstance(job.outcome, Injected | Exception):
                    on_outcome(job.submitted.document.uri, job.outcome)
                else:
                    long.append(job)
            for job in long:
                try:
                    job.outcome = await self._submit_long(job.submitted)
                except Exception as error:
                    job.outcome = error
                self._release(job.submitted)
                on_outcome(job.submitted.document.uri, job.outcome)
        finally:
            for job in jobs:
                if job.outcome == LONG:
                    self._release(job.submitted)
                elif not job.is_done:
                    self._withdraw(job)

    async def _submit_long(self, write: Write) -> Injected:
        while not self._has_ended:
            prepared = await self._build(write)
            write = replace(write, on_progress=None)  # Progress never falls: a further attempt reports none.
            if prepared is None:
                continue
            try:
                [outcome] = await self._commit([prepared])
            finally:
                if prepared.staged:
                    await self._abandon(prepared.staged)
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                return outcome
        raise self._ended()

    def _withdraw(self, job: _Job) -> None:
        """The caller was cancelled: stop work that serves only this job."""
        job.is_done = True
        if job in self._waiting:
            self._waiting.remove(job)
            self._finished.set()
        if self._preparation and all(other.is_done for other in self._preparing):
            self._preparation.cancel()

    @property
    def waiting(self) -> int:
        """How many submitted documents are not on the disk yet."""
        return len(self._waiting) + len(self._in_progress)

    async def idle(self) -> None:
        """Return when the queue is empty and nothing is in progress."""
        while self._waiting or self._in_progress:
            if self._finished.is_set():
                self._finished = anyio.Event()
            await self._finished.wait()

    async def run(self) -> None:
        """Work until cancelled. Pending and later submissions then raise `ended()`."""
        send, receive = anyio.create_memory_object_stream[list[_Job]]()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._prepare_batches, send)
                tasks.start_soon(self._commit_batches, receive)
        finally:
            self._has_ended = True
            for job in (*self._waiting, *self._in_progress.values()):
                job.end(self._ended())
            self._waiting.clear()
            self._in_progress.clear()
            self._finished.set()

    async def _prepare_batches(self, send: ObjectSendStream[list[_Job]]) -> None:
        async with send:
            while True:
                while not (batch := self._take()):
                    self._changed = anyio.Event()
                    await self._changed.wait()
                if ready := await self._prepare_batch(batch):
                    await send.send(ready)

    def _take(self) -> list[_Job]:
        """The next batch: the longest-waiting documents whose uri is not in progress."""
        batch: list[_Job] = []
        skipped: deque[_Job] = deque()
        characters = 0
        while self._waiting and len(batch) < _DOCUMENTS and characters < _CHARACTERS:
            job = self._waiting.popleft()
            uri = job.submitted.document.uri
            if uri in self._in_progress:
                skipped.append(job)
            else:
                self._in_progress[uri] = job
                batch.append(job)
                characters += len(job.submitted.document.text)
        self._waiting.extendleft(reversed(skipped))
        return batch

    async def _prepare_batch(self, batch: list[_Job]) -> list[_Job]:
        """Prepare a batch; return the jobs to commit."""
        outcomes: Sequence[Prepared] = [None] * len(batch)
        with anyio.CancelScope() as scope:
            self._preparing, self._preparation = batch, scope
            try:
                outcomes = await self._prepare([job.submitted for job in batch])
            except Exception as error:
                if not isinstance(error, RagMemoryError):  # Those are expected: the callers report them.
                    logger.exception("A batch could not be prepared")
                outcomes = [error] * len(batch)
        self._preparation = None
        ready, full = [], []
        for job, outcome in zip(batch, outcomes, strict=True):
            if job.is_done:  # Withdrawn.
                self._release(job.submitted)
            elif isinstance(outcome, Write):
                job.prepared = outcome
                ready.append(job)
            elif outcome is None:
                full.append(job)
            elif outcome == LONG:  # The uri stays in progress.
                job.end(LONG)
            else:
                self._finish(job, outcome)
        self._requeue(full)
        return ready

    async def _commit_batches(self, receive: ObjectReceiveStream[list[_Job]]) -> None:
        async with receive:
            async for batch in receive:
                await self._commit_batch(batch)

    async def _commit_batch(self, batch: list[_Job]) -> None:
        outcomes: Sequence[Injected | Exception | None] = ()
        for job in batch:
            if job.is_done:  # Withdrawn.
                self._release(job.submitted)
        batch = [job for job in batch if not job.is_done]
        if not batch:
            return
        writes = [job.prepared for job in batch]
        try:
            outcomes = await self._commit(writes)
            await self._keep_up(writes)
        except Exception as error:
            outcomes = outcomes or [error] * len(batch)
        finally:  # If the end comes after the commit, the callers get their outcomes all the same.
            if outcomes:
                self._settle(batch, outcomes)

    def _settle(self, batch: list[_Job], outcomes: Sequence[Injected | Exception | None]) -> None:
        retry = []
        for job, outcome in zip(batch, outcomes, strict=True):
            if outcome is None and not job.is_done:
                retry.append(job)
            else:
                self._finish(job, outcome)
        self._requeue(retry)

    def _requeue(self, jobs: list[_Job]) -> None:
        """Put jobs back at the head of the queue."""
        for job in jobs:
            self._in_progress.pop(job.submitted.document.uri, None)
        self._waiting.extendleft(reversed(jobs))
        self._changed.set()

    def _finish(self, job: _Job, outcome: Injected | Exception | None) -> None:
        job.end(outcome)
        self._release(job.submitted)

    def _release(self, write: Write) -> None:
        """Let the next document with this uri proceed."""
        self._in_progress.pop(write.document.uri, None)
        self._changed.set()
        self._finished.set()
