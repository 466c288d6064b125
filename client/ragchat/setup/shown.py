"""The effective settings with their origins, and the files of ragchat."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ragchat.log import LOG_FILE
from ragchat.servers.memory.process import STDERR_FILE
from ragchat.sessions.store import sessions_path
from ragcommon.files.uris import without_userinfo
from ragconfig.settings import PROJECT_FILE, USER_FILE, Settings, known_keys

DEFAULT_ORIGIN = "default"
# In the query of a database's URL. The program refuses it there, but shows its settings.
_PASSWORD = re.compile(r"(?i)([?&]\w*password=)[^&#]*")


def effective(settings: Settings) -> list[dict[str, Any]]:
    """Every key with its value, without passwords, and its origin."""
    rows = []
    for key in known_keys(settings):
        table, _, name = key.partition(".")
        value = without_userinfo(settings.tables[table][name])
        if isinstance(value, str):
            value = _PASSWORD.sub(r"\1***", value)
        rows.append({"key": key, "value": value, "origin": settings.origins.get(key, DEFAULT_ORIGIN)})
    return rows


def keys_set() -> dict[str, bool]:
    """Which variables with keys of models are set."""
    return {"OPENAI_API_KEY": bool(os.environ.get("OPENAI_API_KEY"))}


def places(settings: Settings, config_file: Path | None) -> dict[str, Path]:
    """The files of ragchat."""
    home = settings.home
    return {
        "settings": config_file or home.config / USER_FILE,
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
