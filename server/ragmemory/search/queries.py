"""The query syntax: "quoted phrases" and prefix*. Any text is a valid query. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragcommon.text.rules import query_part

# Straight, typographic, German, French and CJK quotation marks.
# A phrase cannot contain its own opening mark, so that many unclosed marks take linear time.
PHRASE = re.compile(r'"([^"]*)"|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»|「([^「」]*)」')
MARKS = re.compile(r'["“”„«»「」*]')
# Anchored at the beginning of a word and possessive: a word of a million letters is read once.
PREFIX = re.compile(r"(?<!\w)(\w{2,}+)\*")


@dataclass(frozen=True)
class ParsedQuery:
    """`text` is the query without quotation marks and asterisks; it includes the words of phrases."""

    text: str
    phrases: list[str]
    prefixes: list[str]


def parse(text: str) -> ParsedQuery:
    """Parse the part of a query that is searched for."""
    text = query_part(text)
    phrases = [next(filter(None, match.groups()), "").strip() for match in PHRASE.finditer(text)]
    return ParsedQuery(MARKS.sub(" ", text), [phrase for phrase in phrases if phrase], PREFIX.findall(text))
