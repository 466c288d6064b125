"""Questions to the user while an answer is made: approvals of tools, forms of servers.

A question is sent to the page as an event of the answer that waits for it, and answered with a request.
"""

from __future__ import annotations

import secrets
from typing import Any

import anyio

from ragchat.web.errors import NotFound
from ragchat.web.streaming import Tell


class Dialogs:
    """The open questions of all pages."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[anyio.Event, list[dict[str, Any]]]] = {}

    async def ask(self, tell: Tell, kind: str, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question, when the user gives one; cancelled with the answer that waits for it."""
        id, answered = secrets.token_urlsafe(12), anyio.Event()
        answers: list[dict[str, Any]] = []
        self._open[id] = answered, answers
        try:
            tell({"type": "dialog", "id": id, "kind": kind, **question})
            await answered.wait()
            return answers[0]
        finally:
            self._open.pop(id, None)
            tell({"type": "dialog_closed", "id": id})

    def answer(self, id: str, answer: dict[str, Any]) -> None:
        """Raises NotFound if the question is no longer open."""
        if (found := self._open.pop(id, None)) is None:
            raise NotFound("open question of that id")
        answered, answers = found
        answers.append(answer)
        answered.set()
