"""The memory's tools, in groups that a host chooses from. Thin: each tool is one call of the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ragmcp.settings import SettingsError
from ragmcp.tools import Tool
from ragmemory.toolsets.documents import document_tools
from ragmemory.toolsets.memory import memory_tools

if TYPE_CHECKING:
    from ragmemory.service import MemoryService

_TOOLSETS: dict[str, Callable[[MemoryService], list[Tool]]] = {
    "memory": memory_tools,
    "documents": document_tools,
}


def make_tools(service: MemoryService, toolsets: Iterable[str]) -> list[Tool]:
    """The tools of these groups. Raises SettingsError for an unknown one."""
    tools: list[Tool] = []
    for name in dict.fromkeys(toolsets):
        if name not in _TOOLSETS:
            known = ", ".join(_TOOLSETS)
            raise SettingsError(f"There is no toolset {name!r}.", f"memory.toolsets may name: {known}.")
        tools += _TOOLSETS[name](service)
    return tools
