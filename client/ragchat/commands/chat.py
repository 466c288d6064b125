"""`ragchat` without a command: the interactive chat at a terminal, else one answer for each line of stdin."""

from __future__ import annotations

import sys

from ragchat.commands.invocation import Invocation


async def chat(run: Invocation) -> int:
    if sys.stdin.isatty() and sys.stdout.isatty():
        from ragchat.ui.chat import interactive

        return await interactive.run(run.home.state, run.conversation)
    from ragchat.ui.chat import piped

    return await piped.run(run.conversation)
