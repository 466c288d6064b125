"""The probability that passages answer a question: a logistic regression of a few signals. Pure.

`tests/benchmarks/grounding.py` fits the coefficients, and reports how well they separate answerable from
unanswerable questions on held-out collections.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ragchat.grounding.evidence import Evidence
from ragchat.grounding.question import Question

# The number of passages that are judged, best windows first. More add nothing.
JUDGED = 3
# The number of hits after the most relevant one that it is compared with.
COMPARED = 5
# The least late interaction and relevance that other passages are taken to have. In a small memory no other
# passage comes close, which says nothing about the best one.
_USUAL_LATE = 0.4
_USUAL_RELEVANCE = 0.3
SIGNALS = {
    "coverage": 3.20,
    "names missing": -2.20,
    "relevance": 3.06,
    "lead": 5.64,
    "relevance lead": 2.25,
}
INTERCEPT = -5.46
# At .55 and above, 85 % of the answerable questions of SQuAD are claimed, 26 % of the near unknowns and 5 %
# of the far ones; of English XQuAD 90 %, 15 % and 3 %. Lower, more false claims are made than answers won.
GROUNDED = 0.55
# Below it are a fifth of the far unknowns, and no question of the development sets whose answer was found.
ON_TOPIC = 0.003


class Closeness(Enum):
    """How close passages come to a question."""

    GROUNDED = "grounded"  # they hold what is asked
    NEAREST = "nearest"
    NOTHING = "nothing"  # no passage is on the topic


@dataclass(frozen=True)
class Judgement:
    """The `probability` that passages answer, its `signals`, and the question's words that they lack."""

    state: Closeness
    probability: float
    signals: dict[str, float]
    missing: list[str]

    @property
    def recorded(self) -> dict[str, float]:
        """The probability and its signals, for /why."""
        return {name: round(n, 3) for name, n in {"probability": self.probability, **self.signals}.items()}


def judge(question: Question, evidence: Sequence[Evidence]) -> Judgement:
    """Judge the first JUDGED passages, best first.

    The result is at most NEAREST if a name, number or acronym of the question is in no passage and no title.
    """
    terms = _terms(evidence)
    if not evidence or not question.judged:
        return Judgement(Closeness.NOTHING, 0.0, {}, question.missing(terms))
    signals = signals_of(question, evidence)
    logit = INTERCEPT + sum(SIGNALS[name] * value for name, value in signals.items())
    probability = 1 / (1 + math.exp(-logit))
    is_grounded = probability >= GROUNDED and not question.missing_names(terms)
    otherwise = Closeness.NEAREST if probability >= ON_TOPIC else Closeness.NOTHING
    state = Closeness.GROUNDED if is_grounded else otherwise
    return Judgement(state, probability, signals, question.missing(terms))


def signals_of(question: Question, evidence: Sequence[Evidence]) -> dict[str, float]:
    """The signals, each in [-1, 1]. `evidence` is best first.

    The best passage is not compared with other versions of itself.
    """
    words, names = question.judged, [word for word in question.words if word.is_name]
    best, *rest = evidence
    rivals = [one for one in rest[:COMPARED] if not one.is_version_of(best)]
    evidence = [best, *rivals, *rest[COMPARED:]]
    judged = evidence[:JUDGED]
    late, *lates = sorted((one.late(one.pieces, words) for one in judged), reverse=True)
    relevance, *others = sorted((one.hit.score for one in evidence), reverse=True)
    compared = others[:COMPARED] or [0.0]
    coverages = [one.coverage([piece], words) for one in judged for piece in one.pieces]
    return {
        "coverage": max(coverages, default=0.0),
        "names missing": len(question.missing_names(_terms(evidence))) / max(1, len(names)),
        "relevance": relevance,
        "lead": late - max([_USUAL_LATE, *lates]),
        "relevance lead": relevance - max(_USUAL_RELEVANCE, sum(compared) / len(compared)),
    }


def _terms(evidence: Sequence[Evidence]) -> frozenset[str]:
    """The terms of the judged passages and their titles."""
    return frozenset[str]().union(*(one.terms for one in evidence[:JUDGED]))
