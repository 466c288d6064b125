"""One turn, from the question to the finished answer.

Memory is queried once; then a model answers (`generation`), or memory is quoted (`offline`). Without a model,
small talk gets a fixed reply. The caller keeps the conversation and saves the turn.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgspec.structs import replace

from ragchat.answer import Answer, Candidate
from ragchat.formatting import utc_now
from ragchat.grounding.judging import Closeness
from ragchat.llm.types import OFFLINE
from ragchat.offline.answer import EMPTY_MEMORY, NO_MODEL
from ragchat.offline.views import asks_for_outline
from ragchat.turn.beginnings import with_beginning
from ragchat.turn.days import asks_for_notes
from ragchat.turn.events import Delta, Emit, Event, Notice, Rephrasing, Retrieved, Retrieving, Shown
from ragchat.turn.followup import changes_topic, depends, goes_on, may_change_topic, question_of, search_text
from ragchat.turn.generation import generate
from ragchat.turn.grounding import Grounding, judge_passages
from ragchat.turn.limits import TurnLimits
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import Memory, Retrieval, retrieve
from ragchat.turn.rewriting import Rewriting, rewrite, search_again, standalone
from ragchat.turn.rounds import Answerer
from ragchat.turn.small_talk import is_searched_first, small_talk
from ragchat.turn.topics import topic_of
from ragchat.turn.types import Trace, Turn
from ragcommon.text.rules import with_words_replaced


async def take_turn(
    question: str,
    *,
    session_id: str,
    history: Sequence[Turn],
    memory: Memory,
    answerer: Answerer | None,
    limits: TurnLimits,
    emit: Emit,
    attached: Sequence[Candidate] = (),
) -> Turn:
    """Answer a question; `emit` gets the events as they happen. `answerer` None: offline.

    A question about `attached` documents needs a model, and does not query memory.

    Raises ModelError; offline also MemoryUnavailable and MemoryTimedOut.
    """
    created_at = utc_now()
    ongoing = _OngoingTurn(history, memory, limits, emit)
    if answerer is None:
        query, retrieval, answer = await ongoing.quote_memory(question)
    elif attached:
        query, retrieval = "", Retrieval(list(attached))
        grounding = Grounding.of_attached(attached)
        answer = await generate(question, history, grounding, answerer, limits, ongoing.emit)
    else:
        query, retrieval, answer = await ongoing.ask_model(question, answerer)
    ongoing.time("total")
    return Turn(
        turn_id=secrets.token_hex(6),
        session_id=session_id,
        question=question,
        answer=answer,
        timings=ongoing.timings,
        created_at=created_at,
        trace=Trace(
            query,
            len(history) - answer.dropped_turns,
            ongoing.notices,
            len(answerer.images) if answerer else 0,
        ),
        corrections=dict(retrieval.corrections),
    )


class _OngoingTurn:
    """Forwards events to `emit`, and records the notices and times of the turn."""

    def __init__(self, history: Sequence[Turn], memory: Memory, limits: TurnLimits, emit: Emit) -> None:
        self.notices: list[str] = []
        self.timings: dict[str, float] = {}  # seconds since the question
        self._history = history
        self._memory = memory
        self._limits = limits
        self._emit = emit
        self._started = time.perf_counter()

    def time(self, name: str) -> None:
        self.timings.setdefault(name, round(time.perf_counter() - self._started, 6))

    def emit(self, event: Event) -> None:
        if isinstance(event, (Delta, Shown)):
            self.time("first_token")
        elif isinstance(event, Notice):
            self.notices.append(event.text)
        self._emit(event)

    async def quote_memory(self, question: str) -> tuple[str, Retrieval, Answer]:
        """The query, what it found, and the answer, which quotes it, or replies to small talk."""
        history, memory, limits = self._history, self._memory, self._limits.retrieval
        reply = small_talk(question)
        if reply and not is_searched_first(question):
            self.emit(Delta(reply))
            return "", Retrieval([]), Answer(reply)
        question = question_of(question, history)
        query = search_text(question, history)
        if history and query != question and may_change_topic(question):
            found = await retrieve(memory, question, limits)
            if changes_topic(with_words_replaced(question, found.corrections), history, found.candidates):
                query = search_text(question, [])
        retrieval = await self._retrieve(question, query, is_needed=True)
        answer = await answer_offline(question, query, retrieval, memory, limits)
        if reply and not answer.grounded:
            query, answer = "", Answer(reply)
        self.emit(Retrieved(answer.candidates))
        # Before the answer, whose first card must stay on the screen.
        if not reply and not any(turn.answer.model == OFFLINE for turn in history):
            self.emit(Notice(NO_MODEL))
        self.emit(Shown(answer))
        return query, retrieval, answer

    async def ask_model(self, question: str, answerer: Answerer) -> tuple[str, Retrieval, Answer]:
        """The query, what it found, and the answer of the model."""
        history = self._history
        seconds = 0.0 if small_talk(question) else self._limits.rewrite_seconds
        followup = await self._standalone(question, answerer, seconds)
        asked = next(iter(followup.wordings), topic_of(question))
        query = asked if followup.wordings else search_text(asked, history)
        retrieval = await self._retrieve(asked, query, is_needed=False)
        if retrieval.empty:
            self.emit(Notice(EMPTY_MEMORY))
        seconds = 0.0 if followup.failure else seconds
        grounding, rewriting = await self._ground(asked, query, retrieval, answerer, seconds)
        answer = await generate(question, history, grounding, answerer, self._limits, self.emit)
        usage = answer.usage + followup.usage + rewriting.usage
        return query, retrieval, replace(answer, usage=usage, wordings=list(rewriting.wordings))

    async def _retrieve(self, question: str, query: str, *, is_needed: bool) -> Retrieval:
        """Query memory. If it is needed, its failure is raised."""
        self.emit(Retrieving(query))
        retrieval = await retrieve(self._memory, query, self._limits.retrieval)
        if self._history and goes_on(question) and not asks_for_notes(self._history[-1].question):
            retrieval = dataclasses.replace(retrieval, goes_on=True)
        retrieval = await with_beginning(retrieval, question, self._memory, self._limits.retrieval)
        self.time("retrieval")
        if retrieval.failure and is_needed:
            raise retrieval.failure
        # "Summarise" is the word of a command: documents that have only "summarize" do not correct it.
        asked = asks_for_outline(question)[0] or question
        if with_words_replaced(asked, retrieval.corrections) != asked:
            self.emit(Notice(f"Searched for: {with_words_replaced(question, retrieval.corrections)}"))
        if retrieval.notice:
            self.emit(Notice(retrieval.notice))
        return retrieval

    async def _standalone(self, question: str, answerer: Answerer, seconds: float) -> Rewriting:
        """Rewrite a follow-up as a standalone question; empty for other questions."""
        if not seconds or not (self._history and depends(question)):
            return Rewriting()
        before, prompt = self._history[-1], answerer.prompts.standalone
        return await self._rephrase(partial(standalone, question, before, answerer.model, prompt, seconds))

    async def _ground(
        self, question: str, query: str, retrieval: Retrieval, answerer: Answerer, seconds: float
    ) -> tuple[Grounding, Rewriting]:
        """Judge the passages. If they only come close, search for other wordings first.

        The model may take `seconds` for these; 0: it is not asked.
        """
        memory, limits = self._memory, self._limits.retrieval
        grounding = await judge_passages(question, query, retrieval, memory, limits.seconds)
        is_weak = grounding.state is not Closeness.GROUNDED and not retrieval.empty and not retrieval.failure
        if not (is_weak and seconds):
            return grounding, Rewriting()
        prompt = answerer.prompts.rewrite
        rewriting = await self._rephrase(partial(rewrite, query, answerer.model, prompt, seconds))
        if rewriting.wordings:
            retrieval = await search_again(memory, retrieval, rewriting.wordings, limits)
            grounding = await judge_passages(question, query, retrieval, memory, limits.seconds)
        return grounding, rewriting

    async def _rephrase(self, ask: Callable[[], Awaitable[Rewriting]]) -> Rewriting:
        """Ask the model for other words, and say why if it gives none."""
        self.emit(Rephrasing())
        rewriting = await ask()
        if rewriting.failure:
            self.emit(Notice(rewriting.failure))
        return rewriting
