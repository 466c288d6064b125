"""A line of the table of slash commands."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion

    from ragchat.ui.context import ChatContext

Action = Callable[["ChatContext", str], Awaitable[None]]
# Why the command cannot run now, as the end of a sentence; "" if it can.
Obstacle = Callable[["ChatContext"], str]
# The completions of an argument; the context is None while the chat is starting.
Complete = Callable[["ChatContext | None", str], AsyncIterable["Completion"]]
# A value in quotation marks between spaces: an apostrophe within a word does not start one.
QUOTED = re.compile(r"""(?:(?<=[\s=])|^)(["'])(?:(?!\1).)*\1(?!\S)""")


def unquoted(value: str) -> str:
    """A value without the quotation marks around it."""
    return value[1:-1] if QUOTED.fullmatch(value) else value


class SlashCommand(NamedTuple):
    """`run` gets the text after the name, stripped."""

    name: str
    arguments: str
    help: str
    run: Action
    obstacle: Obstacle = lambda _: ""
    complete: Complete | None = None
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)
