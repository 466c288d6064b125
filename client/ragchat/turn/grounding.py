"""What the passages that memory found hold of a question: the judgement behind every answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ragchat.offline.answer import is_grounded, terms_of
from ragchat.offline.evidence import Question
from ragchat.offline.windows import Window, best_windows, passage_terms
from ragchat.turn.retrieval import Retrieval
from ragchat.types import Candidate, Citation, Hit
from ragconfig.text_rules import with_words_replaced

# Passages that hold less of a question's words are not on its topic, unless they are similar by meaning.
FAR_COVERAGE = 0.1


class State(Enum):
    """How close the passages come to a question."""

    GROUNDED = "grounded"  # they hold what is asked
    NEAREST = "nearest"
    NOTHING = "nothing"  # none is on the topic


@dataclass(frozen=True)
class Grounding:
    """`candidates` are marked as used where a model gets them; `windows` are their best parts.

    `is_attached`: the user chose the passages, which are whole documents.
    """

    question: Question
    state: State
    candidates: Sequence[Candidate]
    windows: Sequence[Window]
    is_attached: bool = False

    @classmethod
    def of_attached(cls, candidates: Sequence[Candidate]) -> Grounding:
        """There are no words to judge by: the question is a task, and the documents are what it is about."""
        return cls(Question.of(""), State.GROUNDED, candidates, [], is_attached=True)

    def holds_answer(self, hits: Sequence[Hit]) -> bool:
        """Whether some passages, such as those that an answer cites, hold what is asked."""
        return self.is_attached or is_grounded(self.question, best_windows(self.question, hits))

    def nearest(self, hits: Mapping[int, Hit]) -> list[Citation]:
        """The best parts of numbered passages."""
        if self.is_attached:
            return []
        numbers = {hit.chunk_id: n for n, hit in hits.items()}
        windows = best_windows(self.question, list(hits.values()))
        return [Citation.of(numbers[window.hit.chunk_id], window.hit, window.text) for window in windows]

    def missing(self, hits: Sequence[Hit]) -> list[str]:
        """The telling words of the question that neither some passages nor their headings contain."""
        if self.is_attached:
            return []
        return self.question.missing(frozenset[str]().union(*map(passage_terms, hits)))


def judge_passages(question: str, query: str, retrieval: Retrieval) -> Grounding:
    """The words of `query` beyond those of `question` help to find windows, but are no evidence."""
    replaced = with_words_replaced(question, retrieval.corrections)
    query = with_words_replaced(query, retrieval.corrections)
    asked = Question.of(replaced, query, retrieval.weights)
    windows = best_windows(asked, [candidate.hit for candidate in retrieval.candidates])
    state = _state(asked, windows, retrieval.candidates)
    return Grounding(asked, state, _chosen(state, windows, retrieval.candidates), windows)


def is_far(question: Question, windows: Sequence[Window]) -> bool:
    """Whether the windows have hardly a word of the question."""
    return not windows or question.coverage(terms_of(windows), is_expected=True) < FAR_COVERAGE


def _state(question: Question, windows: Sequence[Window], candidates: Sequence[Candidate]) -> State:
    if is_grounded(question, windows):
        return State.GROUNDED
    has_relevant = any(candidate.used for candidate in candidates)
    return State.NEAREST if has_relevant or not is_far(question, windows) else State.NOTHING


def _chosen(state: State, windows: Sequence[Window], candidates: Sequence[Candidate]) -> list[Candidate]:
    """With the passages that only their score rules out: those that hold the answer, or else all the nearest.

    A model tells better than a score whether a passage answers a question in other words.
    """
    quoted = {window.hit.chunk_id for window in windows}
    chosen = []
    for candidate in candidates:
        if state is State.GROUNDED and not candidate.used and candidate.hit.chunk_id in quoted:
            candidate = Candidate(candidate.hit, True, "holds the words of the question")
        elif state is State.NEAREST and not candidate.used:
            candidate = Candidate(candidate.hit, True, f"among the nearest, though {candidate.reason}")
        chosen.append(candidate)
    return chosen
