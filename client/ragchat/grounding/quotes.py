"""Locate a quotation in a text. Pure."""

from __future__ import annotations

import re

ELLIPSIS = re.compile(r"\s*[\[(]?(?:…|\.\.\.)[\])]?\s*")
_WORD = re.compile(r"\w+")


def quoted_lines(quote: str, text: str, first_line: int = 1) -> tuple[int, int] | None:
    """The first and last line of a quotation in `text`, whose first line is `first_line`; None if absent."""
    span = quoted_span(quote, text)
    return span and (first_line + text.count("\n", 0, span[0]), first_line + text.count("\n", 0, span[1]))


def quoted_span(quote: str, text: str) -> tuple[int, int] | None:
    """Where a quotation begins and ends in `text`; None if it is absent.

    Only words and their order count; an ellipsis matches any words.
    """
    start = end = -1
    for part in ELLIPSIS.split(quote):
        if words := _WORD.findall(part):
            if sum(map(len, words)) > len(text):  # A pattern of many words takes long to compile.
                return None
            pattern = re.compile(r"[\W_]+".join(map(re.escape, words)), re.IGNORECASE)
            if (found := pattern.search(text, max(end, 0))) is None:
                return None
            start, end = (found.start() if start < 0 else start), found.end()
    return None if start < 0 else (start, end)
