"""The first start: memory is empty, and the chat offers to load its own README."""

from __future__ import annotations

from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING

from ragchat.errors import RagChatError
from ragchat.llm.discovery import AUTO
from ragchat.sanitize import one_line
from ragchat.servers.managed import ServerState
from ragcommon.text.rules import counted

if TYPE_CHECKING:
    from ragchat.ui.context import ChatContext

README_URI = "ragchat:README.md"

README_OFFER = (
    "Your memory is empty. Load files or folders with /inject PATH. "
    "To try it on ragchat's own README first, type y and press Enter."
)


FIND_A_MODEL = "No language model is in use: answers are quotations. `ragchat model setup` finds one."


async def has_no_model(context: ChatContext) -> bool:
    """Whether a model was looked for, and none was found."""
    model = context.conversation.model
    with suppress(RagChatError):
        return model.selected == AUTO and await model.find() is None
    return False


def memory_line(context: ChatContext) -> str:
    """Which memory is used, if it is not the user's usual one."""
    from ragchat.servers.memory.repository import own_memory

    settings = context.conversation.settings
    if settings.tables["memory_server"]["url"]:
        return f"Memory of the server at {context.memory.url}."
    return f"Memory of this repository: {own}" if (own := own_memory(settings)) else ""


def servers_line(context: ChatContext) -> str:
    """Which servers of the project wait for the user's consent; "" if none does."""
    names = [config.name for config in context.conversation.servers.unasked()]
    if not names:
        return ""
    return (
        f"This project names {counted(len(names), 'MCP server')} that you have not agreed to: "
        f"{', '.join(names)}. /mcp shows what would be started, /mcp start NAME starts one."
    )


def failed_line(context: ChatContext) -> str:
    """Which other servers did not start, or want a login; "" if none."""

    bad = (ServerState.FAILED, ServerState.LOGIN)
    found = [one for one in context.conversation.servers.connections.values() if one.state in bad]
    if not found:
        return ""
    names = ", ".join(f"{one_line(one.name)} ({one.state})" for one in found)
    return f"{counted(len(found), 'server')} cannot be used: {names}. /mcp shows why."


def readme() -> str:
    """The README in the distribution's metadata; "" if there is none."""
    try:
        described = metadata.metadata("ragchat").json
    except metadata.PackageNotFoundError:
        return ""
    return str(described.get("description", ""))


async def load_readme(context: ChatContext) -> None:
    """Load the README into memory. Raises RagChatError."""
    found = await context.memory.inject(readme(), {"uri": README_URI, "title": "ragchat's README"})
    context.screen.note(
        f"The README is in memory ({counted(found.chunks, 'chunk')}). Ask: what is ragchat?", "done"
    )
    await context.update_memory_status()
