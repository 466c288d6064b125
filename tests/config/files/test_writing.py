"""Replacing a file as a whole."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from ragconfig.files.writing import replace_file


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    replace_file(file, b"one")
    replace_file(file, b"two")
    assert file.read_bytes() == b"two"
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_a_new_file_is_private_and_another_keeps_its_mode(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.touch()
    old.chmod(0o640)
    for file in (new, old):
        replace_file(file, b"text")
    assert [stat.S_IMODE(file.stat().st_mode) for file in (new, old)] == [0o600, 0o640]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        replace_file(tmp_path / "folder", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
