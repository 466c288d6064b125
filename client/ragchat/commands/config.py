"""`ragchat config`: show the effective settings and their files, and write a settings file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ragchat.commands.invocation import Invocation
from ragchat.errors import FileAlreadyExists
from ragchat.log import LOG_FILE
from ragchat.servers.memory.process import STDERR_FILE
from ragchat.sessions.store import sessions_path
from ragcommon.files.uris import without_userinfo
from ragcommon.files.writing import replace_file
from ragconfig.home import Home
from ragconfig.settings import (
    PACKAGED,
    PROJECT_FILE,
    USER_FILE,
    Settings,
    known_keys,
    packaged_text,
    range_of,
)

DEFAULT_ORIGIN = "default"
EXISTING_FILE_HINT = "It is left as it is: edit it, or move it away first to get all defaults again."
PREAMBLE = """\
# Settings of ragchat. Every key is commented out and shows its default;
# remove the # to change it. `ragchat config show` prints the effective settings and their origins.

"""


def show(run: Invocation) -> None:
    """Print every key with its value and origin. Of a secret, only whether it is set is printed."""
    rows, keys = effective(run.settings), keys_set()
    cells = [(row["key"], shown(row["value"]), row["origin"]) for row in rows]
    run.console.listing({"settings": rows, "keys": keys}, ("setting", "value", "from"), cells)
    if not run.console.json:
        for variable, is_set in keys.items():
            run.console.print(f"\n{variable} is {'set' if is_set else 'not set'}.")


def effective(settings: Settings) -> list[dict[str, Any]]:
    """Every key with its value, without passwords, and its origin."""
    rows = []
    for key in known_keys(settings):
        table, _, name = key.partition(".")
        value = without_userinfo(settings.tables[table][name])
        rows.append({"key": key, "value": value, "origin": settings.origins.get(key, DEFAULT_ORIGIN)})
    return rows


def keys_set() -> dict[str, bool]:
    """Which variables with keys of models are set."""
    return {"OPENAI_API_KEY": bool(os.environ.get("OPENAI_API_KEY"))}


def path(run: Invocation) -> None:
    """Print where everything is, even if it does not exist yet."""
    found = places(run.settings, run.config_file)
    run.console.listing(
        {name: {"path": str(place), "exists": place.exists()} for name, place in found.items()},
        ("what", "path", ""),
        [(name, place, "" if place.exists() else "(does not exist)") for name, place in found.items()],
    )


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


def init(run: Invocation) -> None:
    """Write the packaged defaults, commented out. An existing file is not overwritten."""
    target = run.config_file or Home.find().config / USER_FILE
    if target.exists():
        raise FileAlreadyExists(str(target), EXISTING_FILE_HINT)
    # As a whole: on a full disk, half a file would be left, and not be overwritten.
    replace_file(target, template().encode())
    run.console.result({"path": str(target)}, f"Wrote {target}.")


def template() -> str:
    """The packaged settings files as one, with keys commented out, and the ranges of numbers."""
    # The first paragraph of each file is about the packaged file.
    texts = (packaged_text(name).partition("\n\n")[2] for name in PACKAGED)
    lines = [line for text in texts for line in [*text.splitlines(), ""]]
    table, written = "", []
    for line in lines:
        if line.startswith("["):
            table = line.strip("[]")
        if line and line[0] not in "#[":
            allowed = range_of(table, line.partition(" =")[0])
            line = f"#{line}  # {allowed}" if allowed else f"#{line}"
        written.append(line)
    return PREAMBLE + "\n".join(written)


def shown(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return '""' if value == "" else str(value).lower() if isinstance(value, bool) else str(value)
