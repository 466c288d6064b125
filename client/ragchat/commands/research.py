"""`ragchat research QUESTION`: a cited report from memory and the connected servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragchat.commands.invocation import Invocation
from ragchat.conversation import SaveMode
from ragchat.ingest.loading import load_text
from ragchat.sessions.document import report_as_document
from ragchat.turn.events import Emit, Event, Notice
from ragchat.turn.types import Turn

if TYPE_CHECKING:
    from ragchat.research.research import Report


async def research(run: Invocation) -> int:
    """The steps go to stderr. Exit code 1 if the report was to be stored in memory, and was not."""
    arguments = run.arguments
    question = "" if arguments.resume_stopped else run.words(arguments.question)
    notices: list[str] = []
    report: Report | None = None

    def note(event: Event) -> None:
        if isinstance(event, Notice):
            run.console.note(event.text)
            notices.append(event.text)

    async with run.conversation(SaveMode.ONE_SHOT) as conversation:
        if run.console.json:
            report = await conversation.research(question, note)
        else:
            from ragchat.ui.render.answer import AnswerView
            from ragchat.ui.render.screen import Screen

            async def take_turn(emit: Emit) -> Turn:
                nonlocal report
                report = await conversation.research(question, emit)
                return report.turn

            await AnswerView(Screen.open()).show(take_turn)
        run.note_servers(conversation.servers)
        assert report is not None
        stored: dict[str, Any] = {}
        error = ""
        if arguments.inject:
            text, metadata = report_as_document(report.turn)
            document = await load_text(conversation.memory, text, metadata)
            stored, error = {"stored": document.uri}, document.error or ""
            run.console.note(error or f"Stored as {document.uri}.")
    if run.console.json:
        run.console.document({**report.public(), "notices": notices, **stored})
    return 1 if error else 0
