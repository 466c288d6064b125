"""What a question asks for. Any text is legal; the only syntax is "quoted phrases" and prefix*. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Straight, typographic, German, French and CJK quotation marks.
# No phrase holds its own opening mark, so that many unclosed ones are passed over in linear time.
PHRASE = re.compile(r'"([^"]*)"|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»|「([^「」]*)」')
# Characters of a question that are used. Words, pairs and phrases are looked up one by one: a million
# characters took half a minute.
LONGEST = 10_000
MARKS = re.compile(r'["“”„«»「」*]')
# From a word's beginning and without a second try: a word of a million letters is read once.
PREFIX = re.compile(r"(?<!\w)(\w{2,}+)\*")


@dataclass(frozen=True)
class ParsedQuery:
    """`text` is the question without its marks, to be embedded and counted, the words of phrases included."""

    text: str
    phrases: list[str]
    prefixes: list[str]


def parse(text: str) -> ParsedQuery:
    """The question in its first LONGEST characters."""
    text = text[:LONGEST]
    phrases = [next(filter(None, match.groups()), "").strip() for match in PHRASE.finditer(text)]
    return ParsedQuery(MARKS.sub(" ", text), [phrase for phrase in phrases if phrase], PREFIX.findall(text))
