"""`ragchat ask QUESTION`: answer one question, with sources."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ragchat.commands.invocation import Invocation
from ragchat.commands.prompt import filled_in, names_documents
from ragchat.commands.stdin import piped_text, read_stdin
from ragchat.console import describe
from ragchat.conversation import SaveMode
from ragchat.llm.errors import ModelError
from ragchat.settings import temporary_memory
from ragchat.turn.events import Delta, Emit, Event, Notice, Step
from ragchat.turn.types import Turn

# All passages of a text that the user names are relevant; the budget of the prompt limits them.
ALL_PASSAGES = {"retrieval.min_score": 0.0, "retrieval.top_k": 100}
STDIN = "-"
# In `while read`, the text would be the rest of the loop's lines.
STDIN_NOTICE = "Answering from the text on stdin, not from memory. In a loop, add < /dev/null to ask memory."
# At most this many skipped files, and remarks on files, are listed.
MAX_LISTED = 10


async def ask(run: Invocation) -> None:
    """Answer from memory, or from the text on stdin and in the files of `-f`, which is not stored."""
    words, prompt = run.arguments.question, run.arguments.prompt
    question = "" if prompt else run.words(words)
    names_stdin = STDIN in run.arguments.files
    if names_stdin or (prompt and STDIN in words):
        text = read_stdin(run.console.note)
        run.arguments.files = [file for file in run.arguments.files if file != STDIN]
    else:
        ignores_stdin = names_documents(run) if prompt else words == [STDIN]
        ignores_stdin = ignores_stdin or run.arguments.scope or run.arguments.notebook
        text = "" if ignores_stdin else piped_text(run.console.note)
    if text and not prompt and not names_stdin:
        run.console.note(STDIN_NOTICE)
    if not text and not run.arguments.files:
        await _answer(run, question)
        return
    with tempfile.TemporaryDirectory(prefix="ragchat-ask-", ignore_cleanup_errors=True) as folder:
        # A memory of its own searches the text like any other document.
        arguments = Namespace(**{**vars(run.arguments), "memory": None, "server": None})
        overrides = {**ALL_PASSAGES, **temporary_memory(Path(folder) / "memory.db")}
        await _answer(replace(run, arguments=arguments, overrides=overrides), question, text)


async def _answer(run: Invocation, question: str, text: str = "") -> None:
    """Answer a question; "": the prompt that is named."""
    save_mode = SaveMode.NOTHING if run.arguments.no_session else SaveMode.ONE_SHOT
    async with run.conversation(save_mode) as conversation:
        given: list[str] = []
        if text or run.arguments.files:
            from ragchat.ingest.question_files import load_question_files

            report = await load_question_files(conversation.memory, run.arguments.files, text)
            for line in report.remarks(MAX_LISTED, ""):
                run.console.note(line)
            # Not the documents of a continued session's notebook.
            conversation.scope.use(conversation.memory)
            given = [one.document_id for one in report.documents if one.document_id]
        asked = partial(conversation.ask, question) if question else await filled_in(run, conversation, given)
        turn, notices = await show_turn(run, asked)
        if run.console.json:
            # Not only the turn's own notices: that it could not be saved is not among them.
            run.console.document({**turn.public(), "notices": notices})
        run.note_servers(conversation.servers)


async def show_turn(
    run: Invocation, take_turn: Callable[[Emit], Awaitable[Turn]]
) -> tuple[Turn, Sequence[str]]:
    """Take a turn and show it. With --json only its notices are shown, on stderr, and also returned.

    The part of an answer that broke off is the result of a command that fails.
    """
    notices: list[str] = []
    parts: list[str] = []

    def note(event: Event) -> None:
        run.note_event(event)
        if isinstance(event, Notice) and not isinstance(event, Step):
            notices.append(event.text)
        elif isinstance(event, Delta):
            parts.append(event.text)

    if run.console.json:
        try:
            return await take_turn(note), notices
        except ModelError as error:
            if parts:
                run.console.document({"answer": "".join(parts), "notices": notices}, describe(error))
            raise
    from ragchat.ui.render.answer import AnswerView
    from ragchat.ui.render.screen import Screen

    return await AnswerView(Screen.open()).show(take_turn), notices
