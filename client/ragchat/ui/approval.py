"""Ask the user whether the model may call a tool, and remember what they say for longer than once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ragchat.sanitize import one_line
from ragchat.servers.permissions import Permissions, Rule
from ragchat.turn.permission import Question
from ragchat.ui.dialog import Dialog, Read

_SHOWN = 200
CHOICES = "[y]es, [s]ession, [a]lways, [e]dit, ne[v]er, [N]o"


class Approvals:
    """`dialog` asks the user, `show` shows text."""

    def __init__(
        self,
        permissions: Permissions,
        dialog: Dialog,
        show: Callable[[str], None],
    ) -> None:
        self._permissions = permissions
        self._dialog = dialog
        self._show = show

    async def approve(self, question: Question) -> dict[str, Any] | None:
        """The arguments to call the tool with; None if the user does not allow it."""
        tool, arguments = question.tool, question.arguments
        key = (tool.server, tool.info.name)
        is_gated = question.foreign and not tool.only_reads
        if key in self._permissions.session and not is_gated and not question.changes:
            return arguments
        async with self._dialog.turn() as read:
            self._explain(question)
            return await self._decide(question, read)

    async def _decide(self, question: Question, read: Read) -> dict[str, Any] | None:
        tool, arguments = question.tool, question.arguments
        while True:
            reply = await read(f"Allow {_call(tool.name, arguments)}? {CHOICES} ") or ""
            match (reply := reply.strip().lower())[:1]:
                case "y":
                    return arguments
                case "s":
                    self._permissions.session.add((tool.server, tool.info.name))
                    return arguments
                case "a":
                    self._permissions.remember(tool.server, [tool.info], Rule.ALWAYS)
                    return arguments
                case "v" | "n" if reply.startswith(("v", "nev")):
                    self._permissions.remember(tool.server, [tool.info], Rule.NEVER)
                    return None
                case "e":
                    arguments = await self._edited(arguments, read)
                case _:
                    return None

    def _explain(self, question: Question) -> None:
        if question.changes:
            self._show(f"{question.tool.name} has changed since you allowed it:\n{question.changes}")
        if question.foreign:
            self._show(f"The model has read text that is not yours: {one_line(', '.join(question.foreign))}.")

    async def _edited(self, arguments: dict[str, Any], read: Read) -> dict[str, Any]:
        """The arguments that the user types as JSON; the same ones for anything else."""
        text = await read("Arguments as JSON: ", None, msgspec.json.encode(arguments).decode()) or ""
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            self._show(f"These are not the arguments of a tool: {error}.")
            return arguments


def _call(name: str, arguments: dict[str, Any]) -> str:
    shown = one_line(", ".join(f"{key}={value!r}" for key, value in arguments.items()), _SHOWN)
    return f"{one_line(name)}({shown})"
