"""`ragchat research QUESTION`: a cited report from memory and the connected servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragchat.commands.ask import show_turn
from ragchat.commands.invocation import Invocation
from ragchat.console import Failure, describe
from ragchat.conversation import SaveMode
from ragchat.errors import RagChatError
from ragchat.sessions.document import report_as_document
from ragchat.turn.events import Emit
from ragchat.turn.types import Turn

if TYPE_CHECKING:
    from ragchat.research.research import Report


async def research(run: Invocation) -> int:
    """The steps go to stderr. Exit code 1 if the report was to be stored in memory, and was not."""
    arguments = run.arguments
    question = "" if arguments.resume_stopped else run.words(arguments.question)
    reports: list[Report] = []
    async with run.conversation(SaveMode.ONE_SHOT) as conversation:

        async def take_turn(emit: Emit) -> Turn:
            reports.append(await conversation.research(question, emit))
            return reports[0].turn

        _, notices = await show_turn(run, take_turn)
        run.note_servers(conversation.servers)
        [report] = reports
        stored: dict[str, Any] = {}
        failure: Failure | None = None
        if arguments.inject:
            try:
                document = await conversation.memory.inject(*report_as_document(report.turn))
            except RagChatError as error:
                run.console.failure(failure := describe(error))
            else:
                stored = {"stored": document.uri}
                run.console.note(f"Stored as {document.uri}.")
    return run.console.result({**report.public(), "notices": notices, **stored}, failure=failure)
