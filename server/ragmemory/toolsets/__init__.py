"""The memory's tools, in groups that a host chooses from. Thin: each tool is one call of the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ragmcp.settings import SettingsError
from ragmcp.tools import Tool
from ragmemory.toolsets.border import Memory
from ragmemory.toolsets.documents import document_tools
from ragmemory.toolsets.memory import memory_tools

_TOOLSETS: dict[str, Callable[[Memory], list[Tool]]] = {
    "memory": memory_tools,
    "documents": document_tools,
}


def make_tools(memory: Memory, toolsets: Iterable[str]) -> list[Tool]:
    """The tools of these groups. Raises SettingsError for an unknown one."""
    tools: list[Tool] = []
    for name in dict.fromkeys(toolsets):
        if name not in _TOOLSETS:
            known = ", ".join(_TOOLSETS)
            raise SettingsError(f"There is no toolset {name!r}.", f"memory.toolsets may name: {known}.")
        tools += _TOOLSETS[name](memory)
    return tools
