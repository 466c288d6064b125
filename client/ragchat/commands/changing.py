"""Changes of the user's settings by a command, which the same command takes back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from ragchat.commands.invocation import Invocation
from ragchat.commands.stdin import confirm
from ragchat.errors import NotAgreed, NothingBefore
from ragcommon.files.uris import without_secrets
from ragcommon.files.writing import replace_file
from ragconfig.errors import SetElsewhere
from ragconfig.settings import ENVIRONMENT, USER_FILE
from ragconfig.writing import Value, write_settings

# What names the settings before the last change.
BACK = ("back", "-")


def require_own(run: Invocation, keys: Iterable[str]) -> None:
    """Raises SetElsewhere if the environment has one of the values: a file could not change it."""
    for key in keys:
        if (origin := run.settings.origins.get(key, "")).startswith(ENVIRONMENT):
            raise SetElsewhere(key, origin)


def agree(run: Invocation, what: str) -> None:
    """Ask for consent to what a sentence says. Raises NotAgreed, also where nothing can be asked."""
    if not run.arguments.yes and not (run.can_ask and confirm(f"{what} Go on?")):
        raise NotAgreed(what)


def change(run: Invocation, what: str, changes: Mapping[str, Value]) -> Path:
    """Write settings, and keep what was there. Returns the settings file. Raises SettingsError."""
    file = run.config_file or run.home.config / USER_FILE
    previous = write_settings(file, changes)
    if previous != dict(changes):
        replace_file(_kept(run, what), json.dumps(previous).encode())
    return file


def before(run: Invocation, what: str) -> dict[str, Value]:
    """The values before the last change. Raises NothingBefore."""
    try:
        values: dict[str, Value] = json.loads(_kept(run, what).read_bytes())
    except (FileNotFoundError, ValueError):
        raise NothingBefore(what) from None
    return values


def with_secrets_hidden(changes: Mapping[str, Value]) -> dict[str, Value]:
    """Changes as they may be printed."""
    return {key: without_secrets(value) for key, value in changes.items()}


def shown(changes: Mapping[str, Value]) -> str:
    """Changes as a person reads them."""
    return ", ".join(
        f"{key} = {json.dumps(value)}" if value is not None else f"{key} is the default again"
        for key, value in changes.items()
    )


def _kept(run: Invocation, what: str) -> Path:
    return run.home.state / f"before-{what}.json"
