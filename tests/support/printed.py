"""Pages as PDF files hold them: characters with their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ragmemory.files.formats.layout import arranged
from ragmemory.files.formats.page_columns import Box

HEIGHT = 10.0
WIDTH = 5.0  # of a character
# Where a line begins, the number of the line from the top, and its text.
Line: TypeAlias = tuple[float, float, str]


def characters(lines: Iterable[Line], space: float = 0) -> Iterator[tuple[str, Box]]:
    """Lines of characters; with `space`, the width of spaces of the file, others have no box."""
    for left, line, text in lines:
        bottom = 800 - line * 12
        for at, character in enumerate(text):
            start = left + at * WIDTH
            width = space if character == " " else WIDTH
            yield character, Box(start, bottom, start + width, bottom + HEIGHT)
        yield "\n", Box(0, 0, 0, 0)


def text_of(*lines: Line) -> str | None:
    return arranged(list(characters(lines)))[0]


def rows(
    *lines: tuple[str, ...], first: float = 0, columns: tuple[float, ...] = (50, 200, 350)
) -> list[Line]:
    return [
        (left, first + number, cell)
        for number, cells in enumerate(lines)
        for left, cell in zip(columns, cells, strict=False)
        if cell
    ]
