"""Loading a whole repository into its own memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragconfig.home import UnknownHome, user_path
from ragconfig.repository import ORIGIN, is_repository, make_memory
from ragconfig.settings import Settings


def with_own_memory(settings: Settings, paths: Sequence[str]) -> tuple[Settings, str]:
    """The settings for loading `paths`, and a sentence if a memory was created.

    A single path that is the root of a git repository is loaded into that repository's own memory, unless the
    user has named a memory or a server. Raises SettingsError.
    """
    if len(paths) != 1 or settings.names_memory or settings.tables["memory_server"]["url"]:
        return settings, ""
    try:
        root = user_path(paths[0]).resolve()
    except (UnknownHome, OSError, RuntimeError):
        return settings, ""  # The server reports it.
    if not is_repository(root):
        return settings, ""
    path, is_new = make_memory(root, settings.home)
    made = f"This repository has its own memory now: {path} (ignored by git)." if is_new else ""
    return settings.with_memory(path, ORIGIN), made


def own_memory(settings: Settings) -> Path | None:
    """The memory in use, if it is a repository's own."""
    return settings.memory_path if settings.origins.get("memory.path") == ORIGIN else None
