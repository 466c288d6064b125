"""Printing while the prompt stands there and the user may be typing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

from prompt_toolkit.application import get_app_or_none, in_terminal
from prompt_toolkit.utils import is_dumb_terminal

from ragchat.ui.prompt import prompt_mark


@asynccontextmanager
async def aside(stdout: TextIO) -> AsyncIterator[None]:
    """What is printed inside stands above the prompt; a dumb terminal gets the prompt once more, below."""
    app = get_app_or_none()
    repeats = app is not None and app.is_running and is_dumb_terminal()
    async with in_terminal():
        if repeats:
            stdout.write("\n")
        yield
        if repeats:
            stdout.write(prompt_mark(stdout))
            stdout.flush()
