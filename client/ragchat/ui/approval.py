"""Asks the user whether the model may call a tool; `Permissions` remembers lasting answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from ragchat.llm.types import decode_arguments
from ragchat.sanitize import one_line, visible, visible_json
from ragchat.servers.permissions import Permissions, Rule
from ragchat.turn.approval import PermissionRequest
from ragchat.ui.dialog import Dialog, Read, choose

CHOICES = "[y]es, [s]ession, [a]lways, [e]dit, ne[v]er, [N]o"
# Longer arguments are shown above the question, on separate lines.
MAX_CALL = 200
# Lines of them that are shown until the user asks for all.
MAX_PREVIEW_LINES = 30
# A name with one of these could look like several arguments.
_AMBIGUOUS_IN_NAMES = frozenset(" =,()")
# Before each line of a value, so that a value cannot imitate other output.
_INDENT, _BAR = "  ", "  | "


@dataclass(eq=False)
class Approvals:
    """`dialog` asks the user; `show` prints text, for which `columns` returns the width.

    `stop` stops the answer that needs the tool.
    """

    _permissions: Permissions
    _dialog: Dialog
    _show: Callable[[str], None]
    _columns: Callable[[], int]
    _stop: Callable[[], None]

    async def approve(self, question: PermissionRequest) -> dict[str, Any] | None:
        """The arguments to call the tool with; None if the user does not allow it, or stops the answer."""
        async with self._dialog.exclusive() as read:
            for reason in question.reasons:
                self._show(reason)
            return await self._decide(question, read)

    async def _decide(self, question: PermissionRequest, read: Read) -> dict[str, Any] | None:
        tool, arguments = question.tool, question.arguments
        cut = self._show_arguments(arguments)
        while True:
            choices = f"[f]ull, {CHOICES}" if cut else CHOICES
            match await choose(read, self._show, f"Allow {_call(tool.name, arguments)}?", choices):
                case None:
                    self._stop()
                    return None
                case "yes":
                    return arguments
                case "session" | "always" | "never" as word:
                    self._permissions.remember(tool.identity, [tool.info], Rule(word))
                    return None if word == "never" else arguments
                case "edit":
                    arguments = await self._edited(arguments, read)
                    cut = self._show_arguments(arguments)
                case "full":
                    cut = self._show_arguments(arguments, whole=True)
                case _:
                    return None

    def _show_arguments(self, arguments: dict[str, Any], *, whole: bool = False) -> bool:
        """Show arguments that are too long for the question; returns whether lines were left out."""
        if _fits(arguments):
            return False
        lines = [*_lines(arguments, self._columns())]
        shown = lines if whole else lines[:MAX_PREVIEW_LINES]
        self._show("\n".join(shown))
        if cut := len(lines) > len(shown):
            self._show(f"These are {len(shown)} of {len(lines):,} lines: [f] shows all.")
        return cut

    async def _edited(self, arguments: dict[str, Any], read: Read) -> dict[str, Any]:
        """The arguments that the user types as JSON; unchanged if that is not valid."""
        shown = visible_json(msgspec.json.encode(arguments).decode())
        text = await read("Arguments as JSON: ", None, shown) or ""
        try:
            return decode_arguments(text)
        except ValueError as error:
            self._show(f"These are not the arguments of a tool: {error}.")
            return arguments


def _call(name: str, arguments: dict[str, Any]) -> str:
    shown = _in_line(arguments) if _fits(arguments) else "as above"
    return f"{one_line(name)}({shown})"


def _in_line(arguments: dict[str, Any]) -> str:
    # `repr` escapes what a screen does not show.
    return visible(", ".join(f"{key}={value!r}" for key, value in arguments.items()))


def _fits(arguments: dict[str, Any]) -> bool:
    """Whether the question has room for the arguments: they are short, and no text in them has lines."""
    shown = _in_line(arguments)
    is_plain = "\\n" not in shown and all(_AMBIGUOUS_IN_NAMES.isdisjoint(name) for name in arguments)
    return len(shown) <= MAX_CALL and is_plain


def _lines(arguments: dict[str, Any], columns: int) -> Iterator[str]:
    """All of the arguments, as lines of at most `columns` on the screen."""
    from rich.cells import chop_cells

    width = max(1, columns - len(_BAR))
    for name, value in arguments.items():
        text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value)).decode()
        shown_name = visible(name).replace("\n", "\\n")
        yield from (_INDENT + part for part in chop_cells(f"{shown_name}:", width))
        for line in visible(text).split("\n"):
            yield from (_BAR + part for part in chop_cells(line, width) or [""])
