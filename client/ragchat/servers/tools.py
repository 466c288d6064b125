"""The tools of all servers, named `server__tool` for models."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import UnsetType

from ragchat.errors import RagChatError
from ragchat.memory.types import ToolResult
from ragchat.servers.connection import Connection
from ragchat.servers.results import as_tool_result
from ragmcp.errors import RagMcpError
from ragmcp.protocol.schema.tools import ToolInfo

# The limits of the chat-completions API for names of tools.
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64
SEPARATOR = "__"
_DIGEST_CHARACTERS = 6


@dataclass(frozen=True)
class OfferedTool:
    """A tool and its server. `trusted`: the server's annotations are trusted.

    `name`, by which a model calls it, is unique among all tools. `call` raises nothing.
    """

    name: str
    server: str
    info: ToolInfo
    trusted: bool
    call: Callable[[dict[str, Any]], Awaitable[ToolResult]]

    @property
    def only_reads(self) -> bool:
        """Whether its server declares it read-only, which may be false."""
        hints = self.info.annotations
        return not isinstance(hints, UnsetType) and hints.read_only_hint is True


def offered_tools(connections: Iterable[Connection]) -> list[OfferedTool]:
    """The tools of these servers. Their names are deterministic."""
    named: dict[str, OfferedTool] = {}
    for connection in connections:
        config = connection.config
        for tool in connection.tools:
            name = _legal(config.name, tool.name)
            if name in named:
                name = _with_digest(name, config.name, tool.name)
            call = partial(_call, connection, tool)
            named[name] = OfferedTool(name, config.name, tool, config.trusted, call)
    return [*named.values()]


async def _call(connection: Connection, tool: ToolInfo, arguments: dict[str, Any]) -> ToolResult:
    """Call a tool. A failure is a result that the model can act on."""
    try:
        result = await connection.call(tool, arguments)
        return as_tool_result(result, connection.name, connection.media.keep)
    except (RagChatError, RagMcpError) as error:
        return ToolResult(False, f"{error} {error.hint}".rstrip())


def may_be_of(server: str, name: str) -> bool:
    """Whether `name` may be a tool of this server."""
    prefix = _legal(server, "")[: MAX_NAME - _DIGEST_CHARACTERS - 1]
    return name.startswith(prefix)


def _legal(server: str, tool: str) -> str:
    name = _ILLEGAL.sub("_", f"{server}{SEPARATOR}{tool}")
    return name if len(name) <= MAX_NAME else _with_digest(name, server, tool)


def _with_digest(name: str, server: str, tool: str) -> str:
    """Add a digest to a name that is too long or not unique."""
    digest = hashlib.sha256(f"{server}\n{tool}".encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{name[: MAX_NAME - len(digest) - 1]}_{digest}"
