"""One turn: from the question to the finished answer, as one async generator of events.

Not the conversation (that is handed in), not the store of sessions, not the screen. Memory is asked once;
then a model answers (`exchange`), or without one the answer is quoted from memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ragchat import offline
from ragchat.draft import Draft, TurnLimits
from ragchat.exchange import Answerer, converse
from ragchat.followup import search_text
from ragchat.recall import Memory, Recalled, recall
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
    recalled = await recall(memory, draft.query, limits.recall)
    draft.timings["retrieval"] = draft.seconds()
    if recalled.failure and answerer is None:
        raise recalled.failure
    if recalled.notice:
        yield draft.note(recalled.notice)
    making = _quote(draft, recalled) if answerer is None else converse(draft, recalled, answerer)
    async with aclosing(making) as events:
        async for event in events:
            yield event
    yield Finished(draft.turn())


async def _quote(draft: Draft, recalled: Recalled) -> AsyncGenerator[Event, None]:
    """The answer without a model."""
    quoted = offline.compose(draft.query, recalled)
    draft.candidates = quoted.candidates
    draft.citations = quoted.citations
    draft.kept_turns = len(draft.history)
    yield Retrieved(draft.candidates)
    yield draft.say(quoted.answer)
