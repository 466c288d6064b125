"""Answers without a model to questions that ask for more than one fact; see `offline.requests`."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from ragchat.errors import RagChatError
from ragchat.offline.evidence import Question
from ragchat.offline.lists import find_list, says_it_directly
from ragchat.offline.places import Place, answer_of
from ragchat.offline.requests import list_request
from ragchat.offline.windows import Window
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.retrieval import Memory, Retrieval
from ragchat.types import Answer
from ragconfig.text_rules import with_words_replaced

# Of a longer document only the passage that was found is read: cutting it into units takes seconds.
MOST_CHARACTERS = 1_000_000


async def overview_of(
    question: str, windows: Sequence[Window], retrieval: Retrieval, memory: Memory, limits: RetrievalLimits
) -> Answer | None:
    """The answer to a question for more than one fact; None for others, and without an answer from memory.

    `windows` are what is quoted otherwise.
    """
    question = with_words_replaced(question, retrieval.corrections)
    try:
        with anyio.fail_after(limits.seconds):
            return await _list(question, windows, retrieval, memory)
    except (RagChatError, TimeoutError):
        return None


async def _list(
    question: str, windows: Sequence[Window], retrieval: Retrieval, memory: Memory
) -> Answer | None:
    request = list_request(question)
    if request is None:
        return None
    subject = Question.named(request.subject, retrieval.weights)
    if says_it_directly(request, subject, windows):
        return None
    found = find_list(request, subject, [candidate.hit for candidate in retrieval.candidates])
    if found is None:
        return None
    document = await memory.show(found.hit.document_id)
    whole = found.whole(document.text) if document.characters <= MOST_CHARACTERS else None
    if whole is None:
        return None
    counts = request.counts and found.is_certain
    return answer_of(
        [whole.markdown(1), whole.notes(counts=counts)],
        [Place(whole.passage, whole.quote)],
        retrieval.candidates,
        grounded=True,
    )
