"""The Markdown of answers: its dialect, and where its finished blocks end. Pure."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt


def markdown_parser() -> MarkdownIt:
    """A parser of the dialect of answers: CommonMark with tables and strikethrough, HTML shown as text."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # Otherwise "[1]: notes.md" at the end of an answer would vanish as a link definition.
    return parser.disable("reference")


def split_finished(text: str) -> tuple[str, str]:
    """`text` as (finished blocks, the rest).

    All top-level blocks but the last are finished: a list, a table or a paragraph may still grow, and an open
    fence reaches to the end of the text. Only whole lines count, because the start of a line ("2" of
    "2. two") may look like another kind of block.
    """
    lines_end = text.rfind("\n") + 1
    starts = [
        token.map[0]
        for token in block_parser().parse(text[:lines_end])
        if token.level == 0 and token.map and token.nesting >= 0
    ]
    if len(starts) < 2:
        return "", text
    cut = sum(map(len, text.split("\n")[: starts[-1]])) + starts[-1]
    return text[:cut], text[cut:]


@cache
def block_parser() -> MarkdownIt:
    """A parser that finds the blocks only."""
    parser = markdown_parser()
    # Parsing spans inside a line takes time and does not change the blocks.
    parser.disable(["inline", "text_join"])
    return parser
