"""The probability that passages answer a question: a logistic regression of a few signals. Pure.

The coefficients are fitted on the collections of `tests/benchmarks/grounding.py` and, with equal weight, on
sets of questions about manuals, notes, settings and tables; a set that is left out is judged as well. The
benchmark reports how well they separate answerable from unanswerable questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from ragchat.grounding.evidence import Evidence
from ragchat.grounding.question import Question

# The number of passages that are judged, best windows first.
JUDGED = 3
# Neighbouring pieces that are judged together: the fields of a record are on lines of their own.
RUN = 5
# The weight of the words that a run contains; the rest is that of words matched by meaning. Without it,
# questions in Chinese are judged worse.
COVERED = 0.4
# The best passage is compared with the fourth one after it: several may hold the answer.
RIVALS = 4
# The least and the highest fit that the fourth one is taken to have. In a small memory no other passage comes
# close, and in a large one several may hold all that is asked, which says nothing about the best one.
_LEAST_USUAL, _MOST_USUAL = 0.35, 0.95
SIGNALS = {"fit": 1.51, "lead": 5.20, "relevance": 3.09}
INTERCEPT = -4.27
# At .57 and above, 86 % of the answerable questions of SQuAD and XQuAD are claimed, 21 % of the near unknowns
# and 5 % of the far ones. Lower thresholds add as many false claims as right ones.
GROUNDED = 0.57
# Below it are a few far unknowns, and no question of the sets whose answer was found.
ON_TOPIC = 0.009


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
    best, *rest = evidence
    rivals = [*islice((one for one in rest if not one.is_version_of(best)), RIVALS)]
    fit = max(_fit(question, one) for one in evidence[:JUDGED])
    usual = max([_LEAST_USUAL, *(_fit(question, one) for one in rivals[RIVALS - 1 :])])
    relevance = max(one.hit.score for one in evidence)
    return {"fit": fit, "lead": fit - min(usual, _MOST_USUAL), "relevance": relevance}


def _fit(question: Question, evidence: Evidence) -> float:
    """How well the best run of pieces matches and contains the words of the question."""
    words, pieces = question.judged, evidence.pieces
    runs = [pieces[first : first + RUN] for first in range(len(pieces))]
    fits = [
        (1 - COVERED) * evidence.late(run, words) + COVERED * evidence.coverage(run, words) for run in runs
    ]
    return max(fits, default=0.0)


def _terms(evidence: Sequence[Evidence]) -> frozenset[str]:
    """The terms of the judged passages and their titles."""
    return frozenset[str]().union(*(one.terms for one in evidence[:JUDGED]))
