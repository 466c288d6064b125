"""A user's words as a query of FTS5, and the part of a text that matches them. Pure."""

from __future__ import annotations

import re

from ragcommon.text.rules import UNSPACED, searchable

WIDTH = 120
_WORD = re.compile(rf"[{UNSPACED}]+|[^\W{UNSPACED}]+")


def terms(text: str) -> list[str]:
    """The words of `text` as quoted terms, so that nothing in it is syntax. The last one is a prefix."""
    words = [f'"{searchable(word).strip()}"' for word in _WORD.findall(text)]
    return [*words[:-1], words[-1] + "*"] if words else []


def snippet(text: str, query: str) -> str:
    """The part of `text` around the first word of the query, on one line of about WIDTH characters."""
    line = " ".join(text.split())
    places = [line.lower().find(word.lower()) for word in _WORD.findall(query)]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, first - WIDTH // 3)
    part = line[start : start + WIDTH].strip()
    return ("…" if start else "") + part + ("…" if start + WIDTH < len(line) else "")
