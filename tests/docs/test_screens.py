"""The pictures show what the chat shows."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs import recording, screenshots
from tests.docs.screens import FOLDER, take, words_of


@pytest.mark.full
def test_the_pictures_show_what_the_chat_shows(tmp_path: Path) -> None:
    pictures = take(tmp_path)
    assert {path.stem for path in FOLDER.glob("*.svg")} - {recording.FILE.stem} == {*pictures}
    for name, svg in pictures.items():
        assert words_of((FOLDER / f"{name}.svg").read_text(encoding="utf-8")) == words_of(svg), name


def test_the_pictures_of_the_page_are_those_of_the_script_and_small() -> None:
    pictures = [*FOLDER.glob("*.png")]
    assert {path.stem for path in pictures} == {*screenshots.NAMES}
    assert [path.name for path in pictures if path.stat().st_size > 200_000] == []


@pytest.mark.full
async def test_the_pictures_of_the_page_can_be_made_again(tmp_path: Path) -> None:
    assert [name async for name, _ in screenshots.take(tmp_path)] == [*screenshots.NAMES]


def test_the_recording_is_small_and_types_every_line_in_a_minute() -> None:
    svg = recording.FILE.read_text(encoding="utf-8")
    assert len(svg) < 500_000
    [clock] = ElementTree.fromstring(svg).findall(".//*[@id='f']")
    assert 50 < float(clock.attrib["dur"].rstrip("s")) < 75
    assert [text for text, _, _ in recording.SCENES if f">{text}</text>" not in svg.replace("> ", ">")] == []


@pytest.mark.full
def test_the_recording_ends_as_the_chat_does(tmp_path: Path) -> None:
    end = recording.film(recording.take(tmp_path)[-2:])
    assert {"Judged:", "[1]"} < {*words_of(end)} <= {*words_of(recording.FILE.read_text(encoding="utf-8"))}
