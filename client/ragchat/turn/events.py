"""The events of a turn, in the order in which they are emitted; a `Notice` may come at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ragchat.answer import Answer, Candidate


class Rephrasing(Struct, frozen=True):
    """The model is about to be asked to put the question in other words."""


class Retrieving(Struct, frozen=True):
    """Memory is about to be queried."""

    query: str


class Retrieved(Struct, frozen=True):
    """Memory has answered, or failed: then there are no candidates."""

    candidates: list[Candidate]


class Delta(Struct, frozen=True):
    """The next piece of the answer."""

    text: str


class Shown(Struct, frozen=True):
    """An answer in cards."""

    answer: Answer


class Reasoning(Struct, frozen=True):
    """The next piece of the model's reasoning."""

    text: str


class ToolStarted(Struct, frozen=True):
    name: str
    arguments: dict[str, Any]


class ToolFinished(Struct, frozen=True):
    name: str
    ok: bool
    summary: str  # one line


class Notice(Struct, frozen=True):
    """A sentence that the user should see."""

    text: str


class Step(Notice, frozen=True):
    """A sentence about progress, which is no part of the result."""


Event = Rephrasing | Retrieving | Retrieved | Reasoning | Delta | Shown | ToolStarted | ToolFinished | Notice
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An `Emit` for callers that need only the finished turn."""
