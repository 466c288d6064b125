"""What a question asks for, word by word, and how much of it a text holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragchat.offline.answer_types import AnswerType, answer_type
from ragchat.offline.words import content_words, index_terms, is_general
from ragconfig.text_rules import MAX_QUERY_CHARACTERS

# The weight, from memory, of a word that no passage contains.
UNKNOWN_WEIGHT = 1.0
# Such a word counts for more than the rarest one that memory has.
UNKNOWN_FACTOR = 1.5
GENERAL_FACTOR = 0.35
# Of a word that memory did not weigh.
USUAL_WEIGHT = 0.5
# A run of a script without spaces is held when this share of its pairs of characters is.
HELD = 0.5


@dataclass(frozen=True)
class Word:
    """A content word of a question.

    `terms` has its stem, or the pairs of characters of a run without spaces.
    """

    text: str
    terms: frozenset[str]
    weight: float
    is_general: bool = False  # says little of what is asked

    @property
    def is_exact(self) -> bool:
        """Whether only the same word will do: a number, a code."""
        return any(map(str.isdigit, self.text))

    def share_in(self, terms: frozenset[str]) -> float:
        """How much of it a text with these terms holds, in [0, 1]."""
        return len(self.terms & terms) / len(self.terms)

    def is_in(self, terms: frozenset[str]) -> bool:
        """Whether a text with these terms holds it."""
        return self.share_in(terms) >= HELD


@dataclass(frozen=True)
class Question:
    """The words that a question asks about, and the type of its answer.

    `carried` are words of earlier questions: they help to search, but are no evidence.
    """

    words: Sequence[Word]
    carried: Sequence[Word]
    type: AnswerType | None

    @classmethod
    def of(cls, question: str, query: str = "", weights: Mapping[str, float] | None = None) -> Question:
        """`query` is what memory was asked, and `weights` are those that it gave to the words of that.

        A word's weight is in (0, UNKNOWN_WEIGHT], the higher the rarer it is in memory.
        """
        question, query = question[:MAX_QUERY_CHARACTERS], query[:MAX_QUERY_CHARACTERS]
        asked = answer_type(question)
        # What asks for a type ("cost", "how long") is answered by a value of that type, not by these words.
        words = _weighed(asked.asks.sub(" ", question) if asked else question, weights or {})
        known = {word.terms for word in _weighed(question, {})}
        carried = [word for word in _weighed(query, weights or {}) if word.terms not in known]
        return cls(words, carried, asked)

    @classmethod
    def named(cls, name: str, weights: Mapping[str, float] | None = None) -> Question:
        """The words of a name. "Price" and "hours" ask for no type of answer there."""
        return cls(_weighed(name[:MAX_QUERY_CHARACTERS], weights or {}), [], None)

    @property
    def terms(self) -> frozenset[str]:
        """Those of all words, also of earlier questions."""
        return frozenset[str]().union(*(word.terms for word in (*self.words, *self.carried)))

    def is_expected(self, text: str) -> bool:
        """Whether a text holds a value of the type that is asked for, if any is."""
        return self.type is None or self.type.has.search(text) is not None

    def coverage(self, terms: frozenset[str], *, is_expected: bool) -> float:
        """The share, by weight, that a text with these terms holds, in [0, 1]."""
        held = sum(word.weight * word.share_in(terms) for word in self.words)
        weight = sum(word.weight for word in self.words)
        if self.type and not is_expected:
            weight += self.type.weight
        return held / weight if weight else float(is_expected)

    def missing(self, terms: frozenset[str]) -> list[str]:
        """The telling words, as written, that a text with these terms does not hold."""
        return [word.text for word in self.words if not word.is_general and not word.is_in(terms)]

    def lacks_exact(self, terms: frozenset[str]) -> bool:
        """Whether a text with these terms lacks a number or a code of the question."""
        return any(word.is_exact and not word.is_in(terms) for word in self.words)


def share(words: Sequence[Word], terms: frozenset[str]) -> float:
    """The share of some words, by weight, that a text with these terms holds, in [0, 1]."""
    held = sum(word.weight * word.share_in(terms) for word in words)
    return held / (sum(word.weight for word in words) or 1.0)


def _weighed(text: str, weights: Mapping[str, float]) -> list[Word]:
    """The content words of a text, each stem once."""
    found: dict[frozenset[str], Word] = {}
    for word in content_words(text):
        weight, general = weights.get(word.lower(), USUAL_WEIGHT), is_general(word)
        if general:
            weight *= GENERAL_FACTOR
        elif weight >= UNKNOWN_WEIGHT:
            weight *= UNKNOWN_FACTOR
        if terms := frozenset(index_terms(word)):
            found.setdefault(terms, Word(word, terms, weight, general))
    return list(found.values())
