"""Questions to the user while an answer is made: approvals of tools, forms of servers.

A question is sent to the page as an event of the answer that waits for it, and answered with a request.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio

from ragchat.conversation import Conversation
from ragchat.web.errors import NotFound
from ragchat.web.streaming import Tell

T = TypeVar("T")


@dataclass(frozen=True)
class RunningTurn:
    conversation: Conversation
    tell: Tell


@dataclass
class _Question:
    tell: Tell
    check: Callable[[dict[str, Any]], Any]
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Any = None


class Dialogs:
    """The open questions of all pages. `turns` are those that are running, the newest last."""

    def __init__(self) -> None:
        self.turns: list[RunningTurn] = []
        self._open: dict[str, _Question] = {}

    @contextmanager
    def during(self, turn: RunningTurn) -> Iterator[None]:
        """Servers may ask the user in the answer of this turn; with it, their questions end."""
        self.turns.append(turn)
        try:
            yield
        finally:
            self.turns.remove(turn)
            for question in self._open.values():
                if question.tell is turn.tell:
                    question.answered.set()

    async def ask(
        self, tell: Tell, kind: str, question: dict[str, Any], check: Callable[[dict[str, Any]], T]
    ) -> T | None:
        """What `check` makes of the user's answer; None if the turn ends before there is one.

        `check` raises NotAccepted for an answer that cannot be used: then the question stays open.
        """
        if all(turn.tell is not tell for turn in self.turns):
            return None
        id, asked = secrets.token_urlsafe(12), _Question(tell, check)
        self._open[id] = asked
        try:
            tell({"type": "dialog", "id": id, "kind": kind, **question})
            await asked.answered.wait()
        finally:
            self._open.pop(id, None)
            tell({"type": "dialog_closed", "id": id})
        answer: T | None = asked.answer
        return answer

    def answer(self, id: str, answer: dict[str, Any]) -> None:
        """Raises NotFound if the question is no longer open, NotAccepted."""
        if (asked := self._open.get(id)) is None:
            raise NotFound("open question of that id")
        asked.answer = asked.check(answer)
        asked.answered.set()
        del self._open[id]
