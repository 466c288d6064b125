"""Group commit: documents that wait while a batch is under way become the next batch.

A batch is one embedding call and one transaction, however many calls it answers. Two stages overlap: while
one batch is being committed, the next is chunked and embedded. What is done to a batch is not known here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from ragmemory.types import Injected, Write

logger = logging.getLogger(__name__)

# Bounds of a batch: how long the first of it waits for the last, and how much lies in memory.
_DOCUMENTS = 256
_CHARACTERS = 4_000_000

# What can be done without the write lock: an outcome where nothing is to be written, an error where it
# failed, else the write with its chunks and embeddings.
Prepare = Callable[[Sequence[Write]], Awaitable[Sequence[Write | Injected | Exception]]]
# Write them: the outcome, an error where one alone failed; None where a write needs to be prepared again.
Commit = Callable[[Sequence[Write]], Awaitable[Sequence[Injected | Exception | None]]]


@dataclass(eq=False)
class _Job:
    """A document on its way, and whoever waits for it."""

    asked: Write
    prepared: Write
    done: anyio.Event = field(default_factory=anyio.Event)
    outcome: Injected | Exception | None = None

    def finish(self, outcome: Injected | Exception) -> None:
        self.outcome = outcome
        self.done.set()


class Intake:
    """Documents of one uri are written in the order they came; no batch holds a uri twice."""

    def __init__(self, prepare: Prepare, commit: Commit) -> None:
        self._prepare = prepare
        self._commit = commit
        self._waiting: deque[_Job] = deque()
        self._under_way: set[str] = set()
        self._changed = anyio.Event()
        self._finished = anyio.Event()

    async def submit(self, write: Write) -> Injected:
        """Returns after the commit. Raises what the batch failed with."""
        job = _Job(write, write)
        self._waiting.append(job)
        self._changed.set()
        try:
            await job.done.wait()
        finally:
            if job in self._waiting:  # whoever asked went away
                self._waiting.remove(job)
        if isinstance(job.outcome, Injected):
            return job.outcome
        assert job.outcome is not None
        raise job.outcome

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
                await self._prepare_batch(batch)
                if left := [job for job in batch if not job.done.is_set()]:
                    await send.send(left)

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

    async def _prepare_batch(self, batch: list[_Job]) -> None:
        try:
            outcomes = await self._prepare([job.asked for job in batch])
        except Exception as error:
            logger.exception("a batch could not be prepared")
            outcomes = [error] * len(batch)
        for job, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Write):
                job.prepared = outcome
            else:
                self._finish(job, outcome)

    async def _commit_batches(self, receive: ObjectReceiveStream[list[_Job]]) -> None:
        async with receive:
            async for batch in receive:
                await self._commit_batch(batch)

    async def _commit_batch(self, batch: list[_Job]) -> None:
        outcomes: Sequence[Injected | Exception | None]
        try:
            outcomes = await self._commit([job.prepared for job in batch])
        except Exception as error:
            outcomes = [error] * len(batch)
        for job, outcome in zip(batch, outcomes, strict=True):
            if outcome is None:
                self._under_way.discard(job.asked.draft.uri)
                self._waiting.appendleft(job)
                self._changed.set()
            else:
                self._finish(job, outcome)

    def _finish(self, job: _Job, outcome: Injected | Exception) -> None:
        self._under_way.discard(job.asked.draft.uri)
        self._changed.set()
        self._finished.set()
        self._finished = anyio.Event()
        job.finish(outcome)
