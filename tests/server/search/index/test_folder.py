from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ragmemory.errors import NotAnIndex
from ragmemory.search.index.columns import ColumnWriter
from ragmemory.search.index.errors import DamagedFile
from ragmemory.search.index.folder import FORMAT, LOCK, MANIFEST, TAG, TAG_TEXT, IndexFolder, Listed, Manifest
from ragmemory.types.changes import Checkpoint


def write_file(folder: IndexFolder) -> Path:
    path = folder.new_file("segment")
    writer = ColumnWriter(path)
    writer.add("numbers", [np.arange(3)])
    writer.finish({})
    return path


def manifest_of(*files: Path) -> Manifest:
    return Manifest(FORMAT, "store", Checkpoint(3), [Listed(file.name, 0, 0, 3) for file in files])


def test_a_manifest_is_read_as_it_was_written_and_its_version_changes_with_it(tmp_path: Path) -> None:
    folder = IndexFolder(tmp_path / "index")
    assert (folder.version(), folder.read()) == (None, None)
    versions = set()
    for number in range(3):
        with folder.locked() as is_ours:
            assert is_ours
            folder.replace(Manifest(FORMAT, "store", Checkpoint(number), []))
        found = folder.read()
        assert found is not None
        assert found.checkpoint == Checkpoint(number)
        versions.add(folder.version())
    assert len(versions) == 3


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"\xff" * 30, b'{"manifest":"\xff"}', b'{"manifest":{},"checksum":0}']
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, damage: bytes) -> None:
    folder = IndexFolder(tmp_path)
    (tmp_path / MANIFEST).write_bytes(damage)
    with pytest.raises(DamagedFile):
        folder.read()


def test_a_manifest_with_one_other_digit_is_refused(tmp_path: Path) -> None:
    folder = IndexFolder(tmp_path / "index")
    with folder.locked():
        folder.replace(manifest_of())
    path = tmp_path / "index" / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"chunk_id":3', b'"chunk_id":4'))
    with pytest.raises(DamagedFile, match="checksum"):
        folder.read()


def test_a_manifest_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / MANIFEST)
    with pytest.raises(OSError, match="not a regular file"):
        IndexFolder(tmp_path).read()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such FIFOs")
@pytest.mark.parametrize("name", [LOCK, f"{MANIFEST}.new"])
def test_a_pipe_where_the_index_writes_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    (tmp_path / TAG).write_text(TAG_TEXT, encoding="utf-8")
    folder = IndexFolder(tmp_path)
    if name == LOCK:
        with pytest.raises(OSError, match="not seekable"), folder.locked():
            pass
    else:
        with folder.locked():
            folder.replace(manifest_of())
        assert folder.read() == manifest_of()


@pytest.mark.parametrize(
    "name", ["../thesis.txt", "thesis.txt", "segment-0123456789abcdef.index/../thesis.txt"]
)
def test_a_manifest_that_lists_another_programs_file_is_refused(tmp_path: Path, name: str) -> None:
    folder = IndexFolder(tmp_path / "index")
    with folder.locked():
        folder.replace(msgspec.structs.replace(manifest_of(), segments=[Listed(name, 0, 0, 1)]))
    with pytest.raises(DamagedFile, match="not an index file"):
        folder.read()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_all_files_have_the_mode_that_new_files_have_so_a_group_can_read_them(tmp_path: Path) -> None:
    folder, usual = IndexFolder(tmp_path / "index"), os.umask(0o027)
    try:
        with folder.locked():
            file = write_file(folder)
            folder.replace(manifest_of(file))
    finally:
        os.umask(usual)
    assert {(tmp_path / "index" / name).stat().st_mode & 0o777 for name in (file.name, MANIFEST)} == {0o640}
    assert {path.name for path in (tmp_path / "index").iterdir()} == {file.name, MANIFEST, LOCK, TAG}


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    folder, other = IndexFolder(tmp_path / "index"), IndexFolder(tmp_path / "index")
    with folder.locked() as first, other.locked() as second:
        assert (first, second) == (True, False)
    with other.locked() as third:
        assert third


def test_files_that_no_manifest_lists_are_removed_and_nothing_else(tmp_path: Path) -> None:
    folder = IndexFolder(tmp_path / "index")
    with folder.locked():
        listed, old, half = write_file(folder), write_file(folder), folder.new_file("removed")
        half.write_bytes(b"RAGI")
        own = folder.path / "myproject"
        own.mkdir()
        (own / "thesis.txt").write_text("ten years of work", encoding="utf-8")
        of_this_name = folder.path / "segment-0123456789abcdef.index"
        of_this_name.write_text("my own notes", encoding="utf-8")
        linked = folder.path / "segment-0123456789abcdee.index"
        linked.symlink_to(listed)
        for path in (own, of_this_name):
            os.utime(path, (0, 0))
        folder.sweep(manifest_of(listed).files)
    assert not old.exists()
    assert not half.exists()
    assert listed.exists()
    assert linked.is_symlink()
    assert (own / "thesis.txt").read_text(encoding="utf-8") == "ten years of work"
    assert of_this_name.exists()


def test_the_last_damaged_file_is_kept_apart(tmp_path: Path) -> None:
    folder = IndexFolder(tmp_path / "index")
    with folder.locked():
        for _ in range(2):
            folder.quarantine(write_file(folder))
        folder.sweep(set())
    assert {path.name for path in folder.path.iterdir()} == {"CACHEDIR.TAG", "lock", "damaged.index"}


@pytest.mark.parametrize("name", ["myproject", "notes.txt", "1-0.backup", "12-3.abcdefgh"])
def test_a_folder_that_something_else_made_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").touch()
    folder = IndexFolder(tmp_path)
    with pytest.raises(NotAnIndex, match=name):
        folder.check()
    with pytest.raises(NotAnIndex), folder.locked():
        pass
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("exists", [False, True], ids=["no folder", "an empty folder"])
def test_an_index_may_use_a_missing_or_empty_folder(tmp_path: Path, exists: bool) -> None:
    folder = IndexFolder(tmp_path if exists else tmp_path / "index")
    folder.check()
    with folder.locked() as is_ours:
        assert is_ours
    folder.check()
