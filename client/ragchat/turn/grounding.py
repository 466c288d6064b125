"""What the passages that memory found hold of a question: the judgement behind every answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from msgspec.structs import replace

from ragchat.answer import Candidate
from ragchat.grounding.evidence import Compares, Evidence, gather
from ragchat.grounding.judging import Closeness, Judgement, judge
from ragchat.grounding.question import Question
from ragchat.grounding.types import Citation
from ragchat.offline.cards import Window, chosen, make_cards, ranked
from ragchat.turn.retrieval import Retrieval
from ragcommon.contract.search import Hit
from ragcommon.text.rules import with_words_replaced

# Where passages answer with this probability, no more than so many are used.
CLEARLY = 0.9
FEW = 8
# A prompt is filled by the scores of the passages' best windows, and so much of the passages' own scores:
# two more of a hundred prompts hold the answer than in memory's order.
W_SCORE = 2.0
# Passages with a lower score, shown as 0.00, share neither words nor meaning with the question.
ON_TOPIC_SCORE = 0.005


@dataclass(frozen=True)
class Grounding:
    """The `judgement` of the best passages, and their best `windows`. `candidates` are all that was found.

    `memory` may take so many `seconds` for a comparison.
    `is_attached`: the user chose the passages, which are whole documents.
    """

    question: Question
    judgement: Judgement
    candidates: Sequence[Candidate]
    windows: Sequence[Window] = ()  # best first
    memory: Compares | None = None
    seconds: float = inf
    is_attached: bool = False

    @property
    def state(self) -> Closeness:
        return self.judgement.state

    @property
    def evidence(self) -> Sequence[Evidence]:
        return evidence_of(self.windows)

    @classmethod
    def of_attached(cls, candidates: Sequence[Candidate]) -> Grounding:
        """There are no words to judge by: the question is a task, and the documents are what it is about."""
        certain = Judgement(Closeness.GROUNDED, 1.0, {}, [])
        return cls(Question.of(""), certain, candidates, is_attached=True)

    async def of(self, hits: Mapping[int, Hit]) -> tuple[Judgement, list[Citation]]:
        """The judgement of numbered passages, such as those that an answer cites, and their best parts."""
        if self.is_attached or self.memory is None:
            return self.judgement, []
        known = {one.hit.chunk_id: one for one in self.evidence}
        unknown = [hit for hit in hits.values() if hit.chunk_id not in known]
        new = await gather(self.question, unknown, self.memory, self.seconds)
        known |= {one.hit.chunk_id: one for one in new}
        windows = ranked([known[hit.chunk_id] for hit in hits.values()])
        numbers = {hit.chunk_id: n for n, hit in hits.items()}
        _, parts = make_cards(chosen(windows)[0])
        return judge(self.question, evidence_of(windows)), [
            replace(part, n=numbers[part.chunk_id]) for part in parts if part.chunk_id in numbers
        ]


async def judge_passages(
    question: str,
    query: str,
    retrieval: Retrieval,
    memory: Compares,
    seconds: float = inf,
) -> Grounding:
    """The words of `query` beyond those of `question` help to find windows, but are no evidence."""
    replaced = with_words_replaced(question, retrieval.corrections)
    query = with_words_replaced(query, retrieval.corrections)
    asked = Question.of(replaced, query, retrieval.weights)
    hits = [candidate.hit for candidate in retrieval.candidates]
    windows = ranked(await gather(asked, hits, memory, seconds))
    judgement = judge(asked, evidence_of(windows))
    used = _used(judgement, retrieval.candidates, windows)
    return Grounding(asked, judgement, used, windows, memory, seconds)


def evidence_of(windows: Sequence[Window]) -> list[Evidence]:
    return [window.evidence for window in windows]


def _used(
    judgement: Judgement, candidates: Sequence[Candidate], windows: Sequence[Window]
) -> list[Candidate]:
    """With the passages that only their score rules out, if they come close, but few if these clearly answer.

    A model tells better than a score whether a passage answers a question in other words.
    """
    if judgement.state is Closeness.NOTHING:
        return list(candidates)
    scores = {window.hit.chunk_id: window.score for window in windows}

    def worth(hit: Hit) -> float:
        return W_SCORE * hit.score + scores.get(hit.chunk_id, 0.0)

    used = [
        one
        if one.used or one.hit.score < ON_TOPIC_SCORE
        else Candidate(one.hit, True, f"among the nearest, though {one.reason}")
        for one in sorted(candidates, key=lambda one: -worth(one.hit))
    ]
    if judgement.state is not Closeness.GROUNDED or judgement.probability < CLEARLY:
        return used
    reason = "not needed: better passages clearly answer"
    return [*used[:FEW], *(Candidate(one.hit, False, reason) for one in used[FEW:])]
