"""The pictures show what the chat shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import screenshots
from tests.docs.screens import FOLDER, take, words_of


@pytest.mark.full
def test_the_pictures_show_what_the_chat_shows(tmp_path: Path) -> None:
    pictures = take(tmp_path)
    assert {path.stem for path in FOLDER.glob("*.svg")} == {*pictures}
    for name, svg in pictures.items():
        assert words_of((FOLDER / f"{name}.svg").read_text(encoding="utf-8")) == words_of(svg), name


def test_the_pictures_of_the_page_are_those_of_the_script_and_small() -> None:
    pictures = [*FOLDER.glob("*.png")]
    assert {path.stem for path in pictures} == {*screenshots.NAMES}
    assert [path.name for path in pictures if path.stat().st_size > 200_000] == []


@pytest.mark.full
async def test_the_pictures_of_the_page_can_be_made_again(tmp_path: Path) -> None:
    assert [name async for name, _ in screenshots.take(tmp_path)] == [*screenshots.NAMES]
