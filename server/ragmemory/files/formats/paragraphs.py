"""The places of a text without pages: headings, and the paragraphs and table rows below each."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from ragcommon.text.places import Place, short_path
from ragmemory.ingest.blocks import is_table_rule, markdown_blocks


class NamedPart(NamedTuple):
    """A part that begins at a line and has its own name, such as a message.

    `counted`: its paragraphs are numbered places; otherwise the part is one place.
    """

    line: int
    name: str
    counted: bool


WHOLE = NamedPart(1, "", counted=True)


def paragraph_places(text: str, parts: Sequence[NamedPart]) -> list[Place]:
    """The places of Markdown: "Costs > Travel", "Costs > Travel ¶ 2", "Costs table 1 row 3", "message 2 ¶ 1".

    A list item is a paragraph, as in Word. Outside of `parts`, paragraphs are numbered below each heading.
    """
    places: list[Place] = []
    counts = Counter[str]()
    following = deque(parts)
    part = WHOLE
    line = 1
    for block in markdown_blocks(text):
        while following and following[0].line <= line:
            part = following.popleft()
            counts.clear()
            if not part.counted and not (places and places[-1][1] == part.name):
                places.append((part.line, part.name))
        above = short_path(block.heading) if part is WHOLE else part.name
        if not part.counted or text[block.start : block.end].isspace():
            pass
        elif block.kind == "heading" and part is WHOLE:
            counts.clear()
            places.append((line, above))
        elif block.kind == "table":
            places += _rows(text[block.start : block.end], line, above, counts, block.is_continued)
        elif not block.is_continued:
            counts["¶"] += 1
            places.append((line, f"{above} ¶ {counts['¶']}".lstrip()))
        line += text.count("\n", block.start, block.end)
    places += [(part.line, part.name) for part in following if not part.counted]
    return [place for place in places if place[1]]


def _rows(table: str, line: int, above: str, counts: Counter[str], is_continued: bool) -> list[Place]:
    if not is_continued:
        counts["table"] += 1
        counts["row"] = 0
    places = []
    for number, row in enumerate(table.rstrip().split("\n")):
        if counts["row"] != 1 or not is_table_rule(row):
            counts["row"] += 1
            places.append((line + number, f"{above} table {counts['table']} row {counts['row']}".lstrip()))
    return places
