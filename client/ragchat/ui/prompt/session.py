"""The line editor: one prompt_toolkit session, put together. It lies on the way to the first prompt."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, get_app_or_none, in_terminal
from prompt_toolkit.filters import is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.utils import is_dumb_terminal

from ragchat.console import is_styled, is_unicode
from ragchat.ui.prompt.keys import make_keys
from ragchat.ui.prompt.toolbar import Status, toolbar
from ragchat.ui.style import prompt_style
from ragconfig.home import private_folder

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.formatted_text import StyleAndTextTuples

HISTORY_FILE = "history"
# Rows kept free below the line for the completion menu; the chat jumps up by as many at the screen's end.
_MENU_ROWS = 5
# The font of the Linux console has 512 glyphs, and the arrow is none of them.
_PLAIN_TERMINALS = frozenset({"dumb", "linux"})


class _LenientHistory(FileHistory):
    """Input lines across runs. A full disk costs a line of history, not the chat."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def make_prompt(
    state: Path,
    status: Status,
    completer: Completer,
    stdout: TextIO,
) -> PromptSession[str]:
    """The session whose `prompt_async` returns one message. `state` is the folder of the history."""
    styled = is_styled(stdout)
    session: PromptSession[str] = PromptSession(
        [("class:prompt", prompt_mark(stdout))],
        multiline=True,
        prompt_continuation=_continuation,
        history=_open_history(state),
        completer=completer,
        complete_while_typing=True,
        reserve_space_for_menu=_MENU_ROWS,
        key_bindings=make_keys(status),
        bottom_toolbar=lambda: toolbar(status, get_app().output.get_size().columns),
        placeholder=_placeholder,
        style=prompt_style(styled),
        include_default_pygments_style=False,
        color_depth=None if styled else ColorDepth.DEPTH_1_BIT,
        enable_open_in_editor=True,
        enable_suspend=True,
    )
    session.default_buffer.on_text_changed += status.clear_hint
    return session


def prompt_mark(stdout: TextIO) -> str:
    """`❯ ` where the terminal can show it."""
    return "❯ " if is_unicode(stdout) and os.environ.get("TERM") not in _PLAIN_TERMINALS else "> "


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


def _placeholder() -> StyleAndTextTuples:
    # While the history is searched, what was found stands there.
    return [] if is_searching() else [("class:placeholder", "Ask something, or /help")]


def _continuation(width: int, _line: int, _wrapped: int) -> StyleAndTextTuples:
    return [("class:placeholder", "· ".rjust(width))]


def _open_history(state: Path) -> History:
    """Readable by its owner only: what one asks is private."""
    path = state / HISTORY_FILE
    try:
        private_folder(state)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return _LenientHistory(str(path))
