"""The chat without a terminal: one question a line, one answer each. No prompt, no colours.

Slash commands work, where they need no terminal. A question that fails does not end the rest.
"""

from __future__ import annotations

import sys
from contextlib import aclosing

from ragchat.ui.background import OpenApp
from ragchat.ui.context import ChatContext
from ragchat.ui.lines import read_lines
from ragchat.ui.messages import handle
from ragchat.ui.prompt.toolbar import Status
from ragchat.ui.render.screen import Screen


async def run(open_app: OpenApp, *, session_id: str | None = None, resume: bool = False) -> int:
    """Answer until stdin ends. Returns 1 if a line failed, else 0.

    `session_id`: the past session to go on with; `resume`: the last one. Raises what entering `open_app`
    raises, and SessionError.
    """
    async with open_app() as app:
        if session_id or resume:
            await app.resume(session_id)
        context = ChatContext(app, Screen.open(), Status())
        async with aclosing(read_lines(sys.stdin.fileno())) as lines:
            async for line in lines:
                if line.strip():
                    await _answer(context, line)
                if context.leaving:
                    break
    return 1 if context.failures else 0


async def _answer(context: ChatContext, line: str) -> None:
    """A blank line ends each answer, so that a reader can tell them apart."""
    await handle(context, line)
    context.screen.show("")
