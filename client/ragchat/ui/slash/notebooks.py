"""/notebook: go to a notebook, or leave it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ragchat.notebooks.definitions import Notebook, folder_of, listed, load
from ragchat.sanitize import one_line, visible
from ragchat.turn.scope import EVERYTHING
from ragchat.ui.slash.completions import matching

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion

    from ragchat.ui.context import ChatContext

LEAVE = "-"


async def notebook(context: ChatContext, name: str) -> None:
    """Begin a conversation in a notebook, or outside of any; without a name, list them."""
    conversation, screen = context.conversation, context.screen
    folder = folder_of(conversation.settings)
    if not name:
        from rich.text import Text

        rows: list[tuple[str, Text, Text]] = []
        for one in listed(folder):
            if isinstance(one, Notebook):
                mark = "*" if one.name == conversation.notebook_name else ""
                where, what = one_line(one.scope) or "all documents", one_line(one.instructions)
                rows.append((one.name + mark, Text(where), Text(what)))
            else:
                screen.note(str(one), "warning")
        if not screen.listing(rows):
            screen.note("There are no notebooks yet. In a shell, `ragchat notebook new NAME` creates one.")
        return
    found = None if name == LEAVE else load(folder, name)
    await conversation.use_notebook(found)
    await conversation.scope.narrow(EVERYTHING)  # also if it is the same notebook, after /in
    conversation.new_session()
    context.update_session_status()
    if found is None:
        screen.note("A new conversation, in no notebook. /sessions lists the past ones.")
        return
    screen.note(
        f"A new conversation in the notebook {found.name}: {found.scope or 'all documents'}. "
        "/sessions lists its past ones, /notebook - leaves it."
    )
    for line in found.instructions.splitlines():
        screen.note(f"  {visible(line)}")


async def complete(context: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    if context is None:
        return
    folder = folder_of(context.conversation.settings)
    choices = [(one.name, one.scope) for one in listed(folder) if isinstance(one, Notebook)]
    async for choice in matching(argument, [*choices, (LEAVE, "leave the notebook")]):
        yield choice
