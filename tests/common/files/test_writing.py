"""Replacing a file as a whole."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest

from ragcommon.files.folder import Folder
from ragcommon.files.writing import appearing, private_folder, replace_file


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    replace_file(file, b"one")
    replace_file(file, b"two")
    assert file.read_bytes() == b"two"
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_is_named_with_the_file_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It fails when it is flushed, and again when it is closed.
    def opened(descriptor: int, mode: str) -> IO[Any]:
        os.close(descriptor)
        return Path("/dev/full").open(mode)

    monkeypatch.setattr("os.fdopen", opened)
    with pytest.raises(OSError, match="No space left") as caught:
        replace_file(tmp_path / "a.json", b"one")
    assert caught.value.filename == str(tmp_path / "a.json")
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_a_new_file_is_private_and_another_keeps_its_mode(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.touch()
    old.chmod(0o640)
    for file in (new, old):
        replace_file(file, b"text")
    assert [stat.S_IMODE(file.stat().st_mode) for file in (new, old)] == [0o600, 0o640]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root may give files away")
def test_another_file_keeps_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.touch()
    os.chown(file, 12, 34)
    file.chmod(0o4750)
    replace_file(file, b"text")
    state = file.stat()
    assert (state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)) == (12, 34, 0o4750)


@pytest.mark.skipif(sys.platform != "linux", reason="such attributes are of Linux")
def test_another_file_keeps_its_attributes_and_not_its_times(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.touch()
    os.utime(file, (1, 1))
    try:
        os.setxattr(file, "user.author", b"Anna")
    except OSError:
        pytest.skip("this file system has no attributes")
    replace_file(file, b"text")
    assert os.getxattr(file, "user.author") == b"Anna"
    assert file.stat().st_mtime > 1


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("fails", [False, True])
def test_a_file_appears_whole_at_the_end_or_not_at_all(tmp_path: Path, fails: bool) -> None:
    with suppress(EOFError), Folder(tmp_path.resolve()) as folder, appearing(folder, "a.txt") as file:
        file.write(b"te")
        assert not (tmp_path / "a.txt").exists()
        file.write(b"xt")
        if fails:
            raise EOFError
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if fails else [b"text"])


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        replace_file(tmp_path / "folder", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_a_private_folder_and_those_made_above_it_are_their_owners_only(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        folder = private_folder(tmp_path / "home" / "data")
    finally:
        os.umask(umask)
    assert [made.stat().st_mode & 0o777 for made in (folder, folder.parent)] == [0o700, 0o700]
