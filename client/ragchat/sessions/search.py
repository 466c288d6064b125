"""A user's words as a query of FTS5, and the part of a text that matches them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragcommon.text.rules import UNSPACED, searchable

_WORD = re.compile(rf"[{UNSPACED}]+|[^\W{UNSPACED}]+")


def terms(text: str) -> list[str]:
    """The words of `text` as quoted terms, so that nothing in it is syntax. The last one is a prefix."""
    words = [f'"{searchable(word).strip()}"' for word in _WORD.findall(text)]
    return [*words[:-1], words[-1] + "*"] if words else []


def any_of(terms: Sequence[str]) -> str:
    """The expression that matches each text with at least one of the terms."""
    return " OR ".join(terms)


def snippet(text: str, query: str, width: int = 120) -> str:
    """The part of `text` around the first word of the query, on one line of about `width` characters."""
    line = " ".join(text.split())
    places = [line.lower().find(word.lower()) for word in _WORD.findall(query)]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, first - width // 3)
    part = line[start : start + width].strip()
    return ("…" if start else "") + part + ("…" if start + width < len(line) else "")
