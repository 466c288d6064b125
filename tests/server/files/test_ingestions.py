"""Jobs that load files: what they store, how they end, and who resumes them.

Covers `loading` and `ragmemory.stores.ingestions` too.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ragcommon.contract.documents import Forgotten, Injected, Metadata
from ragcommon.contract.files import Ingestion
from ragcommon.contract.history import Origin
from ragcommon.files.folder import Folder
from ragcommon.files.uris import path_of
from ragmemory.errors import (
    BadArgument,
    IngestionNotFound,
    MemoryFull,
    PathNotAllowed,
)
from ragmemory.files import ingestions as module
from ragmemory.files import loading, parsing
from ragmemory.files.formats.file_text import FileText
from ragmemory.files.ingestions import Ingestions
from ragmemory.files.loading import IN_FLIGHT, READ_AT_ONCE
from ragmemory.files.reading import read_file
from ragmemory.files.walking import FoundFiles, find_files
from ragmemory.ingest import bulk, preparation
from ragmemory.ingest.chunking import ChunkerInput, split
from ragmemory.ingest.documents import make_document
from ragmemory.ingest.write_queue import OnOutcome
from ragmemory.ingest.writer import Writer
from ragmemory.service import MemoryService
from ragmemory.stores.ingestions import IngestionStore
from ragmemory.stores.store import Store
from ragmemory.types.writes import Document, Write
from tests.support.memories import ORIGIN, SwitchableEmbedder, service_for
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY, sql, store_at

pytestmark = BOTH_ENGINES

OLD = 1_000_000_000


@pytest.fixture
def soon_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process counts as killed after 0.2 seconds."""
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.05)


def write(path: Path, text: str, changed: int = OLD) -> Path:
    """A file that was changed long ago, so that its state identifies its content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (changed, changed))
    return path


def notes(folder: Path, count: int) -> Path:
    for number in range(count):
        write(folder / f"{number}.txt", f"Note {number}.")
    return folder


async def ended(jobs: Ingestions, job: Ingestion) -> Ingestion:
    with anyio.fail_after(60):
        while job.status == "running":
            job, _ = await jobs.status(job.job_id, wait_seconds=10)
    return job


async def statuses(jobs: Ingestions, job: Ingestion) -> dict[str, str]:
    await ended(jobs, job)
    _, outcomes = await jobs.status(job.job_id)
    return {outcome.uri.rpartition("/")[2]: outcome.status for outcome in outcomes}


@asynccontextmanager
async def memory_in(folder: Path, *roots: str) -> AsyncIterator[MemoryService]:
    async with service_for(folder, roots=roots or ("*",)) as service:
        yield service


class Scripted(Writer):
    """A writer whose `inject_all` waits for `go`, and may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.go = anyio.Event()
        self.full = anyio.Event()
        self.written = anyio.Event()
        self.waiting = 0
        self.most = 0

    async def document(self, text: str, metadata: Metadata, *_: object) -> Document:
        return make_document(text, metadata)

    async def inject_all(self, documents: Sequence[Document], _: Origin, on_outcome: OnOutcome) -> None:
        self.waiting += len(documents)
        self.most = max(self.most, self.waiting)
        if self.waiting == IN_FLIGHT:
            self.full.set()
        await self.go.wait()
        for one in documents:
            self.waiting -= 1
            on_outcome(one.uri, self.error or Injected(one.document_id, one.uri, "added", 1))

    async def idle(self) -> None:
        await self.written.wait()

    async def forget_all(self, uris: Sequence[str], origin: Origin, machine: str) -> list[Forgotten]:
        raise AssertionError(f"{origin} of {machine} removed {uris}")


@asynccontextmanager
async def jobs_of(folder: Path, documents: Scripted) -> AsyncIterator[Ingestions]:
    """Jobs on a real store, which inject into scripted documents."""
    store = store_at(folder / "memory.db", 5.0, 10)
    try:
        async with anyio.create_task_group() as tasks:
            yield Ingestions(store, documents, ["*"], tasks)
            tasks.cancel_scope.cancel()
    finally:
        await store.engine.close()


async def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    file = write(tmp_path / "docs" / "a.txt", "The first text.")
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        assert await statuses(jobs, await jobs.start([str(file)], prune=False, origin=ORIGIN)) == {
            "a.txt": "added"
        }
        write(file, "THE OTHER TEXT.")  # of the same size and time
        again = await jobs.start([str(file)], prune=False, origin=ORIGIN)
        assert await statuses(jobs, again) == {"a.txt": "unchanged"}
        _, text = await memory.documents.read(file.as_uri())
        assert text == "The first text."


async def test_a_changed_file_is_updated_and_a_touched_one_is_not(tmp_path: Path) -> None:
    touched, changed = write(tmp_path / "docs" / "a.txt", "Text a."), write(tmp_path / "docs" / "b.txt", "b")
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        await ended(jobs, await jobs.start([str(touched.parent)], prune=False, origin=ORIGIN))
        write(touched, "Text a.", OLD + 5)
        write(changed, "Another text.", OLD + 5)
        again = await jobs.start([str(touched.parent)], prune=False, origin=ORIGIN)
        assert await statuses(jobs, again) == {"a.txt": "unchanged", "b.txt": "updated"}
        assert [entry.action for entry in await memory.history.journal(9)] == ["updated", "added", "added"]


async def test_a_file_whose_document_was_changed_by_another_client_is_read_again(tmp_path: Path) -> None:
    file = write(tmp_path / "docs" / "a.txt", "The text of the file.")
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        await ended(jobs, await jobs.start([str(file)], prune=False, origin=ORIGIN))
        await memory.writer.inject("Something else.", {"uri": file.as_uri()}, ORIGIN)
        again = await jobs.start([str(file)], prune=False, origin=ORIGIN)
        assert await statuses(jobs, again) == {"a.txt": "updated"}


async def test_a_file_that_has_just_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("One.", encoding="utf-8")
    now = file.stat().st_mtime_ns
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        await ended(jobs, await jobs.start([str(file)], prune=False, origin=ORIGIN))
        file.write_text("Two.", encoding="utf-8")
        os.utime(file, ns=(now, now))
        again = await jobs.start([str(file)], prune=False, origin=ORIGIN)
        assert await statuses(jobs, again) == {"a.txt": "updated"}


async def test_a_text_with_headings_that_had_just_changed_is_unchanged_later(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Bread\n=====\n\nBake it.\n\nCake\n====\n\nEat it.\n", encoding="utf-8")
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        await ended(jobs, await jobs.start([str(file)], prune=False, origin=ORIGIN))
        os.utime(file, (OLD, OLD))
        again = await jobs.start([str(file)], prune=False, origin=ORIGIN)
        assert await statuses(jobs, again) == {"a.txt": "unchanged"}


async def test_the_same_sources_are_one_job_while_it_runs(tmp_path: Path) -> None:
    folder, documents = notes(tmp_path / "docs", 3), Scripted()
    async with jobs_of(tmp_path, documents) as jobs:
        first = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        again = await jobs.start([folder.as_uri()], prune=False, origin=ORIGIN)
        other = await jobs.start([str(folder)], prune=True, origin=ORIGIN)
        assert again.job_id == first.job_id != other.job_id
        documents.go.set()
        await ended(jobs, first)
        assert (await jobs.start([str(folder)], prune=False, origin=ORIGIN)).job_id != first.job_id


async def test_many_files_are_in_flight_but_not_all(tmp_path: Path) -> None:
    folder, documents = notes(tmp_path / "docs", IN_FLIGHT * 2), Scripted()
    async with jobs_of(tmp_path, documents) as jobs:
        job = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        with anyio.fail_after(60):
            await documents.full.wait()
        documents.go.set()
        job = await ended(jobs, job)
    assert (documents.most, job.added, job.status) == (IN_FLIGHT, IN_FLIGHT * 2, "completed")
    assert job.rate == job.done / job.seconds > 0


async def test_large_files_are_not_all_in_flight_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "MAX_BYTES", 1000)
    for number in range(20):
        write(tmp_path / "docs" / f"{number}.txt", "x" * (3000 if number == 5 else 300))

    class Slow(Scripted):
        async def inject_all(self, documents: Sequence[Document], _: Origin, on_outcome: OnOutcome) -> None:
            characters = sum(len(one.text) for one in documents)
            self.waiting += characters
            self.most = max(self.most, self.waiting)
            for _turn in range(10):
                await anyio.lowlevel.checkpoint()
            self.waiting -= characters
            for one in documents:
                on_outcome(one.uri, Injected(one.document_id, one.uri, "added", 1))

    documents = Slow()
    async with jobs_of(tmp_path, documents) as jobs:
        job = await ended(jobs, await jobs.start([str(tmp_path / "docs")], prune=False, origin=ORIGIN))
    assert (job.added, documents.most) == (20, 3000)


@pytest.mark.parametrize(("is_written", "begun"), [(True, 0), (False, IN_FLIGHT)])
async def test_a_cancelled_job_counts_what_may_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool, begun: int
) -> None:
    monkeypatch.setattr("ragmemory.files.loading.SETTLE_SECONDS", 30.0 if is_written else 0.0)
    folder, documents = notes(tmp_path / "docs", IN_FLIGHT + 10), Scripted()
    if is_written:
        documents.written.set()
    async with jobs_of(tmp_path, documents) as jobs:
        job = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        with anyio.fail_after(60):
            await documents.full.wait()
            job = await jobs.cancel(job.job_id)
        assert [one.status for one in await jobs.newest(9)] == ["cancelled"]
    assert (job.status, job.files, job.begun, job.done) == ("cancelled", IN_FLIGHT + 10, begun, 0)


async def test_a_cancelled_job_counts_what_was_being_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_now, committing = Store.write, anyio.Event()

    async def write_slowly(*arguments: Any) -> Any:
        committing.set()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        return await write_now(*arguments)

    monkeypatch.setattr(Store, "write", write_slowly)
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        job = await jobs.start([str(notes(tmp_path / "docs", 20))], prune=False, origin=ORIGIN)
        with anyio.fail_after(60):
            await committing.wait()
            job = await jobs.cancel(job.job_id)
        stored = (await memory.maintenance.stats()).documents
        assert stored
        assert (job.status, job.added, job.done) == ("cancelled", stored, stored)


async def test_a_refused_file_fails_alone(tmp_path: Path) -> None:
    folder, documents = notes(tmp_path / "docs", 3), Scripted(BadArgument("text", "is odd"))
    documents.go.set()
    async with jobs_of(tmp_path, documents) as jobs:
        job = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
    assert (job.status, job.failed, job.error) == ("completed", 3, None)
    assert all("is odd" in failure.error for failure in job.failures)


async def test_an_error_that_every_file_would_get_ends_the_job_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "MAX_BYTES", 100)
    error = MemoryFull("memory.db")
    folder, documents = notes(tmp_path / "docs", 50), Scripted(error)
    documents.go.set()
    async with jobs_of(tmp_path, documents) as jobs:
        job = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
    assert job.error is not None
    assert (job.status, job.error.code, job.error.message) == ("failed", "MEMORY_FULL", str(error))
    assert 0 < job.begun < 50


async def test_a_fault_of_the_program_ends_only_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, documents = notes(tmp_path / "docs", 3), Scripted()
    documents.go.set()

    def fail(*_: object) -> FoundFiles:
        raise ZeroDivisionError("a fault")

    async with jobs_of(tmp_path, documents) as jobs:
        with monkeypatch.context() as patched:
            patched.setattr(module, "find_files", fail)
            job = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
        again = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        assert (await ended(jobs, again)).added == 3
    assert job.error is not None
    assert (job.status, job.error.code) == ("failed", "INTERNAL_ERROR")
    assert "a fault" in job.error.message


@pytest.mark.parametrize("place", ["reading", "splitting", "splitting a long text"])
async def test_a_fault_of_the_program_in_one_file_spares_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    folder = notes(tmp_path / "docs", 50)
    write(folder / "odd.txt", "An odd text. " * (100_000 if place.endswith("long text") else 1))

    def fail_to_read(path: Path, folder: Folder | None = None) -> FileText | str:
        if path.name == "odd.txt":
            raise ZeroDivisionError("a fault")
        return read_file(path, folder)

    def fail_to_split(sources: Sequence[ChunkerInput], **limits: Any) -> Iterator[object]:
        if any("odd" in source.text for source in sources):
            raise ZeroDivisionError("a fault")
        return split(sources, **limits)

    if place == "reading":
        monkeypatch.setattr(loading, "read_file", fail_to_read)
    else:
        for splitter in (preparation, bulk):
            monkeypatch.setattr(splitter, "split", fail_to_split)
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        job = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
        assert (await memory.maintenance.stats()).documents == 50
    assert (job.status, job.added, job.failed) == ("completed", 50, 1)
    [failure] = job.failures
    assert failure.uri.endswith("odd.txt")
    assert failure.reason == "cannot be loaded (ZeroDivisionError; the log of the server has the details)"
    assert [record.message for record in caplog.records] == [f"{failure.uri} could not be loaded"]


async def test_a_job_that_ends_for_want_of_memory_says_so(tmp_path: Path) -> None:
    documents = Scripted(RuntimeError("can't allocate lock"))
    documents.go.set()
    async with jobs_of(tmp_path, documents) as jobs:
        job = await jobs.start([str(notes(tmp_path / "docs", 3))], prune=False, origin=ORIGIN)
        error = (await ended(jobs, job)).error
    assert error is not None
    assert error.code == "OUT_OF_MEMORY"
    assert error.message.startswith("The system gives this program no more memory")
    assert error.hint.startswith("Close other programs")


async def test_an_error_of_the_system_ends_the_job_after_the_outcomes_of_the_files_stored_with_it(
    tmp_path: Path,
) -> None:
    class Short(Scripted):
        async def inject_all(self, documents: Sequence[Document], _: Origin, on_outcome: OnOutcome) -> None:
            on_outcome(documents[0].uri, MemoryError())
            for one in documents[1:]:
                on_outcome(one.uri, Injected(one.document_id, one.uri, "added", 1))

    folder = notes(tmp_path / "docs", READ_AT_ONCE)
    async with jobs_of(tmp_path, Short()) as jobs:
        job = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
    assert job.error is not None
    assert (job.status, job.error.code) == ("failed", "OUT_OF_MEMORY")
    assert (job.added, job.failed, job.done) == (READ_AT_ONCE - 1, 1, READ_AT_ONCE)


async def test_a_long_text_does_not_withhold_the_outcomes_of_the_files_read_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = notes(tmp_path / "docs", 2 * READ_AT_ONCE)
    write(folder / "0.txt", "A line of a long text.\n" * 20_001)
    building, go = anyio.Event(), anyio.Event()
    async with memory_in(tmp_path) as memory:
        build = memory.writer.preparation.build

        async def build_late(document: Write) -> Write | None:
            building.set()
            await go.wait()
            return await build(document)

        monkeypatch.setattr(memory.writer.queue, "_build", build_late)
        jobs = memory.ingestions
        job = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        with anyio.fail_after(60):
            await building.wait()
            while job.done < 2 * READ_AT_ONCE - 1:
                job, _ = await jobs.status(job.job_id, wait_seconds=0.01)
            assert (job.status, job.added) == ("running", 2 * READ_AT_ONCE - 1)
            go.set()
        assert (await ended(jobs, job)).added == 2 * READ_AT_ONCE


async def test_a_cancelled_job_does_not_walk_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walking, stopped = anyio.Event(), threading.Event()

    def endless(
        _: Sequence[str], __: Path, check_cancelled: Callable[[], object], *___: object
    ) -> FoundFiles:
        anyio.from_thread.run_sync(walking.set)
        try:
            while True:
                check_cancelled()
        finally:
            stopped.set()

    monkeypatch.setattr(module, "find_files", endless)
    async with jobs_of(tmp_path, Scripted()) as jobs:
        job = await jobs.start([str(tmp_path)], prune=False, origin=ORIGIN)
        with anyio.fail_after(20):
            await walking.wait()
            await jobs.cancel(job.job_id)
    assert await anyio.to_thread.run_sync(stopped.wait, 20)


@pytest.mark.parametrize("named", ["outside.txt", "inside/link.txt", "inside/../outside.txt", ""])
async def test_only_files_under_the_roots_may_be_read(tmp_path: Path, named: str) -> None:
    outside = write(tmp_path / "outside.txt", "secret")
    inside = notes(tmp_path / "inside", 1)
    (inside / "link.txt").symlink_to(outside)
    async with memory_in(tmp_path, str(inside)) as memory:
        jobs = memory.ingestions
        with pytest.raises(PathNotAllowed, match=r"memory\.roots"):
            await jobs.start([str(tmp_path / named) if named else named], prune=False, origin=ORIGIN)
        job = await jobs.start([inside.as_uri()], prune=False, origin=ORIGIN)
        assert await statuses(jobs, job) == {"0.txt": "added", "link.txt": "skipped"}


@SQLITE_ONLY
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_link_that_is_put_in_place_of_a_folder_after_the_check_leads_nowhere(
    tmp_path: Path, is_stored: bool
) -> None:
    """With a stored source, a repository's memory is its own root, though every file may be read."""
    outside, root = notes(tmp_path / "outside", 1), tmp_path / "repository"
    inside = notes(root / "notes", 1)
    (root / ".ragchat").mkdir()
    async with memory_in(root / ".ragchat", "*" if is_stored else str(root)) as memory:
        jobs = memory.ingestions
        if is_stored:
            await memory.sources.add([str(inside)])
            job = await memory.sources.sync([], ORIGIN)
        else:
            job = await jobs.start([str(inside)], prune=True, origin=ORIGIN)
        # The job has not begun: it runs when this task waits.
        inside.rename(root / "moved")
        inside.symlink_to(outside)
        assert await statuses(jobs, job) == {"notes": "failed"}
        assert (await memory.maintenance.stats()).documents == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
async def test_a_file_is_loaded_even_if_its_name_is_not_valid_unicode(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 1)
    write(folder / os.fsdecode(b"caf\xe9.txt"), "Coffee.")
    async with memory_in(tmp_path) as memory:
        job = await memory.ingestions.start([str(folder)], prune=False, origin=ORIGIN)
        assert set((await statuses(memory.ingestions, job)).values()) == {"added"}
        [hit] = (await memory.search.query("coffee", 1)).hits
        assert (hit.title, hit.uri.endswith("/caf%E9.txt")) == ("caf?.txt", True)


async def test_without_roots_no_file_may_be_read(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        jobs = memory.ingestions
        with pytest.raises(PathNotAllowed):
            await jobs.start([str(tmp_path)], prune=False, origin=ORIGIN)


async def test_an_unknown_job_is_an_error(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        for call in (jobs.status, jobs.cancel):
            with pytest.raises(IngestionNotFound):
                await call("none")


@pytest.mark.usefixtures("soon_silent")
async def test_the_job_of_a_killed_process_is_resumed(tmp_path: Path) -> None:
    folder, stuck = notes(tmp_path / "docs", 5), Scripted()
    async with jobs_of(tmp_path, stuck) as jobs:
        job = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
    # The task group was cancelled like that of a server that is killed: the job still counts as running.
    async with memory_in(tmp_path) as memory:
        others = memory.ingestions
        resumed = await ended(others, (await others.newest(1))[0])
        assert (resumed.job_id, resumed.status, resumed.added) == (job.job_id, "completed", 5)
        assert resumed.run_id != job.run_id
        assert (await memory.maintenance.stats()).documents == 5


async def test_it_is_said_for_how_long_a_running_job_has_been_silent(tmp_path: Path) -> None:
    async with jobs_of(tmp_path, Scripted()) as jobs:
        job = await jobs.start([str(notes(tmp_path / "docs", 2))], prune=False, origin=ORIGIN)
        async with jobs._store.engine.transaction() as connection:
            await connection.execute("UPDATE ingestions SET beat = beat - 3600")
    async with jobs_of(tmp_path, Scripted()) as jobs:
        [listed], (one, _) = await jobs.newest(1), await jobs.status(job.job_id)
        assert (listed.status, one.status) == ("running", "running")
        assert min(listed.silent_seconds, one.silent_seconds) >= 3600
        assert (await jobs.cancel(job.job_id)).status == "cancelled"
        assert (await jobs.newest(1))[0].silent_seconds == 0


@pytest.mark.usefixtures("soon_silent")
async def test_a_job_that_kills_each_process_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does with a file that needs more memory than there is."""
    monkeypatch.setattr(module, "MAX_RESUMED", 1)
    folder = notes(tmp_path / "docs", 2)
    async with jobs_of(tmp_path, Scripted()) as jobs:
        job = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
    async with jobs_of(tmp_path, Scripted()) as jobs:
        await jobs._take_over()
        assert (await jobs.status(job.job_id))[0].resumed == 1
    async with memory_in(tmp_path) as memory:
        given_up = await ended(memory.ingestions, job)
        assert given_up.status == "failed"
        assert given_up.error is not None
        assert "2 times in a row" in given_up.error.message
        # The user may have mended it.
        again = await memory.ingestions.start([str(folder)], prune=False, origin=ORIGIN)
        assert (await ended(memory.ingestions, again)).added == 2


@pytest.mark.usefixtures("soon_silent")
async def test_a_job_is_not_resumed_by_a_server_that_may_not_read_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ABANDONED_SECONDS", 0.2)
    private = notes(tmp_path / "private", 2)
    async with jobs_of(tmp_path, Scripted()) as jobs:
        await jobs.start([str(private)], prune=False, origin=ORIGIN)
    async with memory_in(tmp_path, str(tmp_path / "docs")) as memory:
        others = memory.ingestions
        assert (await ended(others, (await others.newest(1))[0])).status == "cancelled"
        assert (await memory.maintenance.stats()).documents == 0


@pytest.mark.usefixtures("soon_silent")
async def test_a_job_is_left_to_a_server_that_may_read_its_files(tmp_path: Path) -> None:
    """Such as the server of an editor that starts again, while another program has the memory open, too."""
    private = notes(tmp_path / "private", 2)
    async with memory_in(tmp_path, str(tmp_path / "docs")) as other:
        async with jobs_of(tmp_path, Scripted()) as jobs:
            job = await jobs.start([str(private)], prune=False, origin=ORIGIN)
            other.ingestions.wake()
        left, _ = await other.ingestions.status(job.job_id, wait_seconds=1)
        assert left.status == "running"
        async with memory_in(tmp_path) as memory:
            resumed = await ended(memory.ingestions, job)
            assert (resumed.job_id, resumed.status, resumed.added) == (job.job_id, "completed", 2)


@SQLITE_ONLY
@pytest.mark.usefixtures("soon_silent")
async def test_a_job_in_a_repositorys_memory_is_not_resumed_outside_of_it(tmp_path: Path) -> None:
    """The repository may be someone else's: nothing in it may read the user's files by itself."""
    private, own = notes(tmp_path / "private", 2), tmp_path / "repository" / ".ragchat"
    own.mkdir(parents=True)
    async with jobs_of(own, Scripted()) as jobs:
        await jobs.start([str(private)], prune=False, origin=ORIGIN)
    async with memory_in(own) as memory:
        others = memory.ingestions
        assert (await ended(others, (await others.newest(1))[0])).status == "cancelled"
        assert (await memory.maintenance.stats()).documents == 0
        # Named by the user, the files are read.
        job = await others.start([str(private)], prune=False, origin=ORIGIN)
        assert (await ended(others, job)).added == 2


@pytest.mark.parametrize("job", ["'{'", "replace(job, 'file:///', 'file://[')"])
@pytest.mark.usefixtures("soon_silent")
async def test_a_job_that_no_program_of_ours_has_stored_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    folder = notes(tmp_path / "docs", 2)
    async with jobs_of(tmp_path, Scripted()) as jobs:
        await jobs.start([str(folder)], prune=False, origin=ORIGIN)
    sql(tmp_path / "memory.db", f"UPDATE ingestions SET job = {job}")
    looked = anyio.Event()
    of_others = IngestionStore.of_others

    async def look(self: IngestionStore, run_id: str) -> list[Ingestion]:
        looked.set()
        return await of_others(self, run_id)

    monkeypatch.setattr(IngestionStore, "of_others", look)
    async with memory_in(tmp_path) as memory:
        own = memory.ingestions
        await memory.warm_up()
        with anyio.fail_after(30):
            await looked.wait()
        others = notes(tmp_path / "others", 2)
        assert (await ended(own, await own.start([str(others)], prune=False, origin=ORIGIN))).added == 2


async def test_another_process_may_cancel_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.05)
    folder = notes(tmp_path / "docs", 3)
    async with jobs_of(tmp_path, Scripted()) as jobs, jobs_of(tmp_path, Scripted()) as others:
        job = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        assert (await others.cancel(job.job_id)).status == "cancelled"
        assert (await ended(jobs, job)).status == "cancelled"


async def test_an_empty_folder_keeps_its_documents_when_another_folder_has_files(tmp_path: Path) -> None:
    full, unmounted = notes(tmp_path / "full", 2), notes(tmp_path / "disk", 2)
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        await ended(jobs, await jobs.start([str(full), str(unmounted)], prune=True, origin=ORIGIN))
        for file in (full / "0.txt", unmounted / "0.txt", unmounted / "1.txt"):
            file.unlink()
        job = await jobs.start([str(full), str(unmounted)], prune=True, origin=ORIGIN)
        _, outcomes = await jobs.status((await ended(jobs, job)).job_id)
        assert [(one.status, one.reason) for one in outcomes if one.uri == unmounted.as_uri()] == [
            ("skipped", "holds no files, so nothing is removed. Is the disk mounted?")
        ]
        assert sorted(one.status for one in outcomes) == [
            *("missing", "missing", "removed", "skipped", "unchanged")
        ]
        assert (await memory.maintenance.stats()).documents == 3


async def test_a_part_of_a_folder_is_loaded_by_the_rules_of_the_whole(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 4)
    write(folder / "sub" / "a.txt", "Below.")
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        await ended(jobs, await jobs.start([str(folder)], prune=True, origin=ORIGIN))
        write(folder / ".gitignore", "ignored.txt")
        for name in ("0.txt", "1.txt", "ignored.txt", ".hidden.txt", "sub/b.txt"):
            write(folder / name, "New text.", OLD + 5)
        for name in ("2.txt", "3.txt", "sub/a.txt"):
            (folder / name).unlink()
        within = [folder / name for name in ("0.txt", "2.txt", "ignored.txt", ".hidden.txt", "sub")]
        job = await jobs.start([str(folder)], prune=True, origin=ORIGIN, within=[*map(str, within)])
        assert await statuses(jobs, job) == {
            "0.txt": "updated",
            "2.txt": "removed",
            "a.txt": "removed",
            "b.txt": "added",
        }


async def reasons(memory: MemoryService, *paths: Path, prune: bool = True) -> dict[str, tuple[str, str]]:
    """The status of each file of a job that has loaded these, and why, by name."""
    job = await memory.ingestions.start([*map(str, paths)], prune=prune, origin=ORIGIN)
    await ended(memory.ingestions, job)
    _, outcomes = await memory.ingestions.status(job.job_id)
    return {path_of(one.uri).name: (one.status, one.reason) for one in outcomes}


async def test_an_exported_conversation_is_skipped_in_a_folder_and_read_if_it_is_named(
    tmp_path: Path,
) -> None:
    folder = notes(tmp_path / "docs", 1)
    talk = "# What is tea?\n\n## What is tea?\n\nTea is a drink. [1]\n"
    own = write(folder / "talk.md", f"{talk}\n<!-- exported by ragchat -->\n")
    write(folder / "other.md", talk)
    session = (
        '{"session_id":"a","title":"Tea","created_at":"","turns":[{"answer":"> Tea.\\n"}],"notebook":""}'
    )
    write(folder / "talk.json", session)
    write(folder / "talk.html", "<h1>Tea</h1><p>It is a drink.</p>\n<!-- exported by ragchat -->\n")
    skipped = ("skipped", "is an exported conversation with ragchat, and is read only if you name it")
    async with memory_in(tmp_path) as memory:
        found = await reasons(memory, folder)
        assert found.pop("talk.md") == found.pop("talk.html") == found.pop("talk.json") == skipped
        assert found == dict.fromkeys(("0.txt", "other.md"), ("added", ""))
        assert await reasons(memory, own) == {"talk.md": ("added", "")}
        assert await reasons(memory, folder, own) == dict.fromkeys(
            ("0.txt", "other.md", "talk.md"), ("unchanged", "")
        ) | dict.fromkeys(("talk.html", "talk.json"), skipped)
        # A text of the user's that was replaced by an export leaves memory.
        write(folder / "other.md", f"{talk}\n<!-- exported by ragchat -->\n", OLD + 5)
        assert (await reasons(memory, folder))["other.md"] == ("removed", skipped[1])


async def test_a_script_of_questions_is_no_source_of_their_answers(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 1)
    step = "[[step]]\nask = 'How hot is tea?'\nexpect = { contains = '75' }\n"
    own = write(folder / "tests.toml", step)
    write(folder / "other.toml", "[[steps]]\nask = 'How hot is tea?'\n")
    write(folder / "steps.toml", "[[step]]\nname = 'build'\nquery = 'SELECT 1'\n")
    write(folder / "step.md", f"A script begins so:\n\n{step}")
    skipped = ("skipped", "is a script of questions for ragchat, and is read only if you name it")
    async with memory_in(tmp_path) as memory:
        found = await reasons(memory, folder)
        assert found.pop("tests.toml") == skipped
        assert found == dict.fromkeys(("0.txt", "other.toml", "step.md", "steps.toml"), ("added", ""))
        assert await reasons(memory, own) == {"tests.toml": ("added", "")}


async def test_a_private_key_of_any_name_is_read_only_if_you_name_it(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 1)
    key = write(
        folder / "deploy", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbg\n-----END OPENSSH PRIVATE KEY-----\n"
    )
    write(folder / "public", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n")
    skipped = ("skipped", "is a private key, and is read only if you name it")
    async with memory_in(tmp_path) as memory:
        found = await reasons(memory, folder)
        assert found == {"0.txt": ("added", ""), "public": ("added", ""), "deploy": skipped}
        assert await reasons(memory, key) == {"deploy": ("added", "")}
        write(key, key.read_text() + "\n", OLD + 5)
        held = ("skipped", f"{skipped[1]}; memory still has an earlier load of it")
        assert (await reasons(memory, folder, prune=False))["deploy"] == held


async def test_a_file_that_holds_no_text_any_more_leaves_memory_at_the_next_sync(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 4)
    page = write(folder / "page.html", "<p>A page.</p>")
    async with memory_in(tmp_path) as memory:
        await reasons(memory, folder)
        write(folder / "0.txt", " \n", OLD + 5)
        (folder / "1.txt").write_bytes(b"\0\1\2" * 100)
        write(page, "<script>nothing</script>", OLD + 5)
        lost = {
            "0.txt": ("skipped", "is empty"),
            "1.txt": ("skipped", "is not text"),
            "page.html": ("skipped", "holds no text"),
        }
        kept = dict.fromkeys(("2.txt", "3.txt"), ("unchanged", ""))
        # Only a sync removes.
        assert await reasons(memory, folder, prune=False) == lost | kept
        removed = {name: ("removed", reason) for name, (_, reason) in lost.items()}
        assert await reasons(memory, folder) == removed | kept
        assert (await memory.maintenance.stats()).documents == 2
        # They are not stored any more: nothing is left to remove.
        assert await reasons(memory, folder) == lost | kept
        await memory.history.undo(ORIGIN)
        _, text = await memory.documents.read((folder / "1.txt").as_uri())
        assert text == "Note 1."


async def test_a_file_that_cannot_be_read_now_keeps_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = notes(tmp_path / "docs", 1)
    slow, damaged = (
        write(folder / "slow.html", "<p>A page.</p>"),
        write(folder / "book.rtf", "{\\rtf1 A book.}"),
    )
    async with memory_in(tmp_path) as memory:
        await reasons(memory, folder)
        write(slow, "<p>Another page.</p>", OLD + 5)
        write(damaged, "\0\1 no longer RTF", OLD + 5)
        monkeypatch.setattr(parsing, "DEADLINE_SECONDS", 0.0)
        assert (await reasons(memory, folder))["slow.html"][0] == "skipped"
        monkeypatch.undo()
        monkeypatch.setattr(loading, "read_file", unreadable)
        write(folder / "0.txt", "Another note.", OLD + 5)
        assert (await reasons(memory, folder))["0.txt"] == ("failed", "cannot be read: input/output error")
        monkeypatch.undo()
        assert (await reasons(memory, folder))["book.rtf"][1] == "is a damaged RTF file, or not one at all"
        assert (await memory.maintenance.stats()).documents == 3


def unreadable(path: Path, _: Folder) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))


async def test_a_file_that_becomes_ignored_leaves_memory_at_the_next_sync(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 2)
    below = write(folder / "sub" / "deep" / "a.txt", "Below.")
    async with memory_in(tmp_path) as memory:
        await reasons(memory, folder)
        write(folder / ".gitignore", "1.txt\nsub/\n")
        rest = {"0.txt": ("unchanged", "")}
        assert await reasons(memory, folder, prune=False) == rest
        ignored = ("removed", "is excluded by .gitignore")
        assert await reasons(memory, folder) == rest | {"1.txt": ignored, "a.txt": ignored}
        assert await reasons(memory, folder) == rest
        await memory.history.undo(ORIGIN)
        _, text = await memory.documents.read(below.as_uri())
        assert text == "Below."


async def test_an_ignored_file_that_the_user_names_stays_in_memory(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 2)
    inner = notes(folder / "inner", 1)
    async with memory_in(tmp_path) as memory:
        await reasons(memory, folder)
        write(folder / ".gitignore", "1.txt\ninner/\n")
        # Unchanged files, found in another way.
        await reasons(memory, folder / "1.txt", inner, prune=False)
        assert await reasons(memory, folder) == {"0.txt": ("unchanged", "")}
        assert (await memory.maintenance.stats()).documents == 3
        # Once the folder has them again, it is the folder that they belong to.
        (folder / ".gitignore").unlink()
        await reasons(memory, folder)
        write(folder / ".gitignore", "1.txt\n")
        assert (await reasons(memory, folder))["1.txt"] == ("removed", "is excluded by .gitignore")


async def test_a_file_of_keys_that_an_earlier_release_loaded_is_said_to_be_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = notes(tmp_path / "docs", 1)
    named, found = write(folder / "named.env", "KEY=1"), write(folder / "prod.env", "KEY=2")
    skipped = "may hold keys or passwords, and is read only if you name it"
    async with memory_in(tmp_path) as memory:
        with monkeypatch.context() as earlier:
            earlier.setattr("ragmemory.files.walking.SECRETS", re.compile("none"))
            assert (await reasons(memory, folder))[found.name] == ("added", "")
        await reasons(memory, named, prune=False)
        write(folder / "new.env", "KEY=3")
        assert await reasons(memory, folder) == {
            "0.txt": ("unchanged", ""),
            "named.env": ("skipped", skipped),
            "new.env": ("skipped", skipped),
            "prod.env": ("skipped", skipped + "; memory still has an earlier load of it"),
        }


async def test_a_folder_in_the_place_of_a_file_is_not_the_file(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 2)
    async with memory_in(tmp_path) as memory:
        await reasons(memory, folder)
        (folder / "0.txt").unlink()
        (folder / "0.txt").mkdir()
        assert await reasons(memory, folder) == {"0.txt": ("removed", ""), "1.txt": ("unchanged", "")}


@pytest.mark.usefixtures("soon_silent")
async def test_a_killed_sync_of_a_part_is_resumed_as_it_was(tmp_path: Path) -> None:
    folder, stuck = notes(tmp_path / "docs", 5), Scripted()
    gone = write(folder / "gone.txt", "A document whose file is gone.")
    async with memory_in(tmp_path) as memory:
        await ended(memory.ingestions, await memory.ingestions.start([str(gone)], prune=False, origin=ORIGIN))
    gone.unlink()
    async with jobs_of(tmp_path, stuck) as jobs:
        within = [str(folder / "1.txt"), str(gone)]
        await jobs.start([str(folder)], prune=True, origin=ORIGIN, within=within)
    async with memory_in(tmp_path) as memory:
        others = memory.ingestions
        resumed = await ended(others, (await others.newest(1))[0])
        assert (resumed.status, resumed.added, resumed.removed) == ("completed", 1, 1)
        assert (await memory.maintenance.stats()).documents == 1


async def test_a_failed_load_leaves_what_is_stored(tmp_path: Path) -> None:
    embedder = SwitchableEmbedder()
    folder = notes(tmp_path / "docs", 3)
    async with service_for(tmp_path, embedder, roots=["*"]) as memory:
        jobs = memory.ingestions
        await ended(jobs, await jobs.start([str(folder)], prune=True, origin=ORIGIN))
        (folder / "0.txt").unlink()
        write(folder / "1.txt", "Another text.", OLD + 5)
        embedder.is_down = True
        job = await ended(jobs, await jobs.start([str(folder)], prune=True, origin=ORIGIN))
        assert job.status == "failed"
        assert (await memory.maintenance.stats()).documents == 3
        _, text = await memory.documents.read((folder / "1.txt").as_uri())
        assert text == "Note 1."


async def test_a_job_whose_end_could_not_be_stored_may_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, documents = notes(tmp_path / "docs", 3), Scripted(MemoryFull("memory.db"))
    documents.go.set()
    save = IngestionStore.save

    async def full(_: IngestionStore, __: Ingestion) -> bool:
        raise MemoryFull("memory.db")

    async with jobs_of(tmp_path, documents) as jobs:
        monkeypatch.setattr(IngestionStore, "save", full)
        failed = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
        monkeypatch.setattr(IngestionStore, "save", save)
        documents.error = None
        again = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
        assert [one.status for one in await jobs.newest(9)] == ["completed", "failed"]
    assert (failed.status, again.status, again.added) == ("failed", "completed", 3)


async def test_a_job_that_another_process_has_taken_over_continues_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.05)
    folder, documents = notes(tmp_path / "docs", 3), Scripted()
    async with jobs_of(tmp_path, Scripted()) as jobs, jobs_of(tmp_path, documents) as others:
        job = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        # As if the first process had been silent for long. Its own jobs are not taken over.
        monkeypatch.setattr(module, "SILENT_SECONDS", -60.0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(others.run)
            others.wake()
            with anyio.fail_after(60):
                taken, _ = await jobs.status(job.job_id, wait_seconds=60)
            assert taken.status == "running"
            documents.go.set()
            finished = await ended(jobs, taken)
            tasks.cancel_scope.cancel()
    assert (finished.status, finished.added, finished.job_id) == ("completed", 3, job.job_id)


async def test_undo_ends_the_load_that_it_undoes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "docs" / "a.txt", "The first note.")
    write(tmp_path / "docs" / "b.txt", "The second note.")
    stored = anyio.Event()
    async with memory_in(tmp_path) as memory:
        inject_all = memory.writer.inject_all

        async def inject_the_first(documents: Sequence[Document], *rest: Any) -> None:
            await inject_all(documents[:1], *rest)
            stored.set()
            await anyio.sleep_forever()

        monkeypatch.setattr(memory.writer, "inject_all", inject_the_first)
        jobs = memory.ingestions
        await jobs.start([str(tmp_path / "docs")], prune=False, origin=ORIGIN)
        with anyio.fail_after(60):
            await stored.wait()
            assert (await memory.history.undo(ORIGIN)).writes == {"added": 1}
        assert [one.status for one in await jobs.newest(9)] == ["cancelled"]
        assert (await memory.maintenance.stats()).documents == 0


async def test_a_root_that_cannot_be_found_allows_no_file(tmp_path: Path) -> None:
    note = write(tmp_path / "a.txt", "A note.")
    async with memory_in(tmp_path, "~no-such-user/docs") as memory:
        jobs = memory.ingestions
        for source in (str(note), "~no-such-user/docs/a.txt"):
            with pytest.raises(PathNotAllowed):
                await jobs.start([source], prune=False, origin=ORIGIN)


async def test_outcomes_of_old_jobs_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_OUTCOMES", 3)
    documents = Scripted()
    documents.go.set()
    async with jobs_of(tmp_path, documents) as jobs:
        started = []
        for name in ("a", "b", "c"):
            folder = notes(tmp_path / name, 2)
            started.append(await jobs.start([str(folder)], prune=False, origin=ORIGIN))
            await ended(jobs, started[-1])
        counts = [len((await jobs.status(job.job_id))[1]) for job in started]
    assert counts == [0, 2, 2]


async def test_a_job_begun_on_a_full_disk_is_saved_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.02)
    folder, documents = notes(tmp_path / "docs", 3), Scripted()
    begin, save, saved = IngestionStore.begin, IngestionStore.save, anyio.Event()

    async def full(_: IngestionStore, __: Ingestion) -> Ingestion:
        raise MemoryFull("memory.db")

    async def noted(store: IngestionStore, job: Ingestion) -> bool:
        is_saved = await save(store, job)
        saved.set()
        return is_saved

    async with jobs_of(tmp_path, documents) as jobs:
        monkeypatch.setattr(IngestionStore, "begin", full)
        monkeypatch.setattr(IngestionStore, "save", noted)
        job = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        again = await jobs.start([str(folder)], prune=False, origin=ORIGIN)
        monkeypatch.setattr(IngestionStore, "begin", begin)
        with anyio.fail_after(60):
            await saved.wait()
        assert [one.status for one in await jobs.newest(9)] == ["running"]
        documents.go.set()
        assert (await ended(jobs, job)).status == "completed"
        assert again.job_id == job.job_id


async def test_a_damaged_job_does_not_keep_a_new_load_out(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 2)
    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        first = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
        sql(tmp_path / "memory.db", "UPDATE ingestions SET status = 'running', job = '{', beat = 0")
        assert await jobs.newest(9) == []
        second = await ended(jobs, await jobs.start([str(folder)], prune=False, origin=ORIGIN))
        assert (second.status, second.unchanged) == ("completed", 2)
        assert second.job_id != first.job_id
        assert [one.job_id for one in await jobs.newest(9)] == [second.job_id]


async def test_a_job_that_could_not_be_saved_ends_when_its_writes_are_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_: IngestionStore, __: Ingestion) -> Ingestion:
        raise MemoryFull("memory.db")

    monkeypatch.setattr(IngestionStore, "begin", full)
    async with jobs_of(tmp_path, Scripted()) as jobs:
        job = await jobs.start([str(notes(tmp_path / "docs", 3))], prune=False, origin=ORIGIN)
        with anyio.fail_after(60):
            await jobs.cancel_group(job.group)
            assert (await jobs.status(job.job_id))[0].status == "cancelled"


@pytest.mark.parametrize("source", ["file://[", "file:///notes%00.txt", "notes\0.txt"])
async def test_words_that_name_no_file_are_refused(tmp_path: Path, source: str) -> None:
    async with memory_in(tmp_path) as memory:
        sources = memory.sources
        jobs = memory.ingestions
        with pytest.raises(BadArgument):
            await jobs.start([source], prune=False, origin=ORIGIN)
        with pytest.raises(BadArgument):
            await sources.sync([str(tmp_path)], ORIGIN, within=[source])
        with pytest.raises(BadArgument):
            await sources.add([source])
        with pytest.raises(BadArgument):
            await sources.remove(source, ORIGIN, forget=False)


async def test_a_part_of_a_folder_must_name_something(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 2)
    async with memory_in(tmp_path) as memory:
        sources = memory.sources
        for within in ("~no-such-user/a.txt", ""):
            with pytest.raises(BadArgument):
                await sources.sync([str(folder)], ORIGIN, within=[within])


async def test_a_circle_of_links_in_a_part_of_a_folder_is_reported(tmp_path: Path) -> None:
    folder = notes(tmp_path / "docs", 2)
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    async with memory_in(tmp_path) as memory:
        sources, jobs = memory.sources, memory.ingestions
        job = await sources.sync([str(folder)], ORIGIN, within=[str(folder / "a"), str(folder / "0.txt")])
        assert await statuses(jobs, job) == {"a": "skipped", "0.txt": "added"}


async def test_a_file_that_vanishes_before_it_is_read_keeps_its_document_until_the_next_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = notes(tmp_path / "docs", 2)

    def find_and_lose(*arguments: Any) -> FoundFiles:
        found = find_files(*arguments)
        (folder / "0.txt").unlink()
        return found

    async with memory_in(tmp_path) as memory:
        jobs = memory.ingestions
        await ended(jobs, await jobs.start([str(folder)], prune=True, origin=ORIGIN))
        write(folder / "0.txt", "New text.", OLD + 5)
        with monkeypatch.context() as patched:
            patched.setattr(module, "find_files", find_and_lose)
            job = await jobs.start([str(folder)], prune=True, origin=ORIGIN)
            assert await statuses(jobs, job) == {"0.txt": "skipped", "1.txt": "unchanged"}
        again = await jobs.start([str(folder)], prune=True, origin=ORIGIN)
        assert await statuses(jobs, again) == {"0.txt": "removed", "1.txt": "unchanged"}
