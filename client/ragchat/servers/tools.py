"""The tools of all servers under the names by which a model calls them: `server__tool`."""

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

# The chat-completions API allows these characters, and names of this length.
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64
SEPARATOR = "__"
_DIGEST_CHARACTERS = 6


@dataclass(frozen=True)
class ServerTool:
    """A tool, and the server that has it; `name` is unique among all tools."""

    name: str
    info: ToolInfo
    connection: Connection

    async def call(self, arguments: dict[str, Any]) -> ToolResult:
        """Call it. Raises nothing: a failure is a result that a model can act on."""
        try:
            result = await self.connection.call(self.info, arguments)
            return readable(result, self.connection.config.name, self.connection.media.keep)
        except (RagChatError, RagMcpError) as error:
            return ToolResult(False, f"{error} {error.hint}".rstrip())


def offered_tools(connections: Iterable[Connection]) -> list[ServerTool]:
    """The tools of these servers. The same servers with the same tools always get the same names."""
    named: dict[str, ServerTool] = {}
    for connection in connections:
        for tool in connection.tools:
            name = _legal(connection.config.name, tool.name)
            if name in named:
                name = _with_digest(name, connection.config.name, tool.name)
            named[name] = ServerTool(name, tool, connection)
    return [*named.values()]


def may_be_of(server: str, name: str) -> bool:
    """Whether a tool of this server may have the name."""
    prefix = _legal(server, "")[: MAX_NAME - _DIGEST_CHARACTERS - 1]
    return name.startswith(prefix)


def _legal(server: str, tool: str) -> str:
    name = _ILLEGAL.sub("_", f"{server}{SEPARATOR}{tool}")
    return name if len(name) <= MAX_NAME else _with_digest(name, server, tool)


def _with_digest(name: str, server: str, tool: str) -> str:
    """The name with a digest of what it stands for, for names that are too long or equal."""
    digest = hashlib.sha256(f"{server}\n{tool}".encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{name[: MAX_NAME - len(digest) - 1]}_{digest}"
