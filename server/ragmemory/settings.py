"""The memory's own tables of the settings. Light: read before the first answer."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ragconfig.settings import Settings


class MemorySettings(Struct, frozen=True):
    """The table [memory]."""

    path: str
    toolsets: list[str]
    read_only: bool
    busy_seconds: float
    undo_depth: int


class LimitSettings(Struct, frozen=True):
    """The table [limits]."""

    message_bytes: int


def memory_path(settings: Settings) -> Path:
    """The memory's file, absolute."""
    path = settings.table("memory", MemorySettings).path
    return Path(path).expanduser().absolute() if path else settings.home.data / "memory.db"
