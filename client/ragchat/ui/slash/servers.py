"""/mcp, /tools: the servers, their state, tools and logs."""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ragchat.console import describe
from ragchat.errors import ArgumentMissing, RagChatError, UnknownServer
from ragchat.servers.managed import ManagedServer, ServerState
from ragchat.ui.slash.completions import matching
from ragcommon.text.rules import counted

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion

    from ragchat.servers.connection import Connection
    from ragchat.servers.login import Read
    from ragchat.servers.manager import ServerManager
    from ragchat.ui.context import ChatContext

# How much of a server's log is shown, in lines.
LOG_LINES = 30
ACTIONS = {
    "reload": "read the files of servers again, and start what is new",
    "start": "start a server that waits for your consent, or start it again",
    "login": "log in at a remote server",
    "disable": "do not start a server any more",
    "enable": "start a server again that you disabled",
    "forget": "forget what you allowed or forbade a server",
    "log": "show the last lines of a server's log",
    "tools": "show the tools of a server",
}
# What `ragchat mcp` can do, and the chat cannot.
SHELL_ACTIONS = {
    "add": "`ragchat mcp add NAME -- COMMAND` adds a server; then /mcp reload starts it",
    "import": "`ragchat mcp import` copies the servers of other programs; then /mcp reload starts them",
    "rm": "`ragchat mcp rm NAME` removes a server; /mcp disable NAME stops it",
}


async def mcp(context: ChatContext, argument: str) -> None:
    """Show the servers, or do one of `ACTIONS`. A file that cannot be used does not hide memory."""
    manager = context.conversation.servers
    action, _, name = argument.partition(" ")
    unusable: RagChatError | None = None
    if action == "reload" or not manager.connections:  # Without a model no turn has started them.
        try:
            manager.start()
        except RagChatError as error:
            unusable = error
    try:
        if action in ("", "reload"):
            await _show(context, manager, are_known=unusable is None)
        elif action in ACTIONS:
            await _act(context, manager, action, name.strip())
        else:
            server = manager.server(argument)
            await manager.ready()
            await _show_one(context, server)
    except UnknownServer as error:
        if unusable is not None:  # The file may name the server.
            raise unusable from None
        if action not in ACTIONS:  # It may be a mistyped one of them.
            error.near = error.near or difflib.get_close_matches(action, ACTIONS, n=1)
        error.hint = f"{error.guess}/mcp shows the servers."
        if action in SHELL_ACTIONS:
            error.hint = f"In a shell, {SHELL_ACTIONS[action]}."
        raise
    if unusable is not None:
        raise unusable


async def _act(context: ChatContext, manager: ServerManager, action: str, name: str) -> None:
    if not name:
        raise ArgumentMissing(f"mcp {action}", "the name of a server")
    server = manager.server(name)
    if action == "log":
        context.screen.show(server.last_log_lines(LOG_LINES) or "The log is empty.")
    elif action == "tools":
        tools = await server.known_tools()
        if not tools:
            context.screen.show(f"There are none; {name}: {server.state}.")
        for tool in tools:
            first = (tool.description or "").strip().partition("\n")[0]
            context.screen.show(f"{tool.name}  {first}".rstrip())
    else:
        if action in ("disable", "enable"):
            manager.disable(name, disabled=action == "disable")
        elif action == "forget":
            forgotten = "; ".join(manager.forget(name))
            context.screen.show(f"Forgotten: {forgotten}." if forgotten else "There was nothing to forget.")
        else:
            if action == "login":
                await manager.log_in(name, context.screen.note, _reader(context))
            await manager.restart(name)
        server = manager.server(name)
        await server.wait_started()
        await _show_one(context, server)


def _reader(context: ChatContext) -> Read | None:
    """How the user can paste an address; None without a terminal."""
    from prompt_toolkit.completion import DummyCompleter

    read = context.read
    return None if read is None else lambda question: read(question, DummyCompleter())


async def _show(context: ChatContext, manager: ServerManager, *, are_known: bool) -> None:
    await manager.ready()
    for server in manager.servers.values():
        await _show_one(context, server)
    if manager.only_memory:
        context.screen.note("This chat uses no other servers.")
    elif are_known and not manager.connections:
        context.screen.note("There are no other servers. `ragchat mcp add NAME -- COMMAND` adds one.")


async def _show_one(context: ChatContext, server: ManagedServer) -> None:
    from ragchat.servers.connection import Connection

    screen = context.screen
    known = len(await server.known_tools()) if server.state is ServerState.READY else None
    tools = "" if known is None else f", {counted(known, 'tool')}"
    screen.show(f"{server.name}: {server.state}{tools}  {server.shown}")
    if isinstance(server, Connection) and server.state in (ServerState.UNASKED, ServerState.DISABLED):
        for line in _how_to_start(server):
            screen.show(f"  {line}")
    elif server.failure is not None:
        failure = describe(server.failure)
        screen.show(f"  {failure.message}")
        if failure.hint:
            screen.show(f"  {failure.hint}")
    elif isinstance(server, Connection):
        for line in server.left_out:
            screen.show(f"  {line}")


def _how_to_start(connection: Connection) -> list[str]:
    """How a server that was not started can be started."""
    from ragchat.servers.configs import ConfigScope

    config = connection.config
    if connection.state is ServerState.UNASKED:
        return [
            f"{config.file} would start: {config.whole}",
            f"/mcp start {config.name} starts it, now and from now on.",
        ]
    if config.disabled and config.scope is ConfigScope.PROJECT:
        return [f"{config.file} says so."]
    return [f"/mcp enable {config.name} starts it."]


async def tools(context: ChatContext, _: str) -> None:
    """How many tools each server has, and what their descriptions cost in every prompt."""
    costs = await context.conversation.toolbox.costs()
    for server, (count, tokens) in costs.items():
        context.screen.show(f"{server}: {counted(count, 'tool')}, about {tokens:,} tokens")
    total = sum(tokens for _, tokens in costs.values())
    budget = context.conversation.toolbox.budget
    if total > budget:
        context.screen.note(
            f"Together they take about {total:,} tokens, more than tools.description_tokens ({budget:,}): "
            "the model searches for the tools that it needs."
        )


def complete(context: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    """The actions, then the names of the servers."""
    manager = context.conversation.servers if context else None
    names = {name: str(one.state) for name, one in manager.servers.items()} if manager else {}
    action, space, typed = argument.partition(" ")
    choices = names if space and action in ACTIONS else {**ACTIONS, **names}
    return matching(typed if space else argument, choices.items())
