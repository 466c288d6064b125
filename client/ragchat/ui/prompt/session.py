"""The line editor: a configured prompt_toolkit session. Light: it is imported before the first prompt."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, get_app_or_none, in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.layout.processors import Processor, TabsProcessor, Transformation, TransformationInput
from prompt_toolkit.output import ColorDepth

from ragchat.console import is_dumb, is_styled, is_unicode
from ragchat.sanitize import one_line, sanitize
from ragchat.ui.prompt.keys import make_keys
from ragchat.ui.prompt.toolbar import Status, toolbar
from ragchat.ui.render.style import prompt_style
from ragcommon.files.writing import private_folder

HISTORY_FILE = "history"
# Rows below a line that can be completed, for the menu; at the end of the screen, the chat scrolls by them.
_MENU_ROWS = 5


class _LenientHistory(FileHistory):
    """Input lines of all runs. On a full disk a line is not stored, but the chat continues."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


class _Sanitized(Processor):
    """Draws control characters as the answers have them.

    prompt_toolkit draws `^[`, for which it counts no column, and overrides of the direction as they are.
    """

    def apply_transformation(self, line: TransformationInput) -> Transformation:
        return Transformation([(one[0], sanitize(one[1])) for one in line.fragments])


class SanitizedCompleter(Completer):
    """Shows names of files, and what servers say, without control characters; the texts stay as they are."""

    def __init__(self, completer: Completer) -> None:
        self._completer = completer

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        return map(_sanitized, self._completer.get_completions(document, event))

    async def get_completions_async(
        self, document: Document, event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        async for completion in self._completer.get_completions_async(document, event):
            yield _sanitized(completion)


def _sanitized(one: Completion) -> Completion:
    return Completion(
        one.text, one.start_position, one_line(one.display_text), one_line(one.display_meta_text)
    )


# How every prompt draws what is typed, pasted or completed.
PROCESSORS = [_Sanitized(), TabsProcessor(char1=" ", char2=" ")]


def make_prompt(
    state: Path,
    status: Status,
    completer: Completer,
    stdout: TextIO,
) -> PromptSession[str]:
    """A session whose `prompt_async` returns one message. `state` is the folder of the history file."""
    styled = is_styled(stdout)
    session: PromptSession[str] = PromptSession(
        [("class:prompt", prompt_mark(stdout))],
        multiline=True,
        prompt_continuation=_continuation,
        history=_open_history(state),
        completer=SanitizedCompleter(completer),
        complete_while_typing=Condition(_has_completions),
        reserve_space_for_menu=_MENU_ROWS,
        key_bindings=make_keys(status, partial(_repeat_prompt, stdout)),
        bottom_toolbar=lambda: toolbar(status, get_app().output.get_size().columns),
        placeholder=_placeholder,
        input_processors=PROCESSORS,
        style=prompt_style(styled),
        include_default_pygments_style=False,
        color_depth=None if styled else ColorDepth.DEPTH_1_BIT,
        enable_open_in_editor=True,
        enable_suspend=True,
    )
    session.default_buffer.on_text_changed += status.clear_hint
    return session


def _has_completions() -> bool:
    """Whether the line has a command or a mention: for others no rows are reserved."""
    text = get_app().current_buffer.document.text_before_cursor
    return text.startswith("/") or "@" in text


def prompt_mark(stdout: TextIO) -> str:
    """`❯ ` if the terminal can show it, else `> `."""
    # The font of the Linux console has 512 glyphs, without the arrow.
    return "❯ " if is_unicode(stdout) and not is_dumb() and os.environ.get("TERM") != "linux" else "> "


@asynccontextmanager
async def above_prompt(stdout: TextIO) -> AsyncIterator[None]:
    """Print above the prompt; on a dumb terminal, repeat the prompt below."""
    app = get_app_or_none()
    repeats = app is not None and app.is_running and is_dumb()
    async with in_terminal():
        if repeats:
            stdout.write("\n")
        yield
        if repeats:
            stdout.write(prompt_mark(stdout))
            stdout.flush()


def _repeat_prompt(stdout: TextIO) -> None:
    """Write the prompt on a new line of a dumb terminal."""
    if is_dumb():
        stdout.write(f"\n{prompt_mark(stdout)}")
        stdout.flush()


def _placeholder() -> StyleAndTextTuples:
    # During a search in the history, the match is shown instead.
    return [] if is_searching() else [("class:placeholder", "Ask something, or /help")]


def _continuation(width: int, _line: int, _wrapped: int) -> StyleAndTextTuples:
    return [("class:placeholder", "· ".rjust(width))]


def _open_history(state: Path) -> History:
    """Only the owner may read the history: questions are private."""
    path = state / HISTORY_FILE
    try:
        private_folder(state)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return _LenientHistory(str(path))
