"""`ragchat ask QUESTION`: answer one question, with sources."""

from __future__ import annotations

from functools import partial
from typing import Any

from ragchat.app import App
from ragchat.commands import Run
from ragchat.types import Event, Notice


async def ask(run: Run) -> int:
    question = run.words(run.arguments.question)
    async with run.app() as app:
        if run.arguments.session or run.arguments.resume:
            await app.resume(run.arguments.session)
        if run.console.json:
            run.console.document(await _as_json(run, app, question))
        else:
            from ragchat.ui.render.answer import AnswerView
            from ragchat.ui.render.screen import Screen

            await AnswerView(Screen.open()).show(partial(app.ask, question))
    return 0


async def _as_json(run: Run, app: App, question: str) -> dict[str, Any]:
    """The turn as JSON. Notices are part of it, and go to stderr."""
    notices = []

    def note(event: Event) -> None:
        if isinstance(event, Notice):
            run.console.note(event.text)
            notices.append(event.text)

    turn = await app.ask(question, note)
    # Not only the turn's own notices: that it could not be saved is not among them.
    return {**turn.public(), "notices": notices}
