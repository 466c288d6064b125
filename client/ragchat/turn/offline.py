"""The answer without a model: quotations, or where none holds what is asked for, the nearest passages."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from ragchat.errors import RagChatError
from ragchat.offline.answer import nothing, quote_windows
from ragchat.offline.evidence import Question
from ragchat.offline.windows import (
    MAX_NEAREST,
    Window,
    best_windows,
    nearest_windows,
    windows_to_compare,
)
from ragchat.turn.grounding import State, is_far, judge_passages
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.overviews import overview_of
from ragchat.turn.passages import judge
from ragchat.turn.retrieval import Memory, Retrieval
from ragchat.types import Answer, Candidate
from ragconfig.text_rules import with_words_replaced

# Passages whose windows are compared with the question by their meaning. More passages find hardly more.
COMPARED_PASSAGES = 60
# A question is far from memory if the passages have hardly a word of it, and no window is as similar. In 3
# sets of documents, .2 loses 1 of 63 questions that are answered there in other words, .26 loses 11, .3 loses
# 15. It finds 12 of 53 questions about other things to be far, .26 finds 20, .3 finds 22: the others are as
# similar as questions in other words.
FAR_SIMILARITY = 0.2


async def answer_offline(
    question: str, query: str, retrieval: Retrieval, memory: Memory, limits: RetrievalLimits
) -> Answer:
    """Quote memory; see `offline.answer`. Memory is asked again only if the first passages are no answer."""
    if not any(sign.isalnum() for sign in query):  # No passage is about "😀".
        return nothing(retrieval.candidates, empty=retrieval.empty)
    grounding = judge_passages(question, query, retrieval)
    asked, windows, candidates = grounding.question, grounding.windows, retrieval.candidates
    if overview := await overview_of(question, windows, retrieval, memory, limits):
        return overview
    if grounding.state is State.GROUNDED:
        return quote_windows(asked, windows, candidates, grounded=True)
    query = with_words_replaced(query, retrieval.corrections)
    similar = await _most_similar(query, memory, limits) if candidates else []
    nearest = _with_best_passage(asked, candidates, similar) if similar else windows
    is_similar = not similar or max(window.score for window in similar) >= FAR_SIMILARITY
    if not nearest or (not is_similar and is_far(asked, [*windows, *similar])):
        return nothing(candidates, empty=retrieval.empty)
    known = {candidate.hit.chunk_id for candidate in candidates}
    found = {window.hit.chunk_id: window.hit for window in nearest if window.hit.chunk_id not in known}
    others = [judge(hit, limits.min_score) for hit in found.values()]
    return quote_windows(asked, nearest, [*candidates, *others], grounded=False)


def _with_best_passage(
    question: Question, candidates: Sequence[Candidate], similar: Sequence[Window]
) -> Sequence[Window]:
    """The windows nearest by meaning, after the best one of the first passage found, if that is relevant."""
    first = candidates[0]
    if not first.used or any(window.hit.chunk_id == first.hit.chunk_id for window in similar):
        return similar
    return [*best_windows(question, [first.hit])[:1], *similar][:MAX_NEAREST]


async def _most_similar(query: str, memory: Memory, limits: RetrievalLimits) -> list[Window]:
    """The windows nearest by meaning; none if memory cannot compare them, or not in time."""
    try:
        with anyio.fail_after(limits.seconds):
            hits = (await memory.query(query, COMPARED_PASSAGES)).hits
            windows = windows_to_compare(hits)
            return nearest_windows(
                windows, await memory.similarities(query, [window.named_text for window in windows])
            )
    except (RagChatError, TimeoutError):
        return []
