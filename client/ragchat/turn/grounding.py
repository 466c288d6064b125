"""Whether the passages from memory answer a question: the judgement behind every answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from msgspec.structs import replace

from ragchat.answer import Candidate
from ragchat.grounding.evidence import Evidence, TextComparer, gather
from ragchat.grounding.judging import Closeness, Judgement, judge
from ragchat.grounding.question import Question
from ragchat.grounding.types import Citation
from ragchat.offline.cards import make_cards
from ragchat.offline.windows import Window, chosen, ranked
from ragchat.turn.retrieval import Retrieval
from ragcommon.contract.search import Hit
from ragcommon.text.rules import with_words_replaced

# From this probability on, a prompt gets at most this many passages.
CONFIDENT = 0.93
MAX_CONFIDENT_PASSAGES = 8
# Divided by the rank of a passage in memory's order and added to the score of its best window, for the order
# of a prompt's passages. Two more of a hundred prompts have the answer than in memory's order, and for
# questions in other words as many; with the score instead of the rank, one of twenty fewer.
W_RANK = 1.0
# Passages with a lower score, shown as 0.00, share neither words nor meaning with the question.
ON_TOPIC_SCORE = 0.005


@dataclass(frozen=True)
class Grounding:
    """The `judgement` of the best passages, and their best `windows`. `candidates` are all hits.

    `memory` may take `seconds` for a comparison. `is_attached`: the user attached whole documents.
    `was_searched`: memory answered.
    """

    question: Question
    judgement: Judgement
    candidates: Sequence[Candidate]
    windows: Sequence[Window] = ()  # best first
    memory: TextComparer | None = None
    seconds: float = inf
    is_attached: bool = False
    was_searched: bool = True

    @property
    def state(self) -> Closeness:
        return self.judgement.state

    @property
    def evidence(self) -> Sequence[Evidence]:
        return evidence_of(self.windows)

    @classmethod
    def of_attached(cls, candidates: Sequence[Candidate]) -> Grounding:
        """Attached documents are not judged: the question is a task about them."""
        certain = Judgement(Closeness.GROUNDED, 1.0, {}, [])
        return cls(Question.of(""), certain, candidates, is_attached=True)

    async def of(self, hits: Mapping[int, Hit]) -> tuple[Judgement, list[Citation]]:
        """The judgement of numbered passages, such as the cited ones, and citations of their best parts."""
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
    memory: TextComparer,
    seconds: float = inf,
) -> Grounding:
    """Words that only `query` has help to find windows, but are not evidence."""
    replaced = with_words_replaced(question, retrieval.corrections)
    query = with_words_replaced(query, retrieval.corrections)
    asked = Question.of(replaced, query, retrieval.weights)
    hits = [candidate.hit for candidate in retrieval.candidates]
    windows = ranked(await gather(asked, hits, memory, seconds))
    judgement = judge(asked, evidence_of(windows))
    used = _used(judgement, retrieval.candidates, windows)
    was_searched = retrieval.failure is None
    return Grounding(asked, judgement, used, windows, memory, seconds, was_searched=was_searched)


def evidence_of(windows: Sequence[Window]) -> list[Evidence]:
    return [window.evidence for window in windows]


def _used(
    judgement: Judgement, candidates: Sequence[Candidate], windows: Sequence[Window]
) -> list[Candidate]:
    """Choose the passages for a prompt, best first.

    If they come close, passages below the minimum score are used too: a model recognises an answer in other
    words better than a score does. If the best ones clearly answer, few are used.
    """
    if judgement.state is Closeness.NOTHING:
        return list(candidates)
    scores = {window.hit.chunk_id: window.score for window in windows}

    def worth(hit: Hit) -> float:
        return W_RANK / max(1, hit.rank) + scores.get(hit.chunk_id, 0.0)

    used = [
        one
        if one.used or one.hit.score < ON_TOPIC_SCORE
        else Candidate(one.hit, True, f"among the nearest, though {one.reason}")
        for one in sorted(candidates, key=lambda one: -worth(one.hit))
    ]
    if judgement.state is not Closeness.GROUNDED or judgement.probability < CONFIDENT:
        return used
    reason = "not needed: better passages clearly answer"
    kept, others = used[:MAX_CONFIDENT_PASSAGES], used[MAX_CONFIDENT_PASSAGES:]
    return [*kept, *(Candidate(one.hit, False, reason) for one in others)]
