"""Text as FTS5 can search it, in any language. Pure.

FTS5's tokenizers take a run of Chinese, Japanese or Thai for one word. Each character of such scripts is
made a word of its own here, and a run of them a phrase; so any part of a text is found again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Han, kana, Thai, Lao, Khmer, Myanmar: scripts written without spaces.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
_UNSPACED = re.compile(f"([{UNSPACED}])")
_WORD = re.compile(rf"[{UNSPACED}]+|[^\W{UNSPACED}]+")


def searchable(text: str) -> str:
    """The text as it goes into the index."""
    return _UNSPACED.sub(r" \1 ", text)


def terms(text: str) -> list[str]:
    """The words of any text as quoted FTS5 terms: no sign in it has a meaning. The last is a prefix."""
    words = [f'"{searchable(word).strip()}"' for word in _WORD.findall(text)]
    return [*words[:-1], words[-1] + "*"] if words else []


def any_of(words: Sequence[str]) -> str:
    """The FTS5 expression that any one of the terms satisfies."""
    return " OR ".join(words)


def snippet(text: str, query: str, width: int = 120) -> str:
    """The part of the text around the first word of the query, on one line."""
    line = " ".join(text.split())
    places = [line.lower().find(word.lower()) for word in _WORD.findall(query)]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, first - width // 3)
    part = line[start : start + width].strip()
    return ("…" if start else "") + part + ("…" if start + width < len(line) else "")
