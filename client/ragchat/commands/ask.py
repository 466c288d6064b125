"""`ragchat ask QUESTION`: answer one question, with sources."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ragchat.commands.invocation import Invocation
from ragchat.commands.stdin import piped_text
from ragchat.conversation import Conversation, SaveMode
from ragchat.turn.events import Event, Notice

# Of a text that the user names, all passages are relevant; the budget of the prompt limits them.
ALL_PASSAGES = {"retrieval.min_score": 0.0, "retrieval.top_k": 100}
# In `while read`, the text would be the rest of the loop's lines.
STDIN_NOTICE = "Answering from the text on stdin, not from memory. In a loop, add < /dev/null to ask memory."
# Files that are named because they were skipped, or read in an unusual way.
MAX_LISTED = 10


async def ask(run: Invocation) -> int:
    """Answer from memory, or from the text on stdin and in the files of `-f`, which is not stored."""
    question = run.words(run.arguments.question)
    has_no_text = run.arguments.question == ["-"] or run.arguments.scope
    text = "" if has_no_text else piped_text()
    if text:
        run.console.note(STDIN_NOTICE)
    if not text and not run.arguments.files:
        return await _answer(run, question)
    with tempfile.TemporaryDirectory(prefix="ragchat-ask-", ignore_cleanup_errors=True) as folder:
        # A memory of its own searches the text like any other document.
        arguments = Namespace(**{**vars(run.arguments), "memory": str(Path(folder) / "memory.db")})
        return await _answer(replace(run, arguments=arguments, overrides=ALL_PASSAGES), question, text)


async def _answer(run: Invocation, question: str, text: str = "") -> int:
    save_mode = SaveMode.NOTHING if run.arguments.no_session else SaveMode.ONE_SHOT
    async with run.conversation(save_mode) as conversation:
        if text or run.arguments.files:
            from ragchat.ingest.question_files import load_question_files

            report = await load_question_files(conversation.memory, run.arguments.files, text)
            for line in report.remarks(MAX_LISTED, ""):
                run.console.note(line)
        if run.console.json:
            run.console.document(await _as_json(run, conversation, question))
        else:
            from ragchat.ui.render.answer import AnswerView
            from ragchat.ui.render.screen import Screen

            await AnswerView(Screen.open()).show(partial(conversation.ask, question))
        run.note_servers(conversation.servers)
    return 0


async def _as_json(run: Invocation, conversation: Conversation, question: str) -> dict[str, Any]:
    """The turn as JSON. Notices are part of it, and go to stderr."""
    notices = []

    def note(event: Event) -> None:
        if isinstance(event, Notice):
            run.console.note(event.text)
            notices.append(event.text)

    turn = await conversation.ask(question, note)
    # Not only the turn's own notices: that it could not be saved is not among them.
    return {**turn.public(), "notices": notices}
