"""Backups: consistent copies of a memory in use, and what they may replace."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import anyio
import pytest

from ragmemory.errors import BackupFailed, NotAMemory
from tests.support.disks import small_disk
from tests.support.memories import ORIGIN, service_for


async def ignore(*_: object) -> None:
    """Reports no progress."""


async def test_a_backup_during_writes_is_a_whole_memory(tmp_path: Path) -> None:
    copy = tmp_path / "restored" / "memory.db"
    copy.parent.mkdir()
    with anyio.fail_after(60):
        async with service_for(tmp_path, roots=["*"]) as memory:
            for number in range(20):
                await memory.writer.inject(
                    f"Fox {number} jumps.", {"uri": f"{number:02}", "tags": ["fox"]}, ORIGIN
                )
            await memory.writer.forget("00", ORIGIN)
            listed = await memory.documents.page(100)
            async with anyio.create_task_group() as tasks:
                for number in range(20, 40):
                    tasks.start_soon(memory.writer.inject, f"Fox {number}.", {"uri": f"{number}"}, ORIGIN)
                made = await memory.maintenance.backup(str(copy), ignore)
            assert made.bytes == copy.stat().st_size
            assert [entry.name for entry in copy.parent.iterdir()] == ["memory.db"]
        async with service_for(copy.parent) as restored:
            documents, _ = await restored.documents.page(100)
            assert documents[: len(listed[0])] == listed[0]
            assert (await restored.maintenance.verify(ignore)).ok
            assert (await restored.search.query("fox 7", 1)).hits[0].uri == "07"
            assert (await restored.history.restore("00", None, ORIGIN)).status == "added"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no file modes")
async def test_only_its_owner_may_read_a_backup(tmp_path: Path) -> None:
    usual = os.umask(0o022)
    try:
        async with service_for(tmp_path, roots=["*"]) as memory:
            await memory.writer.inject("Fox.", {"uri": "fox"}, ORIGIN)
            await memory.maintenance.backup(str(tmp_path / "copy.db"), ignore)
    finally:
        os.umask(usual)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


async def test_a_backup_replaces_only_a_memory_that_is_not_in_use_and_if_forced(tmp_path: Path) -> None:
    copy, notes = tmp_path / "copy.db", tmp_path / "notes.txt"
    notes.write_text("my notes " * 20, encoding="utf-8")
    async with service_for(tmp_path, roots=["*"]) as memory:
        await memory.writer.inject("Fox.", {"uri": "fox"}, ORIGIN)
        await memory.maintenance.backup(str(copy), ignore)
        with pytest.raises(BackupFailed, match="it already exists"):
            await memory.maintenance.backup(str(copy), ignore)
        await memory.writer.inject("Pie.", {"uri": "pie"}, ORIGIN)
        before = copy.read_bytes()
        log = tmp_path / "copy.db-wal"
        log.touch()
        with pytest.raises(BackupFailed, match=r"copy\.db-wal exists"):
            await memory.maintenance.backup(str(copy), ignore, force=True)
        log.unlink()
        assert copy.read_bytes() == before
        await memory.maintenance.backup(str(copy), ignore, force=True)
        assert copy.read_bytes() != before
        with pytest.raises(NotAMemory, match="only a memory is replaced"):
            await memory.maintenance.backup(str(notes), ignore, force=True)
        with pytest.raises(BackupFailed, match="it is the memory itself"):
            await memory.maintenance.backup(str(tmp_path / "memory.db"), ignore, force=True)
        with pytest.raises(BackupFailed, match="no such file"):
            await memory.maintenance.backup(str(tmp_path / "gone" / "copy.db"), ignore)
    assert notes.read_text(encoding="utf-8").startswith("my notes")


async def test_a_backup_is_moved_to_another_disk_whole_or_not_at_all(tmp_path: Path) -> None:
    async with service_for(tmp_path / "home", roots=["*"]) as memory:
        await memory.writer.inject("Fox.", {"uri": "fox"}, ORIGIN)
        with small_disk(tmp_path / "disk", "4m") as disk:
            made = await memory.maintenance.backup(str(disk.path / "copy.db"), ignore)
            before = (disk.path / "copy.db").read_bytes()
            assert made.bytes == len(before)
            disk.fill()
            with pytest.raises(BackupFailed, match="no space left"):
                await memory.maintenance.backup(str(disk.path / "copy.db"), ignore, force=True)
            disk.free()
            assert (disk.path / "copy.db").read_bytes() == before
            assert [path.name for path in disk.path.iterdir()] == ["copy.db"]
        assert not [*(tmp_path / "home").glob(".backup-*")]


async def test_a_full_disk_of_the_memory_is_named_with_what_to_do_there(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "2m") as disk:
        async with service_for(disk.path, roots=["*"]) as memory:
            await memory.writer.inject("Fox.", {"uri": "fox"}, ORIGIN)
            disk.fill()
            with pytest.raises(BackupFailed, match="where the copy is made, is full") as caught:
                await memory.maintenance.backup(str(tmp_path / "copy.db"), ignore)
            assert caught.value.hint == "Free some space there."
            disk.free()
    assert not (tmp_path / "copy.db").exists()


async def test_a_backup_stays_in_the_folders_of_the_setting(tmp_path: Path) -> None:
    async with service_for(tmp_path, roots=[str(tmp_path / "backups")]) as memory:
        with pytest.raises(BackupFailed, match=r"none of the folders that memory\.roots names"):
            await memory.maintenance.backup(str(tmp_path / "copy.db"), ignore)
    assert not (tmp_path / "copy.db").exists()
