"""A resolved path is reached without following a link, and what is done there is done in the open folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragcommon.files.folder import CREATE, Folder, LinkInPath
from ragcommon.files.safe_open import NotARegularFile, read_in, read_regular
from tests.support.users import ordinary_user

posix = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with root/a/b/note.md, and outside/b/note.md beside it."""
    place = tmp_path.resolve()
    for name in ("root/a", "outside"):
        (place / name / "b").mkdir(parents=True)
        (place / name / "b" / "note.md").write_text(f"of {name}")
    return place / "root"


def put_link(path: Path, target: Path) -> None:
    """Move what is at a path away, and put a link there."""
    path.rename(path.with_name("moved"))
    path.symlink_to(target)


def read(path: Path) -> bytes:
    return read_regular(path, 100, links=False)


def test_a_file_is_read_in_its_folder(root: Path) -> None:
    assert read(root / "a" / "b" / "note.md") == b"of root/a"


@posix
@pytest.mark.parametrize("replaced", ["", "a", "a/b", "a/b/note.md"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_link_anywhere_in_the_path_is_an_error(root: Path, replaced: str, inside: bool) -> None:
    path, target = root / replaced, root.parent / "outside" / replaced.removeprefix("a").strip("/")
    put_link(path, path.with_name("moved") if inside else target)
    with pytest.raises(LinkInPath) as caught:
        read(root / "a" / "b" / "note.md")
    assert caught.value.strerror == "a link has taken its place"


@posix
def test_a_folder_that_is_renamed_stays_the_open_one(root: Path) -> None:
    with Folder(root / "a" / "b", listed=True) as folder:
        put_link(root / "a", root.parent / "outside")
        assert read_in(folder, "note.md", 100) == b"of root/a"
        os.close(folder.open("new", CREATE))
        folder.replace("note.md", by="new")
        assert [entry.name for entry in folder.entries()] == ["note.md"]
        assert folder.stat("note.md").st_size == 0
        folder.remove("note.md")
    assert not [*(root / "moved" / "b").iterdir()]
    assert (root.parent / "outside" / "b" / "note.md").read_text() == "of outside"


@posix
@pytest.mark.parametrize("flags", [CREATE, os.O_WRONLY, os.O_RDONLY])
def test_a_link_in_the_folder_is_not_opened(root: Path, flags: int) -> None:
    (root / "link").symlink_to(root.parent / "outside" / "new")
    with Folder(root) as folder, pytest.raises(FileExistsError if flags == CREATE else LinkInPath):
        folder.open("link", flags)
    assert not (root.parent / "outside" / "new").exists()


@pytest.mark.parametrize("path", [Path("relative"), Path.cwd() / ".." / "a"])
def test_only_a_resolved_path_is_taken(path: Path) -> None:
    with pytest.raises(ValueError, match="is not resolved"):
        Folder(path)


@posix
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("gone.md", FileNotFoundError),
        ("gone/note.md", FileNotFoundError),
        ("a/b/note.md/note.md", NotADirectoryError),
        ("pipe", NotARegularFile),
        ("a", NotARegularFile),
        ("no\0name", OSError),
    ],
)
def test_what_is_no_file_is_an_error_with_the_whole_path(root: Path, name: str, error: type[OSError]) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(error) as caught:
        read(root / name)
    assert str(caught.value.filename).startswith(str(root))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems list the folders that they pass")
def test_a_folder_that_may_only_be_searched_is_passed() -> None:
    with ordinary_user() as place:
        (place / "note.md").write_text("text")
        place.chmod(0o311)
        assert read(place / "note.md") == b"text"
        with pytest.raises(PermissionError):
            Folder(place, listed=True)


@posix
def test_no_descriptor_is_left_open(root: Path) -> None:
    before = os.dup(0)
    os.close(before)
    with Folder(root, listed=True) as folder:
        folder.entries()
    for path in (root / "gone" / "x", root / "a" / "b", root / "a" / "b" / "note.md" / "x"):
        with pytest.raises(OSError):  # noqa: PT011
            read(path)
    after = os.dup(0)
    os.close(after)
    assert after == before
