"""Loading files into a real memory, and the report about it.

Covers `report`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

import pytest
from msgspec.structs import replace

from ragchat.errors import MemoryRefused
from ragchat.ingest.loading import JOBS_OF_OTHERS, load_files
from ragchat.ingest.report import Document, InjectReport, Progress
from ragchat.memory.client import MemoryClient
from ragcommon.contract.files import FileOutcome, Ingestion, IngestionError, IngestionStatus
from tests.support.memories import SwitchableEmbedder
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
        "film.mp4": "is in a format that is not read (sound or film)",
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
    assert report.remarks_on_files == [f"{docs / 'old.txt'} is not UTF-8; it was read as cp1252."]


async def test_documents_whose_files_are_gone_are_reported_but_kept(tmp_path: Path, docs: Path) -> None:
    async with memory_in(tmp_path) as memory:
        await load_files(memory, [docs])
        (docs / "c.md").unlink()
        assert (await load_files(memory, [docs])).missing == [(docs / "c.md").as_uri()]
        assert (await load_files(memory, [docs / "a.md"])).missing == []
        assert (await memory.stats()).documents == 3


async def test_files_that_the_walk_skips_do_not_count_as_gone(tmp_path: Path, docs: Path) -> None:
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
    assert seen[-1] == (3, 3 * size)
    assert seen == sorted(seen)


async def test_a_link_inside_a_folder_loads_nothing_from_outside(tmp_path: Path, docs: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (docs / "link.txt").symlink_to(tmp_path / "secret.txt")
    async with memory_in(tmp_path) as memory:
        report = await load_files(memory, [docs])
    assert "secret.txt" not in statuses(report)


async def test_an_error_that_every_file_would_get_is_raised_with_its_hint(tmp_path: Path, docs: Path) -> None:
    async with memory_in(tmp_path) as memory:
        await load_files(memory, [docs])
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "d.md").write_text("# Another document", encoding="utf-8")
    report = InjectReport()
    async with memory_in(tmp_path, SwitchableEmbedder("tests:other")) as memory:
        with pytest.raises(MemoryRefused, match="was embedded with") as caught:
            await load_files(memory, [folder], report=report)
    assert caught.value.word == "EMBEDDER_MISMATCH"
    assert "reembed" in caught.value.hint
    assert [document.status for document in report.documents] == ["failed"]


def test_the_error_of_a_page_has_no_key() -> None:
    outcome = FileOutcome("http://host/s?key=abc", "failed", reason="cannot be reached")
    report = InjectReport(outcomes=[outcome, replace(outcome, error="http://host/s?key=abc is away.")])
    errors = ["http://host/s?key=*** cannot be reached.", "http://host/s?key=*** is away."]
    assert [document.error for document in report.documents] == errors


def test_many_documents_that_failed_for_the_same_reason_are_one_line() -> None:
    full, bad = "The disk is full.", "x.png is not text."
    names = ["note:1", "note:2", "note:3"]
    report = InjectReport([Document(name, None, "failed", error=full) for name in names])
    report.texts.append(Document("x.png", None, "failed", error=bad))
    assert [*report.failures(3, full)] == [*(f"failed: {name}" for name in names), "failed: 1 more"]
    assert [*report.failures(2, full)] == ["failed: note:1 and 2 other documents", f"failed: {bad}"]


End = Literal["completed", "failed", "cancelled"]


class BusyMemory:
    """A memory in which other processes load the same folder first. `others`: how each of them ends."""

    mirror = None

    def __init__(self, others: Sequence[End]) -> None:
        self.others = others
        self.jobs: list[Ingestion] = []

    async def start_ingestion(self, paths: list[str], *, prune: bool, group: str) -> Ingestion:
        number = len(self.jobs)
        end = self.others[number] if number < len(self.others) else "completed"
        error = IngestionError("DISK_FULL", "The disk is full.", "") if end == "failed" else None
        files = 0 if end == "cancelled" else 1
        self.jobs.append(
            Ingestion(
                f"{number}", paths, prune, f"run {number}", group, "", status=end, files=files, error=error
            )
        )
        return self.jobs[-1]

    async def ingestion(self, job_id: str, after: int, _: float) -> IngestionStatus:
        outcome = FileOutcome("file:///a.md", "unchanged", "id", 2)
        is_mine = int(job_id) >= len(self.others)
        return IngestionStatus(self.jobs[int(job_id)], [outcome][after:] if is_mine else [])


@pytest.mark.parametrize(
    "others",
    [
        [],
        ["completed"],
        ["completed"] * JOBS_OF_OTHERS,
        ["cancelled"],
        ["failed"],
        ["completed", "cancelled"],
        ["failed", "completed", "cancelled"],
    ],
)
async def test_a_load_that_waited_for_others_counts_its_files(others: list[End]) -> None:
    busy = BusyMemory(others)
    report = await load_files(cast(MemoryClient, busy), ["/docs"])
    assert report.summary() == "1 unchanged (2 chunks)."
    assert len(busy.jobs) == len(others) + 1


@pytest.mark.parametrize(
    ("others", "starts"),
    [
        (["cancelled"] * 5, 2),
        (["completed", "cancelled", "completed", "cancelled", "completed"], 4),
        (["completed"] * (JOBS_OF_OTHERS + 5), JOBS_OF_OTHERS + 1),
    ],
)
async def test_a_load_that_others_end_again_and_again_is_given_up(others: list[End], starts: int) -> None:
    busy = BusyMemory(others)
    report = await load_files(cast(MemoryClient, busy), ["/docs"])
    assert report.outcomes == []
    assert len(busy.jobs) == starts


async def test_a_load_that_fails_twice_is_not_started_again() -> None:
    busy = BusyMemory(["completed", "failed", "failed", "failed"])
    with pytest.raises(MemoryRefused, match="The disk is full"):
        await load_files(cast(MemoryClient, busy), ["/docs"])
    assert len(busy.jobs) == 3


async def test_missing_documents_are_removed_only_with_prune(tmp_path: Path, docs: Path) -> None:
    async with memory_in(tmp_path) as memory:
        await load_files(memory, [docs])
        (docs / "c.md").unlink()
        report = await load_files(memory, [docs], prune=True)
        assert (report.missing, report.pruned) == ([], [(docs / "c.md").as_uri()])
        assert (await memory.stats()).documents == 2


async def test_an_empty_folder_prunes_nothing(tmp_path: Path, docs: Path) -> None:
    async with memory_in(tmp_path) as memory:
        await load_files(memory, [docs])
        for name in ("a", "b", "c"):
            (docs / f"{name}.md").unlink()
        report = await load_files(memory, [docs], prune=True)
        assert (len(report.missing), report.pruned) == (3, [])
        assert [(one.path, one.reason) for one in report.skipped] == [
            (str(docs), "holds no files, so nothing is removed. Is the disk mounted?")
        ]
        assert (await memory.stats()).documents == 3
