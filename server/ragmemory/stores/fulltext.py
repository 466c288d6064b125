"""Text for FTS5: what its tokenizer gets, and phrases in its query syntax. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Scripts without spaces: unicode61 makes one token of a whole run, in which no phrase would be found. So each
# character becomes a token, and a phrase a sequence of tokens. Compiled at first use, not at import.
_UNSPACED = (
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[\U00020000-\U0003ffff])"
)


def searchable(text: str) -> str:
    """The text with spaces around every character of an unspaced script."""
    return text if text.isascii() else re.sub(_UNSPACED, r" \1 ", text)


def fulltext_query(phrases: Iterable[str], prefixes: Iterable[str]) -> str:
    """An FTS5 expression for rows that hold all of them. Quoted: nothing in the texts is syntax."""
    return " AND ".join(
        [_quoted(phrase) for phrase in phrases] + [f"{_quoted(prefix)} *" for prefix in prefixes]
    )


def _quoted(text: str) -> str:
    # SQLite reads an expression up to its first NUL.
    return '"' + searchable(text).replace('"', '""').replace("\0", " ") + '"'
