"""`ragchat` alone: the interactive chat on a terminal; else one question a line, one answer each."""

from __future__ import annotations

import sys

from ragchat.commands import Run


async def chat(run: Run) -> int:
    raise NotImplementedError(sys.stdin.isatty(), run)
