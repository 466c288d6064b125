from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from msgspec.structs import replace

from ragcommon.contract.documents import Injected
from ragmemory.errors import MemoryReadOnly
from ragmemory.ingest.write_queue import LONG, Prepared, WriteQueue
from ragmemory.types.writes import Chunk, StagedDocument, Write
from tests.support.memories import write_of


class Recorder:
    """A preparation and a store of a test's own; a commit waits while `gate` is closed."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.gate.set()
        self.batches: list[list[str]] = []
        self.prepared: list[list[str]] = []
        self.fail: Exception | None = None
        self.hand_back: set[str] = set()
        self.refused: set[str] = set()
        self.is_slow = False
        self.long: set[str] = set()
        self.endless: set[str] = set()
        self.staged: list[str] = []
        self.given_up: list[str] = []
        self.vanishes = False
        self.lags = False

    async def prepare(self, writes: Sequence[Write]) -> list[Prepared]:
        self.prepared.append([write.document.text for write in writes])
        if self.fail:
            raise self.fail
        if self.is_slow:
            await anyio.sleep_forever()
        return [
            LONG if write.document.text in self.long else replace(write, chunks=[Chunk(0, 1, 1, 1, "")])
            for write in writes
        ]

    async def build(self, write: Write) -> Write | None:
        self.staged.append(write.document.text)
        if write.document.text in self.endless:
            await anyio.sleep_forever()
        if self.vanishes:
            self.vanishes = False
            return None
        return replace(write, staged=StagedDocument(1, write.document.text))

    async def abandon(self, staged: StagedDocument) -> None:
        self.given_up.append(staged.uri)

    async def commit(self, writes: Sequence[Write]) -> list[Injected | Exception | None]:
        await self.gate.wait()
        self.batches.append([write.document.text for write in writes])
        outcomes: list[Injected | Exception | None] = []
        for write in writes:
            if write.document.text in self.refused:
                outcomes.append(ValueError("it is odd"))
                continue
            back = write.document.text in self.hand_back
            self.hand_back.discard(write.document.text)
            outcomes.append(
                None if back else Injected(write.document.document_id, write.document.uri, "added", 1)
            )
        return outcomes

    async def keep_up(self, _: Sequence[Write]) -> None:
        if self.lags:
            await anyio.sleep_forever()


def queue_of(recorder: Recorder) -> WriteQueue:
    return WriteQueue(
        recorder.prepare,
        recorder.commit,
        recorder.keep_up,
        recorder.build,
        recorder.abandon,
        lambda: EOFError("closed"),
    )


def ask(text: str, uri: str = "") -> Write:
    return replace(write_of(text, {"uri": uri or text}), chunks=None, embeddings=[])


async def submit_all(queue: WriteQueue, writes: Sequence[Write], answers: list[str]) -> None:
    async def one(write: Write) -> None:
        await queue.submit(write)
        answers.append(write.document.text)

    async with anyio.create_task_group() as tasks:
        for write in writes:
            tasks.start_soon(one, write)


async def test_what_waits_during_a_commit_becomes_one_batch() -> None:
    recorder, answers = Recorder(), list[str]()
    queue = queue_of(recorder)
    recorder.gate = anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            async with anyio.create_task_group() as callers:
                callers.start_soon(submit_all, queue, [ask("first")], answers)
                await anyio.wait_all_tasks_blocked()
                # The second is prepared while the first is committed; all the others wait for both.
                callers.start_soon(submit_all, queue, [ask("second")], answers)
                await anyio.wait_all_tasks_blocked()
                callers.start_soon(submit_all, queue, [ask(str(i)) for i in range(50)], answers)
                await anyio.wait_all_tasks_blocked()
                assert answers == []
                recorder.gate.set()
            tasks.cancel_scope.cancel()
    assert recorder.batches[:2] == [["first"], ["second"]]
    assert len(recorder.batches) == 3
    assert len(answers) == 52


async def test_documents_of_one_uri_are_written_in_order_and_never_in_one_batch() -> None:
    recorder, answers = Recorder(), list[str]()
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                submit_all, queue, [ask("1", "x"), ask("2", "x"), ask("a"), ask("3", "x")], answers
            )
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(queue.run)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert recorder.batches == [["1", "a"], ["2"], ["3"]]


async def test_a_write_that_is_handed_back_is_prepared_again() -> None:
    recorder, answers = Recorder(), list[str]()
    recorder.hand_back = {"a"}
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            await submit_all(queue, [ask("a"), ask("b")], answers)
            tasks.cancel_scope.cancel()
    assert sorted(answers) == ["a", "b"]
    assert recorder.prepared == [["a", "b"], ["a"]]


@pytest.mark.parametrize("error", [OSError("broken"), MemoryReadOnly("memory.db", "its disk is read-only")])
async def test_a_failed_batch_fails_its_callers_and_the_next_one_is_well(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder()
    recorder.fail = error
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            with pytest.raises(type(error), match=re.escape(str(error))):
                await queue.submit(ask("a"))
            # Only an unexpected error is logged.
            assert bool(caplog.records) is isinstance(error, OSError)
            recorder.fail = None
            assert (await queue.submit(ask("a"))).status == "added"
            tasks.cancel_scope.cancel()


async def test_a_caller_that_went_away_is_not_worked_for() -> None:
    recorder = Recorder()
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        with anyio.move_on_after(0):
            await queue.submit(ask("gone"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            await queue.submit(ask("here"))
            tasks.cancel_scope.cancel()
    assert recorder.prepared == [["here"]]


async def test_idle_is_when_nothing_waits_and_nothing_is_under_way() -> None:
    recorder, answers = Recorder(), list[str]()
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        await queue.idle()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            await queue.submit(ask("first"))
            recorder.gate = anyio.Event()
            tasks.start_soon(submit_all, queue, [ask("a"), ask("b")], answers)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(queue.idle)
            await anyio.wait_all_tasks_blocked()  # It does not ask again and again.
            with anyio.move_on_after(0) as early:
                await queue.idle()
            assert early.cancelled_caught
            recorder.gate.set()
            await queue.idle()
            tasks.cancel_scope.cancel()
    assert recorder.batches == [["first"], ["a", "b"]]


async def test_the_queue_is_idle_when_its_last_caller_goes_away_before_the_work_begins() -> None:
    queue = queue_of(Recorder())
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as callers:
            callers.start_soon(queue.submit, ask("gone"))
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(queue.idle)
            await anyio.wait_all_tasks_blocked()
            callers.cancel_scope.cancel()
    assert queue.waiting == 0


async def test_a_preparation_that_is_for_cancelled_callers_alone_ends() -> None:
    recorder = Recorder()
    recorder.is_slow = True
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            async with anyio.create_task_group() as callers:
                callers.start_soon(submit_all, queue, [ask("a"), ask("b")], list[str]())
                await anyio.wait_all_tasks_blocked()
                callers.cancel_scope.cancel()
            recorder.is_slow = False
            assert (await queue.submit(ask("a"))).status == "added"
            await queue.idle()
            tasks.cancel_scope.cancel()
    assert recorder.prepared == [["a", "b"], ["a"]]
    assert recorder.batches == [["a"]]


async def test_what_was_cancelled_before_the_commit_is_not_written() -> None:
    recorder, answers = Recorder(), list[str]()
    recorder.gate = anyio.Event()
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            tasks.start_soon(submit_all, queue, [ask("first")], answers)
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as callers:
                callers.start_soon(submit_all, queue, [ask("gone")], answers)
                await anyio.wait_all_tasks_blocked()
                callers.cancel_scope.cancel()
            recorder.gate.set()
            await queue.idle()
            tasks.cancel_scope.cancel()
    assert recorder.batches == [["first"]]


async def test_a_uri_is_free_only_after_the_commit_of_a_cancelled_write() -> None:
    recorder, answers = Recorder(), list[str]()
    recorder.gate = anyio.Event()
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            async with anyio.create_task_group() as callers:
                callers.start_soon(submit_all, queue, [ask("1", "x")], answers)
                await anyio.wait_all_tasks_blocked()
                callers.cancel_scope.cancel()
            tasks.start_soon(submit_all, queue, [ask("2", "x")], answers)
            await anyio.wait_all_tasks_blocked()
            assert recorder.prepared == [["1"]]
            recorder.gate.set()
            await queue.idle()
            tasks.cancel_scope.cancel()
    assert recorder.batches == [["1"], ["2"]]


async def test_a_long_document_is_written_by_itself_and_restarted_if_it_vanished() -> None:
    recorder, answers = Recorder(), list[str]()
    recorder.long = {"long"}
    recorder.vanishes = True
    queue = queue_of(recorder)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            await submit_all(queue, [ask("a"), ask("long", "x"), ask("b", "x")], answers)
            assert queue.waiting == 0
            tasks.cancel_scope.cancel()
    assert recorder.staged == ["long", "long"]
    assert recorder.given_up == ["long"]
    assert recorder.batches.index(["long"]) < recorder.batches.index(["b"])


@asynccontextmanager
async def submitted(queue: WriteQueue, *writes: Write) -> AsyncIterator[dict[str, str]]:
    """The outcomes so far of documents that were submitted together, once nothing more happens by itself."""
    outcomes: dict[str, str] = {}

    def note(uri: str, outcome: Injected | Exception) -> None:
        outcomes[uri] = outcome.status if isinstance(outcome, Injected) else str(outcome)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            async with anyio.create_task_group() as callers:
                callers.start_soon(queue.submit_all, writes, note)
                await anyio.wait_all_tasks_blocked()
                yield outcomes
                callers.cancel_scope.cancel()
            await queue.idle()
            tasks.cancel_scope.cancel()


async def test_each_of_the_documents_submitted_together_has_its_own_outcome() -> None:
    recorder = Recorder()
    recorder.long, recorder.hand_back = {"long", "bad and long"}, {"again"}
    recorder.refused = {"bad", "bad and long"}
    texts = ("bad and long", "long", "a", "bad", "again", "b")
    async with submitted(queue_of(recorder), *map(ask, texts)) as outcomes:
        assert outcomes == {**dict.fromkeys(texts, "added"), **dict.fromkeys(recorder.refused, "it is odd")}
    assert recorder.batches == [["a", "bad", "again", "b"], ["again"], ["bad and long"], ["long"]]


async def test_a_long_document_withholds_no_outcome_and_no_uri_of_those_submitted_with_it() -> None:
    recorder = Recorder()
    recorder.long, recorder.endless = {"long", "endless"}, {"endless"}
    queue = queue_of(recorder)
    async with submitted(queue, ask("long", "x"), ask("endless"), ask("a")) as outcomes:
        assert outcomes == {"a": "added", "x": "added"}
        assert (await queue.submit(ask("b", "x"))).status == "added"
        assert (await queue.submit(ask("a"))).status == "added"
    assert queue.waiting == 0


async def test_documents_submitted_together_are_given_up_together() -> None:
    recorder = Recorder()
    recorder.is_slow = True
    queue = queue_of(recorder)
    async with submitted(queue, ask("a"), ask("b")) as outcomes:
        assert recorder.prepared == [["a", "b"]]
    assert (outcomes, queue.waiting, recorder.batches) == ({}, 0, [])


async def test_documents_of_one_uri_cannot_be_submitted_together() -> None:
    recorder, answers = Recorder(), list[object]()
    writes = [ask("1", "x"), ask("a"), ask("2", "x")]
    with pytest.raises(ValueError, match=r"^x is submitted twice at once\."):
        await queue_of(recorder).submit_all(writes, lambda *outcome: answers.append(outcome))
    assert (answers, recorder.prepared) == ([], [])


async def test_submissions_fail_when_the_queue_has_ended() -> None:
    recorder = Recorder()
    recorder.gate = anyio.Event()
    queue = queue_of(recorder)
    errors: list[str] = []
    late: list[tuple[str, str]] = []

    async def submit(text: str) -> None:
        try:
            await queue.submit(ask(text))
        except EOFError:
            errors.append(text)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as callers, anyio.create_task_group() as worker:
            worker.start_soon(queue.run)
            for text in ("being committed", "being prepared", "waiting"):
                callers.start_soon(submit, text)
                await anyio.wait_all_tasks_blocked()
            callers.start_soon(queue.idle)
            worker.cancel_scope.cancel()
        await submit("late")
        await queue.submit_all([ask("1"), ask("2")], lambda uri, outcome: late.append((uri, str(outcome))))
    assert late == [("1", "closed"), ("2", "closed")]
    assert queue.waiting == 0
    assert sorted(errors) == ["being committed", "being prepared", "late", "waiting"]
    assert recorder.batches == []


async def test_a_long_document_that_has_not_begun_fails_when_the_queue_has_ended() -> None:
    recorder, outcomes = Recorder(), list[str]()
    recorder.long, recorder.gate = {"begun", "waiting"}, anyio.Event()
    queue = queue_of(recorder)

    def note(_: str, outcome: Injected | Exception) -> None:
        outcomes.append(outcome.status if isinstance(outcome, Injected) else str(outcome))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as callers:
            async with anyio.create_task_group() as worker:
                worker.start_soon(queue.run)
                callers.start_soon(queue.submit_all, [ask("begun"), ask("waiting")], note)
                await anyio.wait_all_tasks_blocked()
                worker.cancel_scope.cancel()
            recorder.gate.set()
    assert outcomes == ["added", "closed"]
    assert recorder.staged == ["begun"]


async def test_a_document_that_is_stored_at_the_end_is_reported_as_stored() -> None:
    recorder, answers = Recorder(), list[str]()
    recorder.lags = True
    queue = queue_of(recorder)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as callers, anyio.create_task_group() as worker:
            worker.start_soon(queue.run)
            callers.start_soon(submit_all, queue, [ask("stored")], answers)
            await anyio.wait_all_tasks_blocked()
            assert answers == []
            worker.cancel_scope.cancel()
    assert answers == ["stored"]
