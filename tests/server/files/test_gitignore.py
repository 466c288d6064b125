"""What .gitignore files leave out, held against git itself, and against what hostile ones try."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ragmemory.files.gitignore import MAX_BYTES, Gitignore, Patterns
from ragmemory.files.walking import find_files

NAMES = ["a", "b", "ab", "aab", "ba", "c-]", "a b", "é", "[", "!", "#x", "*", "x\\", "\x0b", " "]
FOLDERS = ["", "a/", "b/", "ab/", "a/a/", "a/b/", "a/a/b/"]
# Names that are a file here may be a folder there.
PATHS = sorted(
    f"{folder}{name}"
    for folder, name in product(FOLDERS, NAMES)
    if not any(other.startswith(f"{folder}{name}/") for other in FOLDERS)
)
ALL = sorted({*PATHS, *(folder.rstrip("/") for folder in FOLDERS if folder)})


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with every path of `PATHS` in it."""
    if sys.platform == "win32" or shutil.which("git") is None:
        pytest.skip("this test needs git, and names that Windows does not allow")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    for path in PATHS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


def ignored_by_git(root: Path) -> set[str]:
    """The paths that git ignores, or whose folder it ignores."""
    done = subprocess.run(
        ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=root,
        input="\0".join(ALL).encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return set(done.stdout.decode().split("\0")) - {""}


def ignored_by_us(root: Path) -> set[str]:
    rules = {root: Gitignore().at(root)}
    ignored: set[str] = set()
    for name in ALL:  # a folder comes before what is in it
        path = root / name
        if path.parent.relative_to(root).as_posix() in ignored:
            ignored.add(name)
            continue
        if path.parent not in rules:
            rules[path.parent] = rules[path.parent.parent].at(path.parent)
        if rules[path.parent].matches(path, path.is_dir()):
            ignored.add(name)
    return ignored


STARS = ["**", "/**", "**/", "/**/"]
BRACKETS = ["[a-b]", "[!a]", "[z-a]", "[]a]", "[^/]", "[[:alpha:]]", "[[:space:]]", "[[:", ":]", "c-]"]
pieces = st.sampled_from([*"aabb*?/!#\\[]^-: \ré", *STARS, *BRACKETS])
patterns = st.lists(pieces, min_size=1, max_size=7).map("".join)
files = st.lists(patterns, min_size=1, max_size=4).map("\n".join)
# Of these, older versions of git make folders as well: a**/b is a/a/b.
AFTER_TEXT = re.compile(r"^[^*?\[\\\n]*[^/*?\[\\\n]\*\*", re.MULTILINE)


@settings(max_examples=3 * settings().max_examples)
@given(root_file=files, deeper_file=st.none() | files)
@example(root_file="!\nfoo\\\n[z-a]*\nb", deeper_file=None)
@example(root_file="a/**\n!a/b", deeper_file="!b\n*")
@example(root_file="\ufeffa\r\n\\#x\r\n\\!", deeper_file="[[:alpha:]-]*")
@example(root_file="a\\ b  \nx\\\\\n\\*", deeper_file=None)
@example(root_file="[[:space:]]\n?", deeper_file=None)
@example(root_file="/**/**/b\n**/a/**", deeper_file=None)
def test_git_ignores_the_same_paths(repository: Path, root_file: str, deeper_file: str | None) -> None:
    assume(not any(AFTER_TEXT.search(content) for content in (root_file, deeper_file or "")))
    for folder, content in (("", root_file), ("a", deeper_file)):
        path = repository / folder / ".gitignore"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content.encode())
    assert ignored_by_us(repository) == ignored_by_git(repository)


def test_two_stars_after_text_are_like_one() -> None:
    patterns = Patterns(b"a**/b")
    assert patterns.verdict(b"ab/b", folder=False)
    assert patterns.verdict(b"a/a/b", folder=False) is None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a*a*a*a*b", "a" * 255),
        ("*a" * 100 + "b", "a" * 255),
        ("**/a" * 50 + "/b", "a/" * 500 + "a"),
        ("x/" + "*?" * 500 + "b", "x/" + "a" * 255),
        ("[a-z]*" * 100 + "!", "a" * 255),
        ("**/*a/" * 100 + "b", "a/" * 500 + "a"),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    spent = os.times().user
    assert Patterns(pattern.encode()).verdict(path.encode(), folder=False) is None
    assert os.times().user - spent < 1


def test_nested_folders_each_with_a_file_take_a_bounded_time(tmp_path: Path) -> None:
    """The files above a folder are as many as its parents, and each reads the path below it."""
    folder = tmp_path
    for _ in range(150):
        folder /= "inner"
        folder.mkdir()
        (folder / ".gitignore").write_text("*.log\n/inner/**/*a*b*c/*.md\n")
    spent = os.times().user
    assert not find_files([tmp_path]).files
    assert os.times().user - spent < 2


def test_reading_many_patterns_takes_a_bounded_time() -> None:
    patterns = Patterns(b"".join(b"name%d*.log\n" % number for number in range(8_000)))
    spent = os.times().user
    assert patterns.verdict(bytes(range(1, 256)), folder=False) is None
    assert os.times().user - spent < 2


def test_the_longest_line_that_is_read_takes_a_bounded_time() -> None:
    spent = os.times().user
    assert Patterns(b"*a?[b]" * (MAX_BYTES // 6)).verdict(b"a" * 255, folder=False) is None
    assert os.times().user - spent < 5


def test_the_largest_file_that_is_read_takes_a_bounded_time() -> None:
    spent = os.times().user
    patterns = Patterns((b"*a?" * 20 + b"\n") * (MAX_BYTES // 61))
    assert patterns.verdict(b"a" * 30, folder=False) is None
    assert patterns.verdict(b"a" * 255, folder=False) is True
    assert os.times().user - spent < 5


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds")
@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "large"])
def test_an_unreadable_gitignore_is_reported_and_the_walk_continues(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ".gitignore"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"a\n" * MAX_BYTES)
    (tmp_path / "note.md").write_text("x", encoding="utf-8")
    found = find_files([tmp_path])
    assert [file.path.name for file in found.files] == ["note.md"]
    [refusal] = found.refusals
    assert (refusal.uri, refusal.status) == (path.as_uri(), "skipped")
    reason = {
        "large": "it is larger than 262,144 bytes (524,288 bytes)",
        "link": "it is a link, which git does not follow",
    }.get(kind, "it is not a regular file")
    assert refusal.reason == f"cannot be read: {reason}"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds")
def test_one_above_the_folder_that_cannot_be_read_is_named_too(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "docs").mkdir()
    os.mkfifo(tmp_path / ".gitignore")
    refusals = find_files([tmp_path / "docs"]).refusals
    assert [refusal.uri for refusal in refusals] == [(tmp_path / ".gitignore").as_uri()]
