"""The effective settings with their origins, and the files of ragchat."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ragchat.log import LOG_FILE
from ragchat.servers.memory.process import STDERR_FILE
from ragchat.sessions.store import sessions_path
from ragcommon.files.uris import HIDDEN, without_secrets
from ragconfig.settings import DATABASE, PROJECT_FILE, USER_FILE, Settings, has_password, known_keys

DEFAULT_ORIGIN = "default"


def effective(settings: Settings) -> list[dict[str, Any]]:
    """Every key with its value, without passwords, and its origin."""
    rows = []
    for key in known_keys(settings):
        table, _, name = key.partition(".")
        value = without_secrets(settings.tables[table][name])
        if key == "store.url" and has_password(value):  # In another place, and refused there.
            value = f"{DATABASE}{HIDDEN}"
        rows.append({"key": key, "value": value, "origin": settings.origins.get(key, DEFAULT_ORIGIN)})
    return rows


def keys_set() -> dict[str, bool]:
    """Which variables with keys of models are set."""
    return {"OPENAI_API_KEY": bool(os.environ.get("OPENAI_API_KEY"))}


def places(settings: Settings) -> dict[str, Path]:
    """The files of ragchat."""
    home = settings.home
    return {
        "settings": settings.config_file or home.config / USER_FILE,
        "project_settings": Path.cwd() / PROJECT_FILE,
        "memory": settings.memory_path,
        "sessions": sessions_path(settings),
        "log": home.state / LOG_FILE,
        "memory_log": home.state / STDERR_FILE,
    }


def shown(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return '""' if value == "" else str(value).lower() if isinstance(value, bool) else str(value)
