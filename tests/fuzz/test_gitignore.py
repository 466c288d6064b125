"""Hostile .gitignore files: matching ends soon and raises nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragmemory.files.gitignore import Gitignore
from tests.fuzz.hostile import UNSHRUNK, few, processor_seconds, texts

PROCESSOR_SECONDS = 2.0
LONGEST_NAME = 255  # of one name in most file systems

PARTS = ["*", "**", "?", "/", "!", "#", "\\", "[", "]", "[a-z]", "[z-a]", "[!a]", "[[:alpha:]]", "[\\]]"]
PARTS += ["a", "b", "ab", ".", "..", " ", "\\ ", "é", "\x00", "\r", "{a,b}", "$", "^", "(", "|", "+"]
patterns = st.lists(st.sampled_from(PARTS), max_size=12).map("".join) | st.text(max_size=20)
files = st.lists(patterns, max_size=8).map("\n".join) | texts
names = st.text("ab. é[]!#*?\\-", min_size=1, max_size=12).filter(lambda name: name not in {".", ".."})
paths = st.lists(names, min_size=1, max_size=4).map("/".join) | st.integers(1, LONGEST_NAME).map(
    lambda length: "a" * length
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


def check(folder: Path, gitignore: bytes, path: str) -> None:
    (folder / ".gitignore").write_bytes(gitignore)
    with processor_seconds(PROCESSOR_SECONDS):
        ignored = Gitignore().at(folder)
        for is_folder in (False, True):
            assert ignored.matches(folder / path, folder=is_folder) in {True, False}


@given(text=files, path=paths)
def test_any_patterns_and_any_path_have_an_answer(folder: Path, text: str, path: str) -> None:
    check(folder, text.encode(errors="surrogatepass"), path)


@given(gitignore=st.binary(max_size=60), path=paths)
def test_bytes_that_are_no_text_have_an_answer(folder: Path, gitignore: bytes, path: str) -> None:
    check(folder, gitignore, path)


@settings(few(30), phases=UNSHRUNK)
@given(
    unit=st.sampled_from(["*a", "a*", "**/", "*", "?", "[ab]*", "*/", "**/a", "a?*", "*b*"]),
    times=st.integers(1, 60),
    last=st.sampled_from(["", "b", "/b", "c", "/**", "!"]),
    letter=st.sampled_from(["a", "b", "a/"]),
)
def test_repeated_wildcards_take_linear_time(
    folder: Path, unit: str, times: int, last: str, letter: str
) -> None:
    check(folder, (unit * times + last).encode(), (letter * LONGEST_NAME)[:LONGEST_NAME])


@pytest.mark.parametrize(
    "line", ["!", "foo\\", "[z-a]*", "/", "\\", "!\\", "[", "**", "*a*a*a*a*b", "[[:x:]]"]
)
def test_lines_that_once_ended_a_load(folder: Path, line: str) -> None:
    check(folder, f"{line}\nb\n".encode(), "a" * LONGEST_NAME)
    assert Gitignore().at(folder).matches(folder / "b", folder=False)
