"""The layout of a text: which lines belong together."""

from __future__ import annotations

import pytest

from ragchat.offline.layout import Shape, blocks


def shapes(text: str, uri: str = "") -> list[tuple[Shape, int]]:
    """The shape and the number of lines of each block."""
    return [(block.shape, len(block.lines)) for block in blocks(text, uri)]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("One line of prose.", Shape.PROSE),
        ("## Heading", Shape.HEADING),
        ("- one\n- two", Shape.LIST),
        ("1) one\n2) two", Shape.LIST),
        ("| a | b |\n|---|---|\n| 1 | 2 |", Shape.TABLE),
        ("From: Ann\nTo: Bob", Shape.MAIL),
        ("2024-05-01 10:00 started\n2024-05-01 10:01 stopped", Shape.MESSAGES),
        ("[12:01] Ann: hello", Shape.MESSAGES),
        ("Mill Lane 4\n1234 Town", Shape.LINES),
        ("name: Ann\nroom: 4, the one with the large window that faces the garden", Shape.LINES),
        ("let a = 1;\nlet b = 2;", Shape.CODE),
        ("```\nanything\n\nat all\n```", Shape.CODE),
    ],
)
def test_the_shape_of_a_block_is_recognized(text: str, shape: Shape) -> None:
    assert [found for found, _ in shapes(text)] == [shape]


def test_empty_lines_rules_and_headings_part_blocks() -> None:
    text = "One stands here.\n\nTwo stands here.\n---\n# A\n# B\nThree stands here."
    assert shapes(text) == [
        (Shape.PROSE, 1),
        (Shape.PROSE, 1),
        (Shape.HEADING, 1),
        (Shape.HEADING, 1),
        (Shape.PROSE, 1),
    ]


def test_files_of_code_are_code_as_a_whole() -> None:
    assert shapes("# a comment\nx = 1\n\ny = 2", "file:///notes/a.py") == [(Shape.CODE, 2), (Shape.CODE, 1)]


def test_lines_know_their_place() -> None:
    text = "One.\r\n\r\n  Two."
    places = [line for block in blocks(text) for line in block.lines]
    assert [text[line.start : line.end] for line in places] == ["One.", "  Two."]
