"""Loading files into a real memory, and the report about it.

Covers `report`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ragchat.errors import MemoryRefused, MemoryUnavailable
from ragchat.ingest.loading import IN_FLIGHT, Progress, load_files
from ragchat.ingest.report import Document, InjectReport
from ragchat.ingest.walking import Found
from ragchat.memory.types import Documents, Injected
from tests.support.memory import memory_in


def statuses(report: InjectReport) -> dict[str, str]:
    return {document.uri.rpartition("/")[2]: document.status for document in report.documents}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(
            f"# Document {name}\n\nSomething about {name}.\n", encoding="utf-8"
        )
    return folder


async def test_a_folder_is_added_once_and_a_changed_file_replaced(tmp_path: Path, docs: Path) -> None:
    async with memory_in(tmp_path) as memory:
        assert statuses(await load_files(memory, [docs])) == dict.fromkeys(("a.md", "b.md", "c.md"), "added")
        (docs / "b.md").write_text("# Another\n\ntext", encoding="utf-8")
        again = await load_files(memory, [docs])
        assert statuses(again) == {"a.md": "unchanged", "b.md": "updated", "c.md": "unchanged"}
        assert (await memory.show(str(docs / "b.md"))).title == "Another"
        assert (await memory.stats()).documents == 3


async def test_one_bad_file_never_stops_the_rest(tmp_path: Path, docs: Path) -> None:
    (docs / "binary.txt").write_bytes(b"\0\1\2")
    (docs / "empty.md").write_bytes(b"\n")
    (docs / "film.mp4").write_bytes(b"x")
    async with memory_in(tmp_path) as memory:
        report = await load_files(memory, [tmp_path / "gone.md", docs / "binary.txt", docs])
    assert statuses(report) == {
        "gone.md": "failed",
        "binary.txt": "failed",
        "a.md": "added",
        "b.md": "added",
        "c.md": "added",
    }
    assert {Path(skipped.path).name: skipped.reason for skipped in report.skipped} == {
        "empty.md": "is empty",
        "film.mp4": "is not text or Markdown (sound or film)",
    }
    failed = next(document for document in report.documents if document.uri.endswith("gone.md"))
    assert failed == Document(
        (tmp_path / "gone.md").as_uri(), None, "failed", 0, f"{tmp_path / 'gone.md'} does not exist."
    )
    assert report.summary() == "3 added, 2 failed, 2 skipped (3 chunks)."


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read everything")
async def test_a_file_that_cannot_be_read_has_failed(tmp_path: Path, docs: Path) -> None:
    (docs / "b.md").chmod(0)
    async with memory_in(tmp_path) as memory:
        assert statuses(await load_files(memory, [docs]))["b.md"] == "failed"


async def test_the_report_has_the_shape_of_the_contract(tmp_path: Path, docs: Path) -> None:
    async with memory_in(tmp_path) as memory:
        report = (await load_files(memory, [docs / "a.md", docs / "gone.md"])).public()
    assert [report[status] for status in ("added", "updated", "unchanged", "failed")] == [1, 0, 0, 1]
    assert {document.document_id is None for document in report["documents"]} == {True, False}


async def test_another_encoding_is_read_and_said(tmp_path: Path, docs: Path) -> None:
    (docs / "old.txt").write_bytes("Zürich".encode("latin-1"))
    async with memory_in(tmp_path) as memory:
        report = await load_files(memory, [docs])
        assert (await memory.show(str(docs / "old.txt"))).text == "Zürich"
    assert report.notes == [f"{docs / 'old.txt'} is not UTF-8; it was read as cp1252."]


async def test_documents_whose_files_are_gone_are_told_but_kept(tmp_path: Path, docs: Path) -> None:
    async with memory_in(tmp_path) as memory:
        await load_files(memory, [docs])
        (docs / "c.md").unlink()
        assert (await load_files(memory, [docs])).missing == [(docs / "c.md").as_uri()]
        assert (await load_files(memory, [docs / "a.md"])).missing == []
        assert (await memory.stats()).documents == 3


async def test_what_the_walk_passes_over_is_not_gone(tmp_path: Path, docs: Path) -> None:
    (docs / ".gitignore").write_text("*.log\n", encoding="utf-8")
    odd = os.fsdecode(b"caf\xe9 100%.log") if sys.platform == "linux" else "100%.log"
    files = [docs / name for name in ("x.log", ".hidden.md", odd)]
    for file in files:
        file.write_text(f"This is {len(file.name)}.", encoding="utf-8")
    async with memory_in(tmp_path) as memory:
        await load_files(memory, files)
        assert (await load_files(memory, [docs])).missing == []
        files[0].unlink()
        assert (await load_files(memory, [docs])).missing == [files[0].as_uri()]


async def test_progress_counts_files_and_bytes_to_the_end(tmp_path: Path, docs: Path) -> None:
    seen: list[tuple[int, int]] = []

    def on_progress(progress: Progress) -> None:
        seen.append((progress.done_files, progress.done_bytes))

    async with memory_in(tmp_path) as memory:
        await load_files(memory, [docs], on_progress)
    size = len("# Document a\n\nSomething about a.\n")
    assert (seen[0], seen[-1]) == ((0, 0), (3, 3 * size))
    assert seen == sorted(seen)


async def test_a_link_inside_a_folder_loads_nothing_from_outside(tmp_path: Path, docs: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (docs / "link.txt").symlink_to(tmp_path / "secret.txt")
    async with memory_in(tmp_path) as memory:
        report = await load_files(memory, [docs])
    assert "secret.txt" not in statuses(report)


class Scripted:
    """A memory whose every `inject` waits for `go`, and may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.go = anyio.Event()
        self.full = anyio.Event()
        self.waiting = 0
        self.most = 0

    async def inject(self, text: str, metadata: dict[str, Any] | None = None, group: str = "") -> Injected:
        assert group
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == IN_FLIGHT:
            self.full.set()
        await self.go.wait()
        self.waiting -= 1
        if self.error:
            raise self.error
        return Injected(text, (metadata or {})["uri"], "added", 1)

    async def documents(self, limit: int, offset: int = 0, uri_glob: str | None = None) -> Documents:
        del limit, offset, uri_glob
        return Documents([], 0)


async def test_many_calls_are_in_flight_but_not_all(tmp_path: Path) -> None:
    for number in range(IN_FLIGHT * 2):
        (tmp_path / f"{number}.txt").write_text(f"{number}", encoding="utf-8")
    memory = Scripted()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(load_files, memory, [tmp_path])
            await memory.full.wait()
            memory.go.set()
    assert memory.most == IN_FLIGHT


async def test_large_files_are_not_all_in_flight_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragchat.ingest.loading.MOST_BYTES", 1000)
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("x" * (3000 if number == 5 else 300), encoding="utf-8")

    class Slow(Scripted):
        async def inject(
            self, text: str, metadata: dict[str, Any] | None = None, group: str = ""
        ) -> Injected:
            assert group
            self.waiting += len(text)
            self.most = max(self.most, self.waiting)
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            self.waiting -= len(text)
            return Injected(text, (metadata or {})["uri"], "added", 1)

    memory = Slow()
    with anyio.fail_after(60):
        report = await load_files(memory, [tmp_path])
    assert report.count("added") == 20
    assert memory.most == 3000


async def test_who_is_interrupted_knows_what_was_done(tmp_path: Path) -> None:
    for number in range(IN_FLIGHT + 10):
        (tmp_path / f"{number}.txt").write_text(f"{number}", encoding="utf-8")
    memory, report = Scripted(), InjectReport()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(load_files, memory, [tmp_path], None, report)
            await memory.full.wait()
            tasks.cancel_scope.cancel()
    assert (report.files, report.begun, report.count("added")) == (IN_FLIGHT + 10, IN_FLIGHT, 0)


async def test_a_refused_file_fails_alone(docs: Path) -> None:
    memory = Scripted(MemoryRefused("INVALID_PARAMS", "The text is odd."))
    memory.go.set()
    report = await load_files(memory, [docs])
    assert [document.error for document in report.documents] == ["The text is odd."] * 3


@pytest.mark.parametrize(
    "error", [MemoryUnavailable("it is gone"), MemoryRefused("MEMORY_FULL", "The disk is full.")]
)
async def test_what_every_file_would_meet_ends_the_loading_at_once(docs: Path, error: Exception) -> None:
    memory, report = Scripted(error), InjectReport()
    memory.go.set()
    with pytest.raises(type(error)):
        await load_files(memory, [docs], report=report)
    failed = [("failed", str(error))] * report.begun
    assert [(document.status, document.error) for document in report.documents] == failed
    assert 0 < report.begun <= report.files == 3


async def test_what_is_under_way_when_the_loading_ends_is_counted_by_its_own_answer(tmp_path: Path) -> None:
    for number in range(IN_FLIGHT + 10):
        (tmp_path / f"{number}.txt").write_text(f"{number}", encoding="utf-8")

    class Filling(Scripted):
        """One call finds no room, the others do."""

        async def inject(
            self, text: str, metadata: dict[str, Any] | None = None, group: str = ""
        ) -> Injected:
            assert group
            if text == "7":
                await self.full.wait()
                self.go.set()
                raise MemoryRefused("MEMORY_UNUSABLE", "The disk is full.")
            self.most += 1
            if self.most == IN_FLIGHT - 1:
                self.full.set()
            await self.go.wait()
            await anyio.lowlevel.checkpoint()
            return Injected(text, (metadata or {})["uri"], "added", 1)

    memory, report = Filling(), InjectReport()
    with anyio.fail_after(60), pytest.raises(MemoryRefused):
        await load_files(memory, [tmp_path], report=report)
    assert (report.count("added"), report.count("failed")) == (IN_FLIGHT - 1, 1)
    assert (report.begun, report.files) == (IN_FLIGHT, IN_FLIGHT + 10)


async def test_a_loading_that_ends_leaves_nobody_waiting_for_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragchat.ingest.loading.MOST_BYTES", 1000)
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("x" * 300, encoding="utf-8")
    memory = Scripted(MemoryRefused("MEMORY_FULL", "The disk is full."))
    memory.go.set()
    with anyio.fail_after(20), pytest.raises(MemoryRefused):
        await load_files(memory, [tmp_path])


async def test_a_cancelled_loading_does_not_walk_on(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walking, ended = anyio.Event(), threading.Event()

    def endless(_: Sequence[Path], is_cancelled: Callable[[], bool]) -> Found:
        anyio.from_thread.run_sync(walking.set)
        while not is_cancelled():
            continue
        ended.set()
        return Found()

    monkeypatch.setattr("ragchat.ingest.loading.find_files", endless)
    async with memory_in(tmp_path) as memory:
        loading = asyncio.create_task(load_files(memory, [docs]))
        with anyio.fail_after(20):
            await walking.wait()
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
    assert await anyio.to_thread.run_sync(ended.wait, 20)
