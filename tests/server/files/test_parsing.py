"""Parsers run in worker processes, within limits. Covers `ragmemory.files.formats.reader` too."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from ragconfig.files.decoding import NotText
from ragmemory.files import parsing
from ragmemory.files.formats.read import MissingExtra, Read
from ragmemory.files.formats.reader import Parser, parser_for
from ragmemory.files.parsing import parse
from tests.support.parsers import count, crash, fail, hang, lack_a_package, swallow_memory


async def parsed(parser: parsing.Parser, path: Path) -> Read:
    with anyio.fail_after(60):
        return await parse(parser, path, anyio.CapacityLimiter(1))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.bin"
    path.write_bytes(b"12345")
    return path


async def test_a_parser_reads_the_bytes_of_a_file(file: Path) -> None:
    assert await parsed(count, file) == Read("5", "a.bin")


async def test_a_parser_that_hangs_is_killed_and_the_next_file_is_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await parsed(count, file)  # The process has started.
    monkeypatch.setattr(parsing, "DEADLINE_SECONDS", 0.2)
    with pytest.raises(NotText, match="cannot be read: it took longer than"):
        await parsed(hang, file)
    monkeypatch.undo()
    assert (await parsed(count, file)).text == "5"


async def test_a_parser_that_crashes_the_process_refuses_one_file(file: Path) -> None:
    with pytest.raises(NotText, match="cannot be read: its parser crashed"):
        await parsed(crash, file)
    assert (await parsed(count, file)).text == "5"


@pytest.mark.parametrize(
    ("parser", "reason"),
    [(fail, r"it is damaged \(KeyError\)"), (swallow_memory, "it needs too much memory")],
)
async def test_a_parser_that_fails_refuses_the_file(parser: parsing.Parser, reason: str, file: Path) -> None:
    with pytest.raises(NotText, match=f"cannot be read: {reason}"):
        await parsed(parser, file)


async def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await parsed(count, tmp_path / "gone.bin")


def test_the_extension_chooses_the_parser_in_either_case() -> None:
    assert parser_for(Path("a.PDF")) == Parser("pdf")
    assert parser_for(Path("a.md")) is None


async def test_a_format_is_read_by_its_module(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n", encoding="utf-8")
    assert (await parsed(Parser("subtitles"), path)).text == "Hello.\n"


async def test_a_package_that_is_missing_is_named(file: Path) -> None:
    with pytest.raises(NotText, match="needs the package selectolax, which is not installed"):
        await parsed(lack_a_package, file)


def test_a_missing_extra_is_named_with_the_command() -> None:
    assert str(MissingExtra("pdf")) == "needs `pip install 'ragchat[pdf]'`"
