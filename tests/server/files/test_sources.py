"""Sources: which are added, what a sync makes of their files, and what remains when they are removed.

Covers `ragmemory.stores.sources` too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ragcommon.contract.files import Ingestion
from ragmemory.errors import NoSources, PathNotAllowed, SourceNotFound
from ragmemory.files.sources import Sources
from ragmemory.service import MemoryService
from tests.support.memories import ORIGIN, service_for
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY

pytestmark = BOTH_ENGINES

OLD = 1_000_000_000


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryService]:
    async with service_for(tmp_path, roots=["*"]) as service:
        yield service


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (OLD, OLD + len(text)))
    return path


async def synced(memory: MemoryService, *paths: Path, within: Sequence[Path] = ()) -> Ingestion:
    jobs = memory.ingestions
    job = await memory.sources.sync([str(path) for path in paths], ORIGIN, [str(path) for path in within])
    while job.status == "running":
        job, _ = await jobs.status(job.job_id, wait_seconds=10)
    return job


async def listed(sources: Sources) -> list[str]:
    return [source.uri.rpartition("/")[2] for source in await sources.listed()]


async def test_all_sources_are_synced_together_and_their_outcomes_kept(
    tmp_path: Path, memory: MemoryService
) -> None:
    notes, papers = write(tmp_path / "notes" / "a.md", "A note.").parent, tmp_path / "papers"
    write(papers / "b.md", "A paper.")
    sources = memory.sources
    added = await sources.add([str(notes), papers.as_uri()])
    assert [(one.uri, one.status) for one in added] == [
        (notes.as_uri(), "added"),
        (papers.as_uri(), "added"),
    ]
    assert [(one.synced_at, one.documents, one.outcome) for one in await sources.listed()] == [
        ("", 0, None)
    ] * 2
    assert (await synced(memory)).added == 2
    write(notes / "c.md", "Another note.")
    (papers / "b.md").rename(tmp_path / "b.md")
    write(papers / "d.md", "Another paper.")
    await synced(memory)
    first, second = await sources.listed()
    assert first.outcome is not None
    assert second.outcome is not None
    assert (first.documents, first.outcome.files) == (2, {"unchanged": 1, "added": 1})
    assert (second.documents, second.outcome.files) == (1, {"added": 1, "removed": 1})
    assert first.synced_at > first.added_at


async def test_a_sync_of_some_files_leaves_what_is_known_of_the_other_sources(
    tmp_path: Path, memory: MemoryService
) -> None:
    notes, papers = write(tmp_path / "notes" / "a.md", "A note.").parent, tmp_path / "papers"
    write(papers / "b.md", "A paper.")
    await memory.sources.add([str(notes), str(papers)])
    await synced(memory)
    _, before = await memory.sources.listed()
    assert (await synced(memory, within=[write(notes / "c.md", "Another note.")])).added == 1
    first, second = await memory.sources.listed()
    assert first.outcome is not None
    assert first.outcome.files == {"added": 1}
    assert second == before


async def test_a_missing_source_fails_and_loses_nothing(tmp_path: Path, memory: MemoryService) -> None:
    disk = write(tmp_path / "disk" / "a.md", "A note.").parent
    sources = memory.sources
    await sources.add([str(disk)])
    await synced(memory)
    disk.rename(tmp_path / "unmounted")
    job = await synced(memory)
    [source] = await sources.listed()
    assert source.outcome is not None
    assert (job.failed, source.exists, source.documents) == (1, False, 1)
    reason = "does not exist, so nothing is removed. Is the disk mounted?"
    assert (source.outcome.status, source.outcome.error) == ("failed", f"{disk} {reason}")
    (tmp_path / "unmounted").rename(disk)
    assert (await synced(memory)).unchanged == 1


async def test_a_source_that_has_become_a_link_is_followed(tmp_path: Path, memory: MemoryService) -> None:
    notes, disk = write(tmp_path / "notes" / "a.md", "A note.").parent, tmp_path / "disk"
    await memory.sources.add([str(notes)])
    await synced(memory)
    notes.rename(disk)
    notes.symlink_to(disk)
    job = await synced(memory)
    assert (job.added, job.removed) == (1, 1)
    [source] = await memory.sources.listed()
    assert source.outcome is not None
    assert (source.uri, source.documents, source.outcome.files) == (
        disk.as_uri(),
        1,
        {"added": 1, "removed": 1},
    )
    assert (await synced(memory)).unchanged == 1
    removed = await memory.sources.remove(str(notes), ORIGIN, forget=True)
    assert (removed.uri, await memory.documents.uris_under(tmp_path.as_uri(), "")) == (disk.as_uri(), [])


async def test_a_source_that_has_become_a_link_is_removed_by_its_name(
    tmp_path: Path, memory: MemoryService
) -> None:
    notes, disk = write(tmp_path / "notes" / "a.md", "A note.").parent, tmp_path / "disk"
    await memory.sources.add([str(notes)])
    await synced(memory)
    notes.rename(disk)
    notes.symlink_to(disk)
    removed = await memory.sources.remove(str(notes), ORIGIN, forget=True)
    assert (removed.uri, removed.documents, await listed(memory.sources)) == (notes.as_uri(), 1, [])


async def test_a_path_that_is_not_a_source_can_be_synced(tmp_path: Path, memory: MemoryService) -> None:
    folder = write(tmp_path / "notes" / "a.md", "A note.").parent
    write(folder / "b.md", "Another note.")
    assert (await synced(memory, folder)).added == 2
    (folder / "a.md").unlink()
    assert (await synced(memory, folder)).removed == 1
    assert await listed(memory.sources) == []
    with pytest.raises(NoSources):
        await synced(memory)


async def test_a_source_inside_another_is_covered(tmp_path: Path, memory: MemoryService) -> None:
    write(tmp_path / "notes" / "sub" / "a.md", "A note.")
    outer, inner = tmp_path / "notes", tmp_path / "notes" / "sub"
    sources = memory.sources
    await sources.add([str(outer)])
    again, covered = await sources.add([str(outer), str(inner)])
    assert (again.status, covered.status, covered.covered_by) == ("known", "covered", outer.as_uri())
    with pytest.raises(SourceNotFound, match=r"inside .*/notes, which is one"):
        await sources.remove(str(inner), ORIGIN, forget=False)


async def test_a_source_takes_the_place_of_those_inside_it(tmp_path: Path, memory: MemoryService) -> None:
    write(tmp_path / "notes" / "sub" / "a.md", "A note.")
    outer, inner = tmp_path / "notes", tmp_path / "notes" / "sub"
    sources = memory.sources
    await sources.add([str(inner)])
    [added] = await sources.add([str(outer)])
    assert (added.status, added.covers) == ("added", [inner.as_uri()])
    assert await listed(sources) == ["notes"]


@pytest.mark.parametrize("name", [".private", "drafts"])
async def test_a_source_that_the_other_leaves_out_is_not_covered(
    tmp_path: Path, memory: MemoryService, name: str
) -> None:
    write(tmp_path / "notes" / ".gitignore", "drafts/")
    inner = write(tmp_path / "notes" / name / "a.md", "A note.").parent
    outer = write(tmp_path / "notes" / "b.md", "Another note.").parent
    sources = memory.sources
    for path in (inner, outer, inner):
        await sources.add([str(path)])
    assert sorted(await listed(sources)) == sorted(["notes", name])
    assert (await synced(memory)).added == 2
    assert (await sources.remove(str(outer), ORIGIN, forget=True)).documents == 1
    assert (await memory.maintenance.stats()).documents == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows makes symlinks for administrators alone")
async def test_a_source_that_exists_and_cannot_be_read_is_listed_with_the_reason(
    tmp_path: Path, memory: MemoryService
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    sources = memory.sources
    await sources.add([str(notes)])
    notes.rmdir()
    [source] = await sources.listed()
    assert (source.exists, source.problem) == (False, "does not exist")
    notes.symlink_to(notes)
    [source] = await sources.listed()
    said = "cannot be found:" if sys.version_info < (3, 13) else "cannot be read: "
    assert (source.exists, source.problem[:16]) == (True, said)


async def test_a_path_that_does_not_exist_is_refused_alone(tmp_path: Path, memory: MemoryService) -> None:
    write(tmp_path / "a.md", "A note.")
    sources = memory.sources
    added = await sources.add([str(tmp_path / "none"), "", str(tmp_path / "a.md")])
    assert [(one.status, one.reason) for one in added] == [
        ("refused", "does not exist"),
        ("refused", "does not exist"),
        ("added", ""),
    ]
    assert await listed(sources) == ["a.md"]


async def test_documents_stay_when_a_source_is_removed_unless_they_are_forgotten(
    tmp_path: Path, memory: MemoryService
) -> None:
    folder = write(tmp_path / "notes" / "a.md", "A note.").parent
    write(folder / "b.md", "Another note.")
    write(tmp_path / "notes.md", "A neighbour.")
    sources = memory.sources
    await synced(memory, tmp_path / "notes.md")
    for forget in (False, True):
        await sources.add([str(folder)])
        await synced(memory)
        removed = await sources.remove(str(folder), ORIGIN, forget=forget)
        assert (removed.documents, removed.forgotten) == (2, forget)
        assert await listed(sources) == []
        assert (await memory.maintenance.stats()).documents == (1 if forget else 3)


async def test_what_is_forgotten_with_a_source_is_undone_as_one(
    tmp_path: Path, memory: MemoryService
) -> None:
    for number in range(100):
        write(tmp_path / "notes" / f"{number}.md", f"Note {number}.")
    sources = memory.sources
    await sources.add([str(tmp_path / "notes")])
    await synced(memory)
    origin = type(ORIGIN)(ORIGIN.client, ORIGIN.session, "group-1")
    assert (await sources.remove(str(tmp_path / "notes"), origin, forget=True)).documents == 100
    assert (await memory.maintenance.stats()).documents == 0
    assert (await memory.history.undo(ORIGIN)).writes == {"removed": 100}
    assert (await memory.maintenance.stats()).documents == 100


async def test_a_source_must_be_under_the_roots(tmp_path: Path) -> None:
    async with service_for(tmp_path, roots=[str(tmp_path / "notes")]) as memory:
        with pytest.raises(PathNotAllowed):
            await memory.sources.add([str(tmp_path)])


@SQLITE_ONLY
async def test_the_sources_of_a_repositorys_memory_are_in_the_repository(tmp_path: Path) -> None:
    own, private = (
        tmp_path / "repository" / ".ragchat",
        write(tmp_path / "private" / "a.md", "A secret.").parent,
    )
    notes = write(tmp_path / "repository" / "notes" / "b.md", "A note.").parent
    own.mkdir()
    async with service_for(own, roots=["*"]) as memory:
        sources = memory.sources
        [refused, added] = await sources.add([str(private), str(notes)])
        assert (refused.status, refused.reason) == (
            "refused",
            "is outside the repository whose memory this is",
        )
        assert added.status == "added"
        # As someone else could have stored it.
        await memory._store.sources.change(private.as_uri(), [])
        await memory._store.sources.change("file://[", [])
        assert await listed(sources) == ["notes"]
        assert (await synced(memory)).added == 1


async def test_what_the_next_sync_does_to_a_document_is_known(tmp_path: Path, memory: MemoryService) -> None:
    notes = tmp_path / "notes"
    names = ("same.md", "other.md", "empty.md", "gone.md", "ignored.md")
    files = {name: write(notes / name, f"About {name}.") for name in names}
    await memory.sources.add([str(notes)])
    await synced(memory)
    write(files["other.md"], "Another text.")
    write(files["empty.md"], "")
    files["gone.md"].unlink()
    write(notes / ".gitignore", "ignored.md")
    expected = {"other.md": "updated", "empty.md": "removed", "gone.md": "removed"}
    for name, file in files.items():
        assert await memory.sources.next_sync(file.as_uri()) == expected.get(name, "")
    for elsewhere in ("note:1", (tmp_path / "elsewhere.md").as_uri()):
        assert await memory.sources.next_sync(elsewhere) == ""
