"""The content words of a question, with their weights. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, pairwise

from ragchat.grounding.definitions import asked_term
from ragchat.grounding.words import (
    SNAKE_CASE,
    content_words,
    folded,
    index_terms,
    is_general,
    is_german,
    is_unspaced,
    names_in,
)
from ragcommon.text.rules import query_part
from ragconfig.settings import packaged

# The weight of a word without a weight from memory.
USUAL_WEIGHT = 0.5
GENERAL_FACTOR = 0.35
CARRIED_FACTOR = 0.5
# A run in a script without spaces is contained if this share of its character pairs is.
MIN_SHARE = 0.5
# In German, a compound that begins or ends with a word of at least MIN_PART letters holds this share of it:
# "Ruhepausen" holds "Pause".
PART_SHARE, MIN_PART = 0.7, 4
# What stands before the number of a place in a question, but seldom in that place: "clause 4.3".
_REFERS = re.compile(rf"\b({packaged('words.toml')['refers']})\b\.? (?=\(?§?\d)", re.IGNORECASE)
_ASKS_NUMBER = re.compile(rf"\b(?:{'|'.join(packaged('words.toml')['asks_number'])})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Word:
    """A content word of a question. `terms` has its stem, or the character pairs of a run without spaces.

    `weight` is in (0, 1], higher for words that are rarer in memory. `is_general`: it says little about what
    is asked. `is_name`: a name, number or acronym, which has no synonyms. `whole` is the term of all of
    it, as the terms of PostgreSQL are also those of its parts; "" where texts have no such term. `is_german`:
    it may be a part of a compound.
    """

    text: str
    terms: frozenset[str]
    weight: float
    is_general: bool = False
    is_name: bool = False
    whole: str = ""
    is_german: bool = False

    @property
    def has_digit(self) -> bool:
        return any(map(str.isdigit, self.text))

    def share_in(self, terms: Set[str]) -> float:
        """The share of its terms that is among these, in [0, 1]."""
        if len(self.text) == 1 and is_unspaced(self.text):  # texts have only pairs of such characters
            return float(any(self.text in term for term in terms))
        share = 1.0 if self.whole in terms else len(self.terms & terms) / len(self.terms)
        word = self.whole if self.is_german and not share and len(self.whole) >= MIN_PART else ""
        is_part = word and any(term.startswith(word) or term.endswith(word) for term in terms)
        return PART_SHARE if is_part else share

    def is_in(self, terms: Set[str]) -> bool:
        """Whether a text with these terms contains it. A number must match whole: HS-44 is not HS-45."""
        return self.share_in(terms) >= (1 if self.has_digit else MIN_SHARE)


@dataclass(frozen=True)
class Question:
    """`words` are its own. The `carried` ones, from earlier turns, help retrieval but are not evidence.

    `pairs` are the terms of adjacent content words. `asks_number`: it asks for a number, a date or a time.
    `term` has the index terms of what it asks to explain.
    """

    text: str
    words: Sequence[Word]
    carried: Sequence[Word] = ()
    pairs: Sequence[tuple[str, str]] = ()
    asks_number: bool = False
    term: Sequence[str] = ()

    @classmethod
    def of(cls, text: str, query: str = "", weights: Mapping[str, float] | None = None) -> Question:
        """`query` is the query to memory, `weights` memory's weights of its words."""
        text, query = query_part(text), query_part(query)
        own = _weighed(text, weights or {})
        more = _weighed(query, weights or {}, CARRIED_FACTOR)
        carried = [word for word in more if all(word.terms != one.terms for one in own)]
        pairs = pairwise(chain.from_iterable(map(index_terms, content_words(text))))
        asks_number = _ASKS_NUMBER.search(text) is not None
        return cls(text, own, carried, [*dict.fromkeys(pairs)], asks_number, asked_term(text))

    @property
    def all_words(self) -> Sequence[Word]:
        """Its own words and the carried ones, in the order of the matches of pieces."""
        return [*self.words, *self.carried]

    @property
    def judged(self) -> Sequence[Word]:
        """The words that passages are judged by; with the carried ones if its own are all general.

        "What became of the first of them?" means nothing without the previous question.
        """
        return self.words if any(not word.is_general for word in self.words) else self.all_words

    def pairs_in(self, terms: Sequence[str]) -> float:
        """The share of its word pairs that are neighbours in a text with these terms."""
        return len({*pairwise(terms)}.intersection(self.pairs)) / len(self.pairs) if self.pairs else 0.0

    def missing(self, terms: Set[str]) -> list[str]:
        """Its words, as written, that a text with these terms lacks; general words do not count."""
        return [word.text for word in self.words if not word.is_general and not word.is_in(terms)]

    def missing_names(self, terms: Set[str]) -> list[str]:
        """Its names, numbers and acronyms that a text with these terms lacks."""
        return [word.text for word in self.words if word.is_name and not word.is_in(terms)]


def _weighed(text: str, weights: Mapping[str, float], factor: float = 1.0) -> list[Word]:
    """The content words of a text, each stem once."""
    found: dict[frozenset[str], Word] = {}
    german = is_german(text)
    names = names_in(text) - (referring := {*_REFERS.findall(text)})
    for word in content_words(text):
        known = [weights[part] for part in re.findall(r"\w+", folded(word)) if part in weights]
        general = word in referring or (is_general(word) and word not in names)
        # 4.3 is rarer than 4 and 3.
        weight = max([*known, USUAL_WEIGHT * (not known or (word in names and not word.isalnum()))])
        if terms := frozenset(index_terms(word)):
            weight *= GENERAL_FACTOR if general else factor
            whole = index_terms(word)[0] if word.isalpha() and not is_unspaced(word) else ""
            found.setdefault(terms, Word(word, terms, weight, general, word in names, whole, german))
    for word in SNAKE_CASE.findall(text):  # Each of its parts is another name.
        terms = frozenset(index_terms(word)[:1])
        found.setdefault(terms, Word(word, terms, USUAL_WEIGHT * factor, is_name=True))
    return list(found.values())
