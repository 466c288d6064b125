"""The memory's tools, in toolsets that the settings choose. Each tool calls one part of the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import UNSET, structs

from ragconfig.errors import SettingsError
from ragmcp.server.tools import Function, Tool
from ragmemory.mcp.errors import Memory, wire_errors
from ragmemory.mcp.toolsets.blocks import block_tools
from ragmemory.mcp.toolsets.code import code_tools
from ragmemory.mcp.toolsets.documents import document_tools
from ragmemory.mcp.toolsets.history import history_tools
from ragmemory.mcp.toolsets.ingestion import ingestion_tools
from ragmemory.mcp.toolsets.maintenance import maintenance_tools
from ragmemory.mcp.toolsets.memory import document_name, memory_tools
from ragmemory.mcp.toolsets.search import search_tools
from ragmemory.types.rights import Right

_TOOLSETS: dict[str, Callable[[Memory], list[Tool]]] = {
    "memory": memory_tools,
    "search": search_tools,
    "documents": document_tools,
    "blocks": block_tools,
    "history": history_tools,
    "ingestion": ingestion_tools,
    "code": code_tools,
    "maintenance": maintenance_tools,
}

ALL: Sequence[str] = tuple(_TOOLSETS)

# Toolsets whose changes concern files of the server's machine, or the memory as a whole.
_ADMINISTRATIVE = frozenset({"ingestion", "code", "maintenance"})
# The exception: it writes documents that the caller sends.
_IMPORT = "import_documents"


class UnknownToolset(SettingsError):
    name: str
    known: Sequence[str]
    code = "SETTINGS_INVALID"
    sentence = "There is no toolset {name!r}."
    hint = "memory.toolsets may name: {known}."


def make_tools(memory: Memory, toolsets: Iterable[str], *, read_only: bool = False) -> list[Tool]:
    """The tools of some toolsets; with `read_only`, those that only read. Raises SettingsError."""
    tools = tools_with_rights(memory, toolsets)
    return [tool for tool, right in tools if not read_only or right == "read"]


def tools_with_rights(memory: Memory, toolsets: Iterable[str]) -> list[tuple[Tool, Right]]:
    """The tools of some toolsets, each with the least right that includes it. Raises SettingsError."""
    tools: list[tuple[Tool, Right]] = []
    for name in dict.fromkeys(toolsets):
        if name not in _TOOLSETS:
            raise UnknownToolset(name, tuple(_TOOLSETS))
        for tool in _TOOLSETS[name](memory):
            is_of_all = name in _ADMINISTRATIVE and tool.info.name != _IMPORT
            right: Right = "read" if only_reads(tool) else "admin" if is_of_all else "write"
            tools.append((structs.replace(tool, function=_mapped(tool.function)), right))
    return tools


def _mapped(function: Function) -> Function:
    """With the errors of MCP, and with a document named by its resource as well."""

    async def mapped(*arguments: Any, **named: Any) -> Any:
        if "document" in named:
            named["document"] = document_name(named["document"])
        with wire_errors():
            return await function(*arguments, **named)

    return mapped


def only_reads(tool: Tool) -> bool:
    """Whether a tool changes nothing."""
    hints = tool.info.annotations
    return hints is not UNSET and hints.read_only_hint is True
