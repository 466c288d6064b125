"""What a question asks for, word by word, and how much of it a text holds. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragchat.offline.answer_types import AnswerType, answer_type
from ragchat.offline.words import content_words, folded, index_terms, is_general
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
    asks: Sequence[str] = ()  # the telling words that ask for the type, as written: "cost", "old"
    numbered: Sequence[tuple[str, str]] = ()  # things named by their numbers: ("room", "3")

    @classmethod
    def of(cls, question: str, query: str = "", weights: Mapping[str, float] | None = None) -> Question:
        """`query` is what memory was asked, and `weights` are those that it gave to the words of that.

        A word's weight is in (0, UNKNOWN_WEIGHT], the higher the rarer it is in memory.
        """
        question, query = question[:MAX_QUERY_CHARACTERS], query[:MAX_QUERY_CHARACTERS]
        asked = answer_type(question)
        # What asks for a type ("cost", "how long") is answered by a value of that type, not by these words.
        known = {word.terms for word in _weighed(question, {})}
        rest = asked.asks.sub(" ", question) if asked else question
        # Of a part alone, words of another language may not be recognized as function words.
        words = [word for word in _weighed(rest, weights or {}) if word.terms in known]
        carried = [word for word in _weighed(query, weights or {}) if word.terms not in known]
        asks = _asking(asked, question) if asked else []
        return cls(words, carried, asked, asks, _numbered(question))

    @classmethod
    def named(cls, name: str, weights: Mapping[str, float] | None = None) -> Question:
        """The words of a name. "Price" and "hours" ask for no type of answer there."""
        return cls(_weighed(name[:MAX_QUERY_CHARACTERS], weights or {}), [], None)

    @property
    def judged(self) -> Sequence[Word]:
        """The words that a passage is judged by: also those of earlier questions if its own say too little.

        "What became of the first of them?" means nothing without the question before it.
        """
        is_telling = any(not word.is_general for word in self.words)
        return self.words if is_telling else [*self.words, *self.carried]

    @property
    def terms(self) -> frozenset[str]:
        """Those of all words, also of earlier questions."""
        return frozenset[str]().union(*(word.terms for word in (*self.words, *self.carried)))

    def is_expected(self, text: str, *, is_bare: bool = False) -> bool:
        """Whether a text holds a value of the type that is asked for, if any is.

        `is_bare`: the text is a row of a table or a setting, whose values may have no unit.
        """
        if self.type is None:
            return True
        if self.type.is_new:
            return is_bare or any(map(self._is_new, self.type.values_in(text)))
        if any(self.type.values_in(text)):
            return True
        return is_bare and self.type.may_be_bare and any(map(str.isdigit, text))

    def _is_new(self, value: str) -> bool:
        """Whether a value says more than the question does."""
        return not self.terms.issuperset(index_terms(value))

    def names_another(self, text: str) -> list[str]:
        """The numbers of things that the question names and the text does not, though it names others.

        "Room 3" is not in a text that has only a room 2.
        """
        lacking = []
        for thing, number in self.numbered:
            found = re.findall(rf"\b{re.escape(thing)}\W{{1,3}}(\d+)\b", text, re.IGNORECASE)
            if found and number not in found:
                lacking.append(number)
        return lacking

    def coverage(self, terms: frozenset[str], *, is_expected: bool) -> float:
        """The share, by weight, that a text with these terms holds, in [0, 1]."""
        held = sum(word.weight * word.share_in(terms) for word in self.judged)
        weight = sum(word.weight for word in self.judged)
        if self.type and not is_expected:
            weight += self.type.weight
        return held / weight if weight else float(is_expected)

    def missing(self, terms: frozenset[str], *, is_expected: bool = True) -> list[str]:
        """The telling words, as written, that a text with these terms does not hold.

        Unless `is_expected`, the text has no value of the type that is asked for, and the words that ask for
        it are missing, too.
        """
        missing = [word.text for word in self.words if not word.is_general and not word.is_in(terms)]
        return missing if is_expected else [*missing, *self.asks]

    def lacks_exact(self, terms: frozenset[str]) -> bool:
        """Whether a text with these terms lacks a number or a code of the question."""
        return any(word.is_exact and not word.is_in(terms) for word in self.words)


def _asking(asked: AnswerType, question: str) -> list[str]:
    """The words that ask for a type: a group of its pattern, else the telling words that it finds."""
    asks = list[str]()
    for found in asked.asks.finditer(question):
        if found.lastindex:
            asks.append(found[found.lastindex])
        else:
            asks += [word for word in content_words(found.group()) if not is_general(word)]
    return asks


def share(words: Sequence[Word], terms: frozenset[str]) -> float:
    """The share of some words, by weight, that a text with these terms holds, in [0, 1]."""
    held = sum(word.weight * word.share_in(terms) for word in words)
    return held / (sum(word.weight for word in words) or 1.0)


def _numbered(question: str) -> list[tuple[str, str]]:
    """The content words that a whole number follows, each with its number."""
    pairs = re.findall(r"([^\W\d_]{2,}) (\d+)(?![\w.,:/-]*\w)", question)
    return [(word, number) for word, number in pairs if content_words(word)]


def _weighed(text: str, weights: Mapping[str, float]) -> list[Word]:
    """The content words of a text, each stem once."""
    found: dict[frozenset[str], Word] = {}
    for word in content_words(text):
        known = [weights[part] for part in re.findall(r"\w+", folded(word)) if part in weights]
        weight, general = max(known, default=USUAL_WEIGHT), is_general(word)
        if general:
            weight *= GENERAL_FACTOR
        elif weight >= UNKNOWN_WEIGHT:
            weight *= UNKNOWN_FACTOR
        if terms := frozenset(index_terms(word)):
            found.setdefault(terms, Word(word, terms, weight, general))
    return list(found.values())
