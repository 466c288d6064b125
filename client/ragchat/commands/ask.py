"""`ragchat ask QUESTION`: one answer, with its sources."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ragchat.commands import Run
from ragchat.types import Event, Finished, Notice


async def ask(run: Run) -> int:
    question = run.words(run.arguments.question)
    async with run.app() as app:
        if run.arguments.session or run.arguments.resume:
            await app.resume(run.arguments.session)
        if run.console.json:
            run.console.document(await _collect(run, app.ask(question)))
        else:
            from ragchat.ui.render.answer import AnswerView
            from ragchat.ui.render.screen import Screen

            await AnswerView(Screen.open()).show(app.ask(question))
    return 0


async def _collect(run: Run, events: AsyncIterator[Event]) -> dict[str, Any]:
    """The finished turn as JSON; what the user should know beside it stands in it, and goes to stderr."""
    notices = []
    async for event in events:
        if isinstance(event, Notice):
            run.console.note(event.text)
            notices.append(event.text)
        elif isinstance(event, Finished):
            # Not only the turn's own: that it could not be saved is no part of it.
            return {**event.turn.public(), "notices": notices}
    raise RuntimeError("a turn ended without its Finished event")
