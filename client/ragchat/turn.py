"""One turn: from the question to the saved-to-be answer, as one async generator of events.

Not the conversation (that is handed in) and not the screen. Memory is asked once, within a deadline; without
it the turn goes on and says so.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

import anyio

from ragchat.offline import compose
from ragchat.types import (
    OFFLINE,
    Candidate,
    Delta,
    Event,
    Finished,
    Hit,
    Notice,
    Retrieved,
    Retrieving,
    Trace,
    Turn,
    Usage,
)

Approve = Callable[[str, dict[str, Any]], Awaitable[bool]]


class QueryAnswer(Protocol):
    @property
    def hits(self) -> list[Hit]: ...
    @property
    def notice(self) -> str: ...


class Memory(Protocol):
    """What a turn needs of `MemoryClient`."""

    async def query(self, text: str, top_k: int = 8, filter: dict[str, Any] | None = None) -> QueryAnswer: ...


async def take_turn(
    question: str,
    *,
    session_id: str,
    history: Sequence[Turn],
    memory: Memory,
    top_k: int,
    min_score: float,
    deadline_seconds: float,
    created_at: str,
) -> AsyncIterator[Event]:
    started = time.perf_counter()
    notices: list[str] = []
    yield Retrieving(question)
    hits: list[Hit] = []
    try:
        with anyio.fail_after(deadline_seconds):
            found = await memory.query(question, top_k)
        hits = found.hits
        if found.notice:
            notices.append(found.notice)
    except TimeoutError:
        notices.append("Memory did not answer in time; this answer goes without it.")
    for text in notices:
        yield Notice(text)
    relevant = [hit for hit in hits if hit.score >= min_score]
    candidates = [
        Candidate(hit, hit.score >= min_score, "relevant" if hit.score >= min_score else "below min_score")
        for hit in hits
    ]
    yield Retrieved(candidates)
    retrieval = time.perf_counter() - started
    answer, citations = compose(question, relevant)
    yield Delta(answer)
    yield Finished(
        Turn(
            turn_id=secrets.token_hex(6),
            session_id=session_id,
            question=question,
            answer=answer,
            grounded=bool(relevant),
            citations=citations,
            model=OFFLINE,
            usage=Usage(),
            timings={"retrieval": retrieval, "total": time.perf_counter() - started},
            created_at=created_at,
            trace=Trace(query=question, candidates=candidates, history_turns=len(history), notices=notices),
        )
    )
