"""/help, /clear, /quit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragchat.errors import UnknownCommand
from ragchat.ui.prompt.keys import KEY_HELP

if TYPE_CHECKING:
    from ragchat.ui.context import ChatContext
    from ragchat.ui.slash.command import SlashCommand


async def show_help(context: ChatContext, argument: str, table: Sequence[SlashCommand]) -> None:
    name = argument.removeprefix("/").lower()
    commands = [command for command in table if not name or name in command.names]
    if not commands:
        raise UnknownCommand(name)
    context.screen.listing((_usage(command), command.help) for command in commands)
    if not name:
        context.screen.show("", "Anything else is a question; //text sends text that begins with a slash.")
    if not name and context.interactive:
        context.screen.show("")
        context.screen.listing(KEY_HELP)


async def clear(context: ChatContext, _: str) -> None:
    context.screen.out.clear()


async def leave(context: ChatContext, _: str) -> None:
    context.leaving = True


def _usage(command: SlashCommand) -> str:
    names = "".join(f", /{alias}" for alias in command.aliases)
    return f"/{command.name}{names} {command.arguments}".strip()
