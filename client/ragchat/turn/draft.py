"""A turn in the making: what is known of it so far, and the finished turn that comes of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ragchat.turn.prompt import Budget
from ragchat.turn.retrieval import RetrievalLimits
from ragchat.types import OFFLINE, Candidate, Citation, Delta, Hit, Message, Notice, Trace, Turn, Usage


@dataclass(frozen=True)
class TurnLimits:
    """What one turn may take."""

    retrieval: RetrievalLimits
    budget: Budget
    rounds: int  # of tool calls


@dataclass
class Draft:
    """The turn in the making."""

    question: str
    session_id: str
    history: Sequence[Turn]
    limits: TurnLimits
    query: str = ""
    model: str = OFFLINE
    answer: str = ""
    citations: list[Citation] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    passages_tokens: int = 0
    prompt_tokens: int = 0
    kept_turns: int = 0
    usage: Usage = field(default_factory=Usage)
    notices: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.perf_counter)

    def seconds(self) -> float:
        return round(time.perf_counter() - self.started, 6)

    def note(self, text: str) -> Notice:
        self.notices.append(text)
        return Notice(text)

    def say(self, text: str) -> Delta:
        self.timings.setdefault("first_token", self.seconds())
        self.answer += text
        return Delta(text)

    def passages(self) -> dict[int, Hit]:
        return {candidate.n: candidate.hit for candidate in self.candidates if candidate.n}

    def turn(self) -> Turn:
        self.timings["total"] = self.seconds()
        return Turn(
            turn_id=secrets.token_hex(6),
            session_id=self.session_id,
            question=self.question,
            answer=self.answer,
            grounded=bool(self.passages()),
            citations=self.citations,
            model=self.model,
            usage=self.usage,
            timings=self.timings,
            created_at=iso(self.created_at),
            trace=self._trace(),
        )

    def _trace(self) -> Trace:
        return Trace(
            query=self.query,
            candidates=self.candidates,
            passages_tokens=self.passages_tokens,
            history_turns=self.kept_turns,
            dropped_turns=len(self.history) - self.kept_turns,
            prompt_tokens=self.prompt_tokens,
            unknown_citations=self.unknown,
            notices=self.notices,
            messages=self.messages,
        )


def iso(moment: datetime) -> str:
    """ISO 8601, UTC, to the millisecond: it sorts as text."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
