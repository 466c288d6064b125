"""A repository's own memory: where it is found, how it is made, what is refused. In real git repositories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragconfig.home import Home
from ragconfig.repository import (
    ORIGIN,
    RepositoryMemoryNotMade,
    RepositoryMemoryRefused,
    find_memory,
    find_repository,
    make_memory,
    may_hold,
)
from ragconfig.settings import load_settings

posix = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.find({"RAGCHAT_HOME": str(tmp_path / "home")})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A git repository with a folder in it."""
    folder = tmp_path.resolve() / "project"
    (folder / "src" / "deep").mkdir(parents=True)
    git(folder, "init")
    return folder


def git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)


def with_memory(folder: Path) -> Path:
    """A file where the memory is; finding does not read it."""
    (folder / ".ragchat").mkdir()
    memory = folder / ".ragchat" / "memory.db"
    memory.touch()
    return memory


def test_the_nearest_memory_going_up_is_found(root: Path, home: Home) -> None:
    assert find_memory(root / "src" / "deep", home) is None
    outer = with_memory(root)
    assert find_memory(root / "src" / "deep", home) == outer
    inner = with_memory(root / "src")
    assert find_memory(root / "src" / "deep", home) == inner
    assert find_memory(root, home) == outer


def test_nothing_above_the_users_home_is_found(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_memory(tmp_path)
    elsewhere = Home.find({"RAGCHAT_HOME": str(tmp_path / "other" / "home")})
    assert find_memory(root / "src", elsewhere) is not None
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.setenv("USERPROFILE", str(root))
    assert find_memory(root / "src", elsewhere) is None
    own = with_memory(root)
    assert find_memory(root / "src", elsewhere) == own


def test_nothing_above_the_folder_that_holds_ragchat_home_is_found(tmp_path: Path) -> None:
    """Two users of one clone, each with a home in a temporary folder in it, have nothing in common."""
    with_memory(tmp_path)
    work = tmp_path / "tmp" / "a" / "work"
    work.mkdir(parents=True)
    assert find_memory(work, Home.find({"RAGCHAT_HOME": str(tmp_path / "tmp" / "a" / "home")})) is None
    assert find_memory(work, Home.find({"RAGCHAT_HOME": str(tmp_path / "tmp" / "b" / "home")})) is not None


def test_the_programs_own_folder_is_no_repositorys(root: Path) -> None:
    home = Home.find({"RAGCHAT_HOME": str(root / ".ragchat")})
    with_memory(root)
    assert find_memory(root, home) is None
    with pytest.raises(RepositoryMemoryNotMade, match=r"is the folder of this program's own files\.$"):
        make_memory(root, home)


def test_a_repository_is_found_from_within(tmp_path: Path, root: Path, home: Home) -> None:
    assert find_repository(root / "src" / "deep", home) == root
    assert find_repository(tmp_path, home) is None
    # Of a worktree, .git is a file.
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", str(tmp_path / "tree"))
    assert find_repository(tmp_path / "tree", home) == tmp_path.resolve() / "tree"


def test_a_deleted_working_folder_has_none(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform == "win32":
        pytest.skip("Windows deletes no working folder")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_memory(Path(), home) is None


# Making it


def test_git_ignores_its_folder_and_no_other_file_is_changed(root: Path, home: Home) -> None:
    (root / ".gitignore").write_bytes(b"*.o\n")
    memory = root / ".ragchat" / "memory.db"
    assert make_memory(root, home) == (memory, True)
    memory.touch()
    assert make_memory(root, home) == (memory, False)
    assert (root / ".gitignore").read_bytes() == b"*.o\n"
    assert git(root, "status", "--short").stdout == "?? .gitignore\n"
    if sys.platform != "win32":
        assert (root / ".ragchat").stat().st_mode & 0o777 == 0o700


def test_a_gitignore_of_its_folder_stays(root: Path, home: Home) -> None:
    (root / ".ragchat").mkdir()
    (root / ".ragchat" / ".gitignore").write_bytes(b"memory.db*\n")
    assert make_memory(root, home)[1]
    assert (root / ".ragchat" / ".gitignore").read_bytes() == b"memory.db*\n"


def test_a_file_in_the_way_is_named(root: Path, home: Home) -> None:
    (root / ".ragchat").touch()
    with pytest.raises(RepositoryMemoryNotMade, match=r"\.ragchat cannot be written: "):
        make_memory(root, home)


# What is refused


@posix
@pytest.mark.parametrize("name", [".ragchat", "memory.db", "memory.db-wal", "memory.db-index", "index"])
def test_a_link_out_of_the_repository_is_refused(root: Path, home: Home, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "memory.db").touch()
    if name == ".ragchat":
        (root / ".ragchat").symlink_to(outside)
    elif name == "memory.db":
        (root / ".ragchat").mkdir()
        (root / ".ragchat" / "memory.db").symlink_to(tmp_path / "made-by-sqlite.db")  # It need not exist.
    elif name == "index":
        with_memory(root)
        (root / ".ragchat" / "memory.db-index").mkdir()
        (root / ".ragchat" / "memory.db-index" / "manifest").symlink_to(outside / "memory.db")
    else:
        with_memory(root)
        (root / ".ragchat" / name).symlink_to(outside)
    for attempt in (lambda: find_memory(root / "src", home), lambda: make_memory(root, home)):
        with pytest.raises(RepositoryMemoryRefused, match="is a link that leads out of the repository"):
            attempt()


@posix
def test_a_link_within_the_repository_is_followed(root: Path, home: Home) -> None:
    (root / "store").mkdir()
    (root / "store" / "memory.db").touch()
    (root / ".ragchat").symlink_to("store")
    assert find_memory(root / "src", home) == root / ".ragchat" / "memory.db"


@posix
def test_a_memory_of_another_user_is_refused(root: Path, home: Home) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(with_memory(root), 12_345, 12_345)
    with pytest.raises(RepositoryMemoryRefused, match=r"memory\.db belongs to another user\.$") as caught:
        find_memory(root, home)
    assert caught.value.hint == "Remove it, or choose a memory with --memory FILE."


@posix
def test_what_stands_in_a_repositorys_memory_may_name_only_what_is_in_it(root: Path, tmp_path: Path) -> None:
    memory = root / ".ragchat" / "memory.db"
    (root / "link").symlink_to(tmp_path)
    assert may_hold(memory, root)
    assert may_hold(memory, root / "src" / "gone.md")
    assert not may_hold(memory, tmp_path)
    assert not may_hold(memory, root / "link" / "secret")
    assert not may_hold(memory, root / "src" / ".." / ".." / "secret")
    assert may_hold(tmp_path / "memory.db", tmp_path)


# In the settings


def test_it_is_the_memory_unless_one_is_named(root: Path, tmp_path: Path) -> None:
    environ = {"RAGCHAT_HOME": str(tmp_path / "home")}
    assert load_settings(environ=environ, folder=root).memory_path == tmp_path / "home" / "data" / "memory.db"
    memory = with_memory(root)
    settings = load_settings(environ=environ, folder=root / "src")
    assert (settings.memory_path, settings.origins["memory.path"]) == (memory, ORIGIN)
    assert not settings.names_memory
    named = str(tmp_path / "named.db")
    config = tmp_path / "home" / "config" / "config.toml"
    for flags, variables, text in (
        ({"memory.path": named}, {}, ""),
        ({}, {"RAGCHAT_MEMORY": named}, ""),
        ({}, {}, f"[memory]\npath = '{named}'\n"),
    ):
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text, "utf-8")
        settings = load_settings(None, flags, environ | variables, root)
        assert (settings.memory_path, settings.names_memory) == (Path(named), True)
