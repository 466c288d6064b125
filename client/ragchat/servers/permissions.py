"""What the user has allowed: commands of projects, and tools. Remembered in the user's own file only."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from ragchat.errors import PermissionsUnusable
from ragchat.servers.configs import Scope, ServerConfig
from ragchat.servers.private_json import read_private, write_private
from ragmcp.protocol.schema.tools import ToolInfo

FILE = "permissions.json"


class Rule(StrEnum):
    """What the user said about a tool for all time."""

    ALWAYS = "always"
    NEVER = "never"


class _Remembered(Struct, frozen=True):
    """A rule, and the tool as it was then."""

    rule: Rule
    description: str
    input_schema: dict[str, Any]


class _File(Struct):
    # The fingerprints of the servers of projects that may be started.
    servers: list[str] = []
    tools: dict[str, dict[str, _Remembered]] = {}
    # The servers that may not use the model.
    no_sampling: list[str] = []
    # The servers of projects that the user has disabled, by the file that names them.
    disabled: dict[str, list[str]] = {}


class Permissions:
    """The file; it is read at first use. Every method raises PermissionsUnusable."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._read: _File | None = None
        self.session: set[tuple[str, str]] = set()
        """The tools that the user has allowed until the chat ends, by server and name."""

    def may_start(self, config: ServerConfig) -> bool:
        """Whether the user named this server, or has agreed to exactly this command or address."""
        return config.scope is Scope.USER or config.fingerprint in self._file.servers

    def allow_start(self, config: ServerConfig) -> None:
        """The user agrees to a project's server."""
        if config.fingerprint not in self._file.servers:
            self._file.servers.append(config.fingerprint)
            self._write()

    def withdraw_start(self, config: ServerConfig) -> None:
        """The user agrees no longer."""
        if config.fingerprint in self._file.servers:
            self._file.servers.remove(config.fingerprint)
            self._write()

    def is_disabled(self, config: ServerConfig) -> bool:
        """Whether the file that names a server disables it, or the user has disabled that of a project."""
        return config.disabled or config.name in self._file.disabled.get(config.file, ())

    def disable(self, config: ServerConfig, *, disabled: bool) -> None:
        """Disable a server of a project, or enable it again, without changing the project's file."""
        others = [name for name in self._file.disabled.pop(config.file, ()) if name != config.name]
        if names := [*others, config.name] if disabled else others:
            self._file.disabled[config.file] = names
        self._write()

    def rule(self, server: str, tool: ToolInfo) -> Rule | None:
        """The rule for a tool; None if there is none, or if an allowed tool has changed since."""
        remembered = self._file.tools.get(server, {}).get(tool.name)
        if remembered is None or (remembered.rule is Rule.ALWAYS and remembered != _remember(tool)):
            return None
        return remembered.rule

    def changes(self, server: str, tool: ToolInfo) -> str:
        """How a tool differs from the one that was allowed, as a unified diff; "" if it does not."""
        remembered = self._file.tools.get(server, {}).get(tool.name)
        if remembered is None or remembered.rule is not Rule.ALWAYS:
            return ""
        lines = difflib.unified_diff(
            _lines(remembered), _lines(_remember(tool)), "when you allowed it", "now", lineterm=""
        )
        return "\n".join(lines)

    def remember(self, server: str, tools: Iterable[ToolInfo], rule: Rule) -> None:
        """The user's rule for these tools."""
        for tool in tools:
            self._file.tools.setdefault(server, {})[tool.name] = _remember(tool, rule)
        self._write()

    def may_sample(self, server: str) -> bool:
        """Whether the user may be asked to let a server use the model."""
        return server not in self._file.no_sampling

    def forbid_sampling(self, server: str) -> None:
        """The user lets a server never use the model."""
        if self.may_sample(server):
            self._file.no_sampling.append(server)
            self._write()

    def forget(self, server: str) -> None:
        """Drop the rules for a server and its tools."""
        self.session = {(owner, tool) for owner, tool in self.session if owner != server}
        was_forbidden = not self.may_sample(server)
        if was_forbidden:
            self._file.no_sampling.remove(server)
        if self._file.tools.pop(server, None) is not None or was_forbidden:
            self._write()

    @property
    def _file(self) -> _File:
        if self._read is None:
            self._read = read_private(self._path, _File, PermissionsUnusable)
        return self._read

    def _write(self) -> None:
        write_private(self._path, self._file, PermissionsUnusable)


def _remember(tool: ToolInfo, rule: Rule = Rule.ALWAYS) -> _Remembered:
    return _Remembered(rule, "" if tool.description is UNSET else tool.description, tool.input_schema)


def _lines(tool: _Remembered) -> list[str]:
    schema = msgspec.json.format(msgspec.json.encode(tool.input_schema, order="sorted")).decode()
    return [*tool.description.splitlines(), *schema.splitlines()]
