"""One turn: from the question to the finished answer, as one async generator of events.

Not the conversation (that is handed in), not the store of sessions, not the screen. Memory is asked once;
then a model answers (`generation`), or without one the answer is quoted from memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ragchat.offline import answer as offline
from ragchat.turn.draft import Draft, TurnLimits
from ragchat.turn.followup import search_text
from ragchat.turn.generation import Answerer, generate
from ragchat.turn.retrieval import Memory, Retrieval, retrieve
from ragchat.types import Event, Finished, Retrieved, Retrieving, Turn


async def take_turn(
    question: str,
    *,
    session_id: str,
    history: Sequence[Turn],
    memory: Memory,
    answerer: Answerer | None,
    limits: TurnLimits,
) -> AsyncGenerator[Event, None]:
    """The events of a turn, Finished last. `answerer` None: offline.

    Raises ModelError; offline, where memory is all there is, MemoryUnavailable and its like.
    """
    draft = Draft(question, session_id, history, limits)
    draft.query = search_text(question, history)
    yield Retrieving(draft.query)
    retrieval = await retrieve(memory, draft.query, limits.retrieval)
    draft.timings["retrieval"] = draft.seconds()
    if retrieval.failure and answerer is None:
        raise retrieval.failure
    if retrieval.notice:
        yield draft.note(retrieval.notice)
    making = _quote(draft, retrieval) if answerer is None else generate(draft, retrieval, answerer)
    async with aclosing(making) as events:
        async for event in events:
            yield event
    yield Finished(draft.turn())


async def _quote(draft: Draft, retrieval: Retrieval) -> AsyncGenerator[Event, None]:
    """The answer without a model."""
    quoted = offline.compose(draft.question, retrieval, draft.query)
    draft.candidates = quoted.candidates
    draft.citations = quoted.citations
    draft.kept_turns = len(draft.history)
    yield Retrieved(draft.candidates)
    yield draft.say(quoted.answer)
