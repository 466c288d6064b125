"""Nothing outside the folders of memory.roots is read or written, even while others rename them."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from ragmemory.blocks.editor import replacement
from ragmemory.errors import BackupFailed, NotWrittenBack, PathNotAllowed
from ragmemory.files.roots import ANY_ROOT, of_stored
from ragmemory.mcp.server import OnDemand
from ragmemory.service import MemoryService
from tests.support.memories import ORIGIN, service_for, settings_for
from tests.support.swapping import swapped

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")

# Of each attack; before the paths were reached without links, ten were enough to get out.
CALLS = 100
OLD = 1_000_000_000
TEA = "# Tea\n\nA cup.\n"
SECRET = "The secret is xylophone."


def test_a_path_that_stands_in_the_memory_of_a_repository_does_not_lead_out_of_it(tmp_path: Path) -> None:
    memory = tmp_path / ".ragchat" / "memory.db"
    assert of_stored(memory, [ANY_ROOT]) == [str(tmp_path)]
    assert of_stored(memory, ["/named"]) == ["/named"]
    assert of_stored(tmp_path / "memory.db", [ANY_ROOT]) == [ANY_ROOT]


class Places(NamedTuple):
    """A folder in the root, by its name and by a descriptor, which leads to it wherever it is."""

    root: Path
    inside: Path
    descriptor: int
    outside: Path

    def names(self) -> tuple[list[str], list[str]]:
        """What is in the folder, and outside."""
        with os.scandir(self.descriptor) as entries:
            return sorted(entry.name for entry in entries), [path.name for path in self.outside.iterdir()]


@contextmanager
def attack(tmp_path: Path) -> Iterator[Places]:
    """Another process swaps a folder in the root with a link to one outside."""
    root, outside, link = tmp_path / "root", tmp_path / "outside", tmp_path / "link"
    inside = root / "notes"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
    (inside / "a.md").write_text(TEA, encoding="utf-8")
    (outside / "a.md").write_text(SECRET, encoding="utf-8")
    link.symlink_to(outside)
    descriptor = os.open(inside, os.O_RDONLY)
    try:
        with swapped(inside, link):
            yield Places(root, inside, descriptor, outside)
    finally:
        os.close(descriptor)


@asynccontextmanager
async def memory_of(places: Places) -> AsyncIterator[MemoryService]:
    async with service_for(places.root.parent / "memory", roots=[str(places.root)]) as memory:
        yield memory


async def ingested(memory: MemoryService, path: Path) -> int:
    """How many files were read; none if the path leads out of the root at the start."""
    with anyio.fail_after(60):
        with suppress(PathNotAllowed):
            job = await memory.ingestions.start([str(path)], prune=False, origin=ORIGIN)
            while job.status == "running":
                job, _ = await memory.ingestions.status(job.job_id, wait_seconds=10)
            return job.added + job.updated + job.unchanged
    return 0


async def ignore(*_: object) -> None:
    """Reports no progress."""


async def test_no_text_from_outside_gets_into_memory(tmp_path: Path) -> None:
    calls = read = 0
    with attack(tmp_path) as places:
        async with memory_of(places) as memory:
            with anyio.fail_after(60):
                while calls < CALLS or not read:  # Few get between two renames.
                    calls += 1
                    # Every state is a new one, so that the file is read again.
                    os.utime("a.md", (OLD + calls, OLD + calls), dir_fd=places.descriptor)
                    path = (places.root, places.inside, places.inside / "a.md")[calls % 3]
                    read += await ingested(memory, path)
                    for document in (await memory.documents.page(10))[0]:
                        _, text = await memory.documents.read(document.document_id)
                        assert text == TEA


async def test_no_file_outside_is_changed_and_no_temporary_file_is_left(tmp_path: Path) -> None:
    calls = written = 0
    with attack(tmp_path) as places:
        async with memory_of(places) as memory:
            uri = (places.inside / "a.md").as_uri()
            await memory.writer.inject(TEA, {"uri": uri}, ORIGIN)
            with anyio.fail_after(60):
                while calls < CALLS or not written:
                    calls += 1
                    version = (await memory.block_editor.blocks(uri))[0].version
                    _, before = await memory.documents.read(uri)
                    # What is in memory: so the file outside could be taken for the one that was read.
                    (places.outside / "a.md").write_text(before, encoding="utf-8")
                    with suppress(NotWrittenBack):
                        await memory.block_editor.edit(
                            uri, version, replacement("1.a", f"Number {calls}."), ORIGIN, write_back=True
                        )
                        written += 1
                    assert (places.outside / "a.md").read_text(encoding="utf-8") == before
        assert places.names() == (["a.md"], ["a.md"])


async def test_no_backup_is_written_outside(tmp_path: Path) -> None:
    calls = written = 0
    with attack(tmp_path) as places:
        async with memory_of(places) as memory:
            await memory.writer.inject(TEA, {"uri": "tea"}, ORIGIN)
            with anyio.fail_after(60):
                while calls < CALLS or not written:  # Few get between two renames.
                    calls += 1
                    with suppress(BackupFailed):
                        await memory.maintenance.backup(str(places.inside / "copy.db"), ignore, force=True)
                        written += 1
        assert places.names() == (["a.md", "copy.db"], ["a.md"])


async def test_a_link_in_the_place_of_a_root_leads_out_of_it(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "a.md").write_text(TEA, encoding="utf-8")
    uri = (root / "a.md").as_uri()
    memory_path = str(tmp_path / "memory.db")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "moved")
    server = OnDemand(settings_for(tmp_path, memory__path=memory_path, memory__roots=[str(root), str(link)]))
    root.rename(tmp_path / "moved")
    root.symlink_to(outside)
    link.unlink()
    link.symlink_to(outside)
    async with anyio.create_task_group() as server.tasks:
        memory = await server.service()
        await memory.writer.inject(TEA, {"uri": uri}, ORIGIN)
        for path in (root, link):
            with pytest.raises(PathNotAllowed):
                await memory.ingestions.start([str(path)], prune=False, origin=ORIGIN)
        assert await ingested(memory, tmp_path / "moved") == 1
        with pytest.raises(NotWrittenBack, match=r"memory\.roots"):
            await memory.block_editor.edit(uri, 1, replacement("1.a", "Changed."), ORIGIN, write_back=True)
        with pytest.raises(BackupFailed, match=r"memory\.roots"):
            await memory.maintenance.backup(str(root / "copy.db"), ignore)
        server.tasks.cancel_scope.cancel()
    assert [path.name for path in outside.iterdir()] == ["a.md"]
    assert (outside / "a.md").read_text(encoding="utf-8") == TEA
