"""Group commit: documents that wait while a batch is under way become the next batch.

A batch is one embedding call and one transaction, however many calls it answers. Two stages overlap: while
one batch is being committed, the next is chunked and embedded. What is done to a batch is not known here.

A long document is in no batch, so that others need not wait for it: it is prepared by the task that submitted
it, and ends with that task.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from ragmemory.types import Built, Injected, Write

logger = logging.getLogger(__name__)

# Bounds of a batch: how long the first of it waits for the last, and how much lies in memory.
_DOCUMENTS = 256
_CHARACTERS = 2_000_000

LONG: Final = "long"
Prepared = Write | Injected | Exception | Literal["long"] | None
# What can be done without the write lock: an outcome where nothing is to be written, an error where it
# failed, None where there was no room, LONG for a long document, else the write with chunks and embeddings.
Prepare = Callable[[Sequence[Write]], Awaitable[Sequence[Prepared]]]
# Prepare a long document; None to try again. The other gives up what was not committed.
Build = Callable[[Write], Awaitable[Write | None]]
Abandon = Callable[[Built], Awaitable[None]]
# Write them: the outcome, an error where one alone failed; None where a write needs to be prepared again.
Commit = Callable[[Sequence[Write]], Awaitable[Sequence[Injected | Exception | None]]]


@dataclass(eq=False)
class _Job:
    """A document on its way, and whoever waits for it."""

    asked: Write
    prepared: Write
    done: anyio.Event = field(default_factory=anyio.Event)
    outcome: Injected | Exception | Literal["long"] | None = None

    @property
    def is_done(self) -> bool:
        return self.done.is_set()


class Intake:
    """Documents of one uri are written in the order they came; no batch holds a uri twice."""

    def __init__(self, prepare: Prepare, commit: Commit, build: Build, abandon: Abandon) -> None:
        self._prepare = prepare
        self._commit = commit
        self._build = build
        self._abandon = abandon
        self._waiting: deque[_Job] = deque()
        self._under_way: set[str] = set()
        self._preparing: list[_Job] = []
        self._preparation: anyio.CancelScope | None = None
        self._changed = anyio.Event()
        self._finished = anyio.Event()

    async def submit(self, write: Write) -> Injected:
        """Returns after the commit. Raises what the write failed with.

        If it is cancelled before the commit began, nothing is written.
        """
        job = _Job(write, write)
        self._waiting.append(job)
        self._changed.set()
        try:
            await job.done.wait()
            if job.outcome == LONG:
                return await self._submit_long(write)
        finally:
            if job.outcome == LONG:
                self._leave(write)
            elif not job.is_done:
                self._withdraw(job)
        if isinstance(job.outcome, Injected):
            return job.outcome
        assert isinstance(job.outcome, Exception)
        raise job.outcome

    async def _submit_long(self, write: Write) -> Injected:
        while True:
            prepared = await self._build(write)
            if prepared is None:
                continue
            try:
                [outcome] = await self._commit([prepared])
            finally:
                if prepared.built:
                    await self._abandon(prepared.built)
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                return outcome

    def _withdraw(self, job: _Job) -> None:
        """The caller was cancelled: stop what is done for this job alone."""
        job.done.set()
        if job in self._waiting:
            self._waiting.remove(job)
        if self._preparation and all(other.is_done for other in self._preparing):
            self._preparation.cancel()

    @property
    def waiting(self) -> int:
        """How many documents are not yet on the disk."""
        return len(self._waiting) + len(self._under_way)

    async def idle(self) -> None:
        """Returns when nothing waits and nothing is under way."""
        while self._waiting or self._under_way:
            await self._finished.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        send, receive = anyio.create_memory_object_stream[list[_Job]]()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._prepare_batches, send)
            tasks.start_soon(self._commit_batches, receive)

    async def _prepare_batches(self, send: ObjectSendStream[list[_Job]]) -> None:
        async with send:
            while True:
                while not (batch := self._take()):
                    self._changed = anyio.Event()
                    await self._changed.wait()
                if ready := await self._prepare_batch(batch):
                    await send.send(ready)

    def _take(self) -> list[_Job]:
        """The longest-waiting documents that may be worked on now."""
        batch: list[_Job] = []
        passed: deque[_Job] = deque()
        characters = 0
        while self._waiting and len(batch) < _DOCUMENTS and characters < _CHARACTERS:
            job = self._waiting.popleft()
            uri = job.asked.draft.uri
            if uri in self._under_way:
                passed.append(job)
            else:
                self._under_way.add(uri)
                batch.append(job)
                characters += len(job.asked.draft.text)
        self._waiting.extendleft(reversed(passed))
        return batch

    async def _prepare_batch(self, batch: list[_Job]) -> list[_Job]:
        """Those that are to be committed."""
        outcomes: Sequence[Prepared] = [None] * len(batch)
        with anyio.CancelScope() as scope:
            self._preparing, self._preparation = batch, scope
            try:
                outcomes = await self._prepare([job.asked for job in batch])
            except Exception as error:
                logger.exception("a batch could not be prepared")
                outcomes = [error] * len(batch)
        self._preparation = None
        ready, full = [], []
        for job, outcome in zip(batch, outcomes, strict=True):
            if job.is_done:  # withdrawn
                self._leave(job.asked)
            elif isinstance(outcome, Write):
                job.prepared = outcome
                ready.append(job)
            elif outcome is None:
                full.append(job)
            elif outcome == LONG:  # the uri stays under way
                job.outcome = LONG
                job.done.set()
            else:
                self._finish(job, outcome)
        self._hand_back(full)
        return ready

    async def _commit_batches(self, receive: ObjectReceiveStream[list[_Job]]) -> None:
        async with receive:
            async for batch in receive:
                await self._commit_batch(batch)

    async def _commit_batch(self, batch: list[_Job]) -> None:
        outcomes: Sequence[Injected | Exception | None]
        for job in batch:
            if job.is_done:  # withdrawn
                self._leave(job.asked)
        batch = [job for job in batch if not job.is_done]
        if not batch:
            return
        try:
            outcomes = await self._commit([job.prepared for job in batch])
        except Exception as error:
            outcomes = [error] * len(batch)
        again = []
        for job, outcome in zip(batch, outcomes, strict=True):
            if outcome is None and not job.is_done:
                again.append(job)
            else:
                self._finish(job, outcome)
        self._hand_back(again)

    def _hand_back(self, jobs: list[_Job]) -> None:
        """They wait again, before all others."""
        self._under_way.difference_update(job.asked.draft.uri for job in jobs)
        self._waiting.extendleft(reversed(jobs))
        self._changed.set()

    def _finish(self, job: _Job, outcome: Injected | Exception | None) -> None:
        if not job.is_done:
            job.outcome = outcome
            job.done.set()
        self._leave(job.asked)

    def _leave(self, write: Write) -> None:
        """The next document of this uri may be worked on."""
        self._under_way.discard(write.draft.uri)
        self._changed.set()
        self._finished.set()
        self._finished = anyio.Event()
