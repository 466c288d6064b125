"""Texts and queries as PostgreSQL's full text takes them, in the words that FTS5 finds. Pure.

PostgreSQL's own parsers are not used: they split "foo_bar" and paths in their own way, find nothing in
Chinese, and do not find "café" by "cafe".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from ragcommon.text.rules import searchable

# Lexemes have at most 2,046 bytes, and positions end at 16,383.
_MAX_BYTES = 2_000
_MAX_POSITION = 16_383
# Positions between the title, the headings and the text: no phrase reaches over them.
_GAP = 10
# As FTS5 with remove_diacritics: combining marks that are not part of a word.
_MARKS = range(0x300, 0x370)


class _Folding(dict[int, str]):
    """For `str.translate`: letters and digits without accents, in lower case; a space for anything else."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded(chr(code))
        return folded


def _folded(character: str) -> str:
    if ord(character) in _MARKS:
        return ""
    category = unicodedata.category(character)
    if category[0] not in "LN" and category not in ("Co", "Mn", "Mc"):
        return " "
    parts = unicodedata.normalize("NFD", character)
    is_accented = len(parts) > 1 and all(ord(mark) in _MARKS for mark in parts[1:])
    return (parts[0] if is_accented else character).lower()


_FOLDED = _Folding()


def words(text: str) -> list[str]:
    """The words of a text, folded, in order."""
    return [word for word in searchable(text).translate(_FOLDED).split() if len(word.encode()) <= _MAX_BYTES]


def vector(title: str, heading: str, text: str) -> str:
    """A tsvector, in its text form, of the words with their positions; weights A, B and C for the parts."""
    positions: dict[str, list[str]] = {}
    position = 0
    for weight, part in zip("ABC", (title, heading, text), strict=True):
        for word in words(part):
            position += 1
            positions.setdefault(word, []).append(f"{min(position, _MAX_POSITION)}{weight}")
        position += _GAP
    return " ".join(f"'{word}':{','.join(places)}" for word, places in positions.items())


def query(phrases: Iterable[str], prefixes: Iterable[str], *, in_headings: bool = False) -> str:
    """A tsquery, in its text form, for all of these; "", which nothing matches, if one has no words."""
    label = "B" if in_headings else ""
    sought = [*_sought(phrases, label), *_sought(prefixes, label, "*")]
    return " & ".join(f"({one})" for one in sought) if all(sought) else ""


def _sought(texts: Iterable[str], label: str, ending: str = "") -> Iterator[str]:
    for text in texts:
        found = words(text)
        labels = [label] * len(found)
        if found:
            labels[-1] += ending
        yield " <-> ".join(
            f"'{word}'{f':{mark}' if mark else ''}" for word, mark in zip(found, labels, strict=True)
        )
