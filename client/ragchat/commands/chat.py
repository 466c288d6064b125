"""`ragchat` without a command: the interactive chat at a terminal, else one answer for each line of stdin."""

from __future__ import annotations

import sys

from ragchat.commands import Run


async def chat(run: Run) -> int:
    past = {"session_id": run.arguments.session, "resume": run.arguments.resume}
    if sys.stdin.isatty() and sys.stdout.isatty():
        from ragchat.ui import chat

        return await chat.run(run.home.state, run.conversation, **past)
    from ragchat.ui import piped

    return await piped.run(run.conversation, **past)
