"""What a question asks to explain, and where a text defines it. Pure.

The phrases are in `ragconfig/words.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragchat.grounding.words import content_words, index_terms
from ragconfig.settings import packaged

# A question of at most this many words, none of them function words, is a term to be explained.
MAX_LOOKED_UP = 3

_PHRASES = packaged("words.toml")["definitions"]
_ARTICLE = rf"(?:(?P<article>{_PHRASES['articles']})\s+)?"
_ASKED = re.compile(
    rf"\W*(?:(?:{_PHRASES['asked']})\s*+{_ARTICLE}[^\w\s]{{0,3}}(?P<term>\w.{{0,80}}?)"
    rf"(?:\W{{1,9}}+(?:{_PHRASES['after_term']}))?"
    rf"|(?P<before>\w+?)(?:{_PHRASES['asked_after']}))\W*",
    re.IGNORECASE,
)
# Where a subject may stand: at the beginning of a sentence or a line, behind marks, numbers and an article.
# A line that begins with a small letter continues a sentence.
_BEGINNING = (
    r"(?:\A|\n[ \t]*+(?:\n|(?![^\w\s]*+(?-i:[a-z])))|[.;:!?]\s|[。！？])"
    rf"[\W_]{{0,20}}+(?:[\d.]{{1,9}}+[.)\s][\W_]{{0,9}}+)?{_ARTICLE}"
)
# An ordinary word may come before an emphasised subject: the document _type_. It may take two lines.
_SUBJECT = (
    r"(?:(?-i:[a-z])+\s(?=[^\w\s(]|_))?[\W_]{0,9}(?P<term>\w[^\n.;:!?。]{0,60}?(?:\n[^\n.;:!?。]{1,60}?)?)"
    rf"(?:\s?\([^()\n]{{1,60}}\))?(?:[^\w\s]{{0,9}}\s(?:{_PHRASES['of']})\s[^.;:!?。]{{1,60}}?)?[\W_]{{0,9}}?"
)
# What makes it a definition: a verb, or as in dictionaries and manuals a colon, a dash, or `RANK, n.`
_VERB = (
    r"(?:[:–—]_?[^\w\s]{0,3}\s|\.[*_]{1,3}\s|(?<=\S)[^\S\n]{1,20}--?\s|,\s\w{1,3}\.\s"
    rf"|\b(?:{_PHRASES['defines']})|{_PHRASES['defines_unspaced']})(?!\S{{0,20}}://)"
)
_CALLED = (
    rf"\b(?:{_PHRASES['called']})\s+(?:(?:{_PHRASES['articles']})\s+)?"
    r"[^\w\s]{0,9}(?P<called>\w+(?:[ -]\w+){0,4})(?=[^\w\s])"
)
_DEFINED = re.compile(rf"{_BEGINNING}{_SUBJECT}{_VERB}|{_CALLED}", re.IGNORECASE)
_NOUN_FOLLOWS = re.compile(r"\s+(?:an?|the)\b")
THE = "the"


def asked_term(question: str) -> Sequence[str]:
    """The index terms of what a question asks to explain, with its "the"; none if it asks something else."""
    if found := _ASKED.fullmatch(question):
        asked = found["term"] or found["before"]
        return [THE] * _is_the(found) + index_terms(asked) if content_words(asked) else ()
    words = question.split()
    is_term = len(words) <= MAX_LOOKED_UP and len(content_words(question)) == len(words)
    return index_terms(question) if is_term else ()


def definitions(text: str, term: Sequence[str]) -> list[int]:
    """Where a text defines a term: the offsets after its subject and verb."""
    return [found.end() for found in _DEFINED.finditer(text) if _is_of(found, term)] if term else []


def _is_of(found: re.Match[str], term: Sequence[str]) -> bool:
    """Whether a match defines this term. "The session is closed" does not say what a session is."""
    bare = term[1:] if (has_the := term[0] == THE) else term
    if called := found["called"]:
        return index_terms(called) == bare
    if _is_the(found) and not has_the and not _NOUN_FOLLOWS.match(found.string, found.end()):
        return False
    return index_terms(found["term"]) == bare


def _is_the(found: re.Match[str]) -> bool:
    return (found["article"] or "").lower() == THE
