"""Phrases and prefixes in the query syntax of FTS5. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ragcommon.text.rules import searchable


def fulltext_query(phrases: Iterable[str], prefixes: Iterable[str]) -> str:
    """An FTS5 expression for rows that hold all of them. Quoted: nothing in the texts is syntax."""
    return " AND ".join(
        [_quoted(phrase) for phrase in phrases] + [f"{_quoted(prefix)} *" for prefix in prefixes]
    )


def _quoted(text: str) -> str:
    # SQLite reads an expression up to its first NUL.
    return '"' + searchable(text).replace('"', '""').replace("\0", " ") + '"'
