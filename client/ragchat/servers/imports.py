"""Servers configured in other MCP hosts: where each host keeps them, and which are usable here."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ragchat.errors import RagChatError, ServerConfigInvalid
from ragchat.servers.configs import ConfigScope, ServerConfig, decode_entry, read_entries
from ragcommon.errors import DECODE_ERRORS, decode_reason
from ragcommon.hosts import SERVER_NAME

VSCODE_FOLDERS = ("Code", "Code - Insiders", "VSCodium")
CLINE_FILE = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
# Project files by host. They may come from other people.
OF_PROJECT = {
    "vscode": ".vscode/mcp.json",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "zed": ".zed/settings.json",
}
# Variables other than ${NAME}, ${NAME:-default}, ${env:NAME}, ${userHome}, which can be expanded here.
_FOREIGN_VARIABLE = re.compile(r"\$\{(?!(?:env:)?[A-Za-z_]\w*(?::-[^}]*)?\})[^}]*\}|\$\{workspaceFolder\}")
# Gemini CLI also expands $NAME.
_SHORT_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Found:
    """A server in the file of another host; `obstacle` says why it cannot be used here, or is "".

    `config` is None if the entry is invalid. `of_project`: the file may come from other people.
    """

    host: str
    file: Path
    name: str
    of_project: bool
    config: ServerConfig | None = None
    obstacle: str = ""


@dataclass(frozen=True)
class Unreadable:
    """A file of another host that cannot be read."""

    host: str
    file: Path
    error: RagChatError


def host_files(
    folder: Path, environ: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> dict[str, list[Path]]:
    """The files of each host: those of the user, then that of the project in `folder`."""
    home, settings = Path.home(), _settings_folder(environ, platform)
    vscode = [settings / name / "User" for name in VSCODE_FOLDERS]
    zed = settings / "Zed" if platform == "win32" else home / ".config" / "zed"
    files = {
        "claude-desktop": [settings / "Claude" / "claude_desktop_config.json"],
        "claude-code": [home / ".claude.json"],
        "vscode": [user / "mcp.json" for user in vscode],
        "cline": [user / CLINE_FILE for user in vscode],
        "cursor": [home / ".cursor" / "mcp.json"],
        "windsurf": [home / ".codeium" / "windsurf" / "mcp_config.json"],
        "zed": [zed / "settings.json"],
        "lmstudio": [home / ".lmstudio" / "mcp.json"],
        "gemini": [home / ".gemini" / "settings.json"],
    }
    return {
        host: [*places, *([folder / OF_PROJECT[host]] if host in OF_PROJECT else [])]
        for host, places in files.items()
    }


def _settings_folder(environ: Mapping[str, str], platform: str) -> Path:
    """The settings folder of Electron programs."""
    if platform == "win32":
        return Path(environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def find_servers(host: str, files: list[Path], folder: Path) -> Iterator[Found | Unreadable]:
    """The servers in those of `files` that exist; `folder` is the project's."""
    for file in files:
        # In the home folder, the same file is the user's.
        of_project = host in OF_PROJECT and file == folder / OF_PROJECT[host] and folder != Path.home()
        try:
            entries = read_entries(file, comments=True)
        except RagChatError as error:
            yield Unreadable(host, file, error)
            continue
        for name, entry in entries.items():
            yield _found(Found(host, file, name, of_project), entry, folder)


def _found(found: Found, raw: Raw, folder: Path) -> Found:
    try:
        entry = msgspec.json.decode(raw, type=dict[str, Any])
        normalized = Raw(msgspec.json.encode(_normalized(found.host, entry)))
        config = decode_entry(found.name, normalized, found.file, ConfigScope.USER)
    except DECODE_ERRORS as error:
        return dataclasses.replace(found, obstacle=decode_reason(error, bytes(raw)))
    except ServerConfigInvalid as error:
        return dataclasses.replace(found, obstacle=error.reason)
    if found.of_project:
        config = _in_folder(config, folder)
    return dataclasses.replace(found, config=config, obstacle=_obstacle(config, entry))


def _normalized(host: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The entry in the format that most hosts share."""
    if isinstance(nested := entry.get("command"), dict):  # Zed, until 2025
        entry = {**entry, **nested, "command": nested.get("path", "")}
    if host == "gemini":
        for key in ("env", "headers"):
            if isinstance(table := entry.get(key), dict):
                values = {name: _SHORT_VARIABLE.sub(r"${\1}", str(value)) for name, value in table.items()}
                entry = {**entry, key: values}
    if entry.get("enabled") is False:
        entry = {**entry, "disabled": True}
    return {key: value for key, value in entry.items() if value is not None}


def _in_folder(config: ServerConfig, folder: Path) -> ServerConfig:
    """A server of a project, which the host starts in the project's folder."""
    here = str(folder.resolve())
    config = config.changed(lambda text: text.replace("${workspaceFolder}", here))
    return replace(config, cwd=config.cwd or (here if config.command else ""))


def _obstacle(config: ServerConfig, entry: Mapping[str, Any]) -> str:
    """Why a server cannot be used here, as a clause, or ""."""
    if _is_own(config):
        return "it is this memory itself"
    if config.disabled:
        return "it is disabled there"
    texts = [*config.command, *config.env.values(), config.cwd, config.url, *config.headers.values()]
    for text in texts:
        if unknown := _FOREIGN_VARIABLE.search(text):
            return f"it uses {unknown[0]}, which only that program can fill in"
    if entry.get("envFile"):
        return "it takes variables from a file (envFile); add it with `ragchat mcp add --env`"
    return ""


def _is_own(config: ServerConfig) -> bool:
    if config.name == SERVER_NAME:
        return True
    program = config.command[0].replace("\\", "/") if config.command else ""
    return Path(program).stem == SERVER_NAME or ("-m", SERVER_NAME) in pairwise(config.command)
