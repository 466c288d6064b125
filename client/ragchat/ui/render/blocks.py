"""Where a Markdown text in the making can be cut: nothing before the cut will change. Pure."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


def split_finished(text: str) -> tuple[str, str]:
    """`text` as (finished blocks, the rest).

    All top-level blocks but the last are finished: a list, a table or a paragraph may still grow, and a fence
    without its end reaches to the end of the text. Only whole lines are judged, because the start of a line
    ("2" of "2. two") may look like another block than the line becomes.
    """
    lines_end = text.rfind("\n") + 1
    starts = [
        token.map[0]
        for token in _block_parser().parse(text[:lines_end])
        if token.level == 0 and token.map and token.nesting >= 0
    ]
    if len(starts) < 2:
        return "", text
    cut = _offset_of_line(text, starts[-1])
    return text[:cut], text[cut:]


def _offset_of_line(text: str, line: int) -> int:
    offset = 0
    for _ in range(line):
        offset = text.index("\n", offset) + 1
    return offset


@cache
def _block_parser() -> MarkdownIt:
    parser = markdown_parser()
    # Spans inside a line cost time and do not matter here.
    parser.disable(["inline", "text_join"])
    return parser


def markdown_parser() -> MarkdownIt:
    """The one dialect for answers: CommonMark with tables and strikethrough, HTML shown as text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # "[1]: notes.md" at the end of an answer would vanish as a link definition.
    return parser.disable("reference")
