"""The pictures show what the chat shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.screens import FOLDER, take, words_of


@pytest.mark.full
def test_the_pictures_show_what_the_chat_shows(tmp_path: Path) -> None:
    pictures = take(tmp_path)
    assert {path.stem for path in FOLDER.glob("*.svg")} == {*pictures}
    for name, svg in pictures.items():
        assert words_of((FOLDER / f"{name}.svg").read_text(encoding="utf-8")) == words_of(svg), name
