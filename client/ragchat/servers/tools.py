"""The tools of all servers, named `server__tool` for models."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ragchat.errors import RagChatError
from ragchat.memory.types import ToolResult
from ragchat.servers.connection import Connection
from ragchat.servers.results import readable
from ragmcp.errors import RagMcpError
from ragmcp.protocol.schema.tools import ToolInfo

# The limits of the chat-completions API for names of tools.
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64
SEPARATOR = "__"
_DIGEST_CHARACTERS = 6


@dataclass(frozen=True)
class ServerTool:
    """A tool and its server; `name` is unique among all tools."""

    name: str
    info: ToolInfo
    connection: Connection

    async def call(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the tool. Raises nothing: a failure is a result that the model can act on."""
        try:
            result = await self.connection.call(self.info, arguments)
            return readable(result, self.connection.config.name, self.connection.media.keep)
        except (RagChatError, RagMcpError) as error:
            return ToolResult(False, f"{error} {error.hint}".rstrip())


def offered_tools(connections: Iterable[Connection]) -> list[ServerTool]:
    """The tools of these servers. Their names are deterministic."""
    named: dict[str, ServerTool] = {}
    for connection in connections:
        for tool in connection.tools:
            name = _legal(connection.config.name, tool.name)
            if name in named:
                name = _with_digest(name, connection.config.name, tool.name)
            named[name] = ServerTool(name, tool, connection)
    return [*named.values()]


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
