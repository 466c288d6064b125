"""The user's permissions: for projects' servers, and for tools. They are kept in the user's own file only."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from enum import StrEnum
from itertools import groupby, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from ragchat.errors import PermissionsUnusable
from ragchat.servers.configs import ConfigScope, ServerConfig, disable_entry
from ragchat.servers.private_json import read_private, write_private
from ragmcp.protocol.results import or_none
from ragmcp.protocol.schema.tools import ToolInfo

FILE = "permissions.json"
# Lines of a tool's description and schemas that are compared: comparing is quadratic.
MAX_LINES = 500


class Rule(StrEnum):
    """The user's decision about a tool: permanently, or until the chat ends."""

    ALWAYS = "always"
    SESSION = "session"  # never in the file
    NEVER = "never"


_SAID = {
    Rule.ALWAYS: "always allowed",
    Rule.SESSION: "allowed in this session",
    Rule.NEVER: "never allowed",
}


class _Remembered(Struct, frozen=True):
    """A rule, and the tool as it was then: everything that the user and the model see of it."""

    rule: Rule
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    # None: not kept by an earlier release; {}: no annotations.
    annotations: dict[str, bool] | None = None

    def is_of(self, tool: ToolInfo) -> bool:
        """Whether the tool is unchanged."""
        # Encoded, because to Python 1 and True are equal.
        return _encoded(self) == _encoded(_remember(tool, self.rule))


class _File(Struct):
    # The fingerprints of projects' servers that may be started.
    servers: list[str] = []
    tools: dict[str, dict[str, _Remembered]] = {}
    # The servers that may not use the model.
    no_sampling: list[str] = []
    # Projects' servers that the user has disabled, by project file.
    disabled: dict[str, list[str]] = {}


class Permissions:
    """The permissions file, read at first use. Every method raises PermissionsUnusable.

    Rules for tools are kept under the `identity` of their server. What is forbidden is kept under its name:
    it stays forbidden if a project changes the server.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._read: _File | None = None
        self._session: dict[tuple[str, str], _Remembered] = {}
        self.sampling: set[str] = set()
        """The servers that may use the model without asking, until the chat ends."""

    def may_start(self, config: ServerConfig) -> bool:
        """Whether the user configured this server, or has consented to exactly this command or address."""
        return config.scope is ConfigScope.USER or config.fingerprint in self._file.servers

    def allow_start(self, config: ServerConfig) -> None:
        """Record the user's consent to a project's server."""
        if config.fingerprint not in self._file.servers:
            self._file.servers.append(config.fingerprint)
            self._write()

    def withdraw_start(self, config: ServerConfig) -> None:
        """Withdraw that consent."""
        if config.fingerprint in self._file.servers:
            self._file.servers.remove(config.fingerprint)
            self._write()

    def is_disabled(self, config: ServerConfig) -> bool:
        """Whether its file disables a server, or the user has disabled a project's server."""
        return config.disabled or config.name in self._file.disabled.get(config.file, ())

    def disable(self, config: ServerConfig, *, disabled: bool) -> None:
        """Disable or enable a server, without changing a project's file. Also raises as `disable_entry`."""
        if config.scope is ConfigScope.USER:
            disable_entry(Path(config.file), config.name, disabled=disabled)
            return
        others = [name for name in self._file.disabled.pop(config.file, ()) if name != config.name]
        if names := [*others, config.name] if disabled else others:
            self._file.disabled[config.file] = names
        self._write()

    def rule(self, server: str, tool: ToolInfo) -> Rule | None:
        """The rule for a tool; None if there is none, or if the tool has changed since it was allowed."""
        remembered = self._remembered(server, tool)
        return None if remembered is None or self.has_changed(server, tool) else remembered.rule

    def has_changed(self, server: str, tool: ToolInfo) -> bool:
        """Whether a tool has changed since the user allowed it."""
        remembered = self._remembered(server, tool)
        return remembered is not None and remembered.rule is not Rule.NEVER and not remembered.is_of(tool)

    def changes(self, server: str, tool: ToolInfo) -> str:
        """A unified diff between the allowed tool and the current one; "" if it has not changed."""
        remembered = self._remembered(server, tool)
        if remembered is None or not self.has_changed(server, tool):
            return ""
        return _difference(_lines(remembered), _lines(_remember(tool, remembered.rule)))

    def remember(self, server: str, tools: Iterable[ToolInfo], rule: Rule) -> None:
        """Record the user's rule for these tools."""
        for tool in tools:
            self._session.pop((server, tool.name), None)
            if rule is Rule.SESSION:
                self._session[server, tool.name] = _remember(tool, rule)
            else:
                kept_under = _name_of(server) if rule is Rule.NEVER else server
                self._file.tools.setdefault(kept_under, {})[tool.name] = _remember(tool, rule)
        if rule is not Rule.SESSION:
            self._write()

    def rules(self, server: str) -> dict[str, Rule]:
        """The rules for the tools of a server, also for those that have changed or are gone."""
        session = {name: one for (owner, name), one in self._session.items() if owner == server}
        return {name: one.rule for name, one in {**self._in_file(server), **session}.items()}

    def forget_tool(self, server: str, tool: str) -> None:
        """Drop the rule for one tool, if there is one."""
        self._session.pop((server, tool), None)
        if tool in self._in_file(server):
            self._file.tools.get(server, {}).pop(tool, None)
            named = self._file.tools.get(_name_of(server), {})
            if tool in named and named[tool].rule is Rule.NEVER:
                del named[tool]
            self._write()

    def _remembered(self, server: str, tool: ToolInfo) -> _Remembered | None:
        """The user's last decision about a tool of this name."""
        return self._session.get((server, tool.name), self._in_file(server).get(tool.name))

    def _in_file(self, server: str) -> dict[str, _Remembered]:
        named = self._file.tools.get(_name_of(server), {}).items()
        forbidden = {tool: one for tool, one in named if one.rule is Rule.NEVER}
        return self._file.tools.get(server, {}) | forbidden

    def may_sample(self, server: str) -> bool:
        """Whether a server may ask the user for the use of the model."""
        return server not in self._file.no_sampling

    def forbid_sampling(self, server: str) -> None:
        """Never let a server use the model."""
        if self.may_sample(server):
            self._file.no_sampling.append(server)
            self._write()

    def forget(self, server: str) -> list[str]:
        """Drop the rules for all servers of a name and their tools. Returns a phrase for each rule."""
        in_file = [identity for identity in self._file.tools if _name_of(identity) == server]
        rules = {(one.rule, tool) for key in in_file for tool, one in self._file.tools.pop(key).items()}
        for key in [key for key in self._session if _name_of(key[0]) == server]:
            rules.add((self._session.pop(key).rule, key[1]))
        forgotten = [
            f"{_SAID[rule]}: {', '.join(name for _, name in named)}"
            for rule, named in groupby(sorted(rules), key=itemgetter(0))
        ]
        if server in self.sampling:
            self.sampling.remove(server)
            forgotten.append("may use the model in this session")
        if was_forbidden := not self.may_sample(server):
            self._file.no_sampling.remove(server)
            forgotten.append("may never use the model")
        if in_file or was_forbidden:
            self._write()
        return forgotten

    @property
    def _file(self) -> _File:
        if self._read is None:
            self._read = read_private(self._path, _File, PermissionsUnusable)
        return self._read

    def _write(self) -> None:
        write_private(self._path, self._file, PermissionsUnusable)


def _name_of(identity: str) -> str:
    return re.sub(r"\n[0-9a-f]{64}\Z", "", identity)


def _remember(tool: ToolInfo, rule: Rule) -> _Remembered:
    return _Remembered(
        rule,
        or_none(tool.description) or "",
        tool.input_schema,
        or_none(tool.output_schema),
        {} if tool.annotations is UNSET else msgspec.to_builtins(tool.annotations),
    )


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _lines(tool: _Remembered) -> list[str]:
    """The remembered tool as lines of text."""
    lines = tool.description.split("\n")
    parts = ("arguments", tool.input_schema), ("result", tool.output_schema)
    for name, schema in parts:
        if schema is not None:
            lines += [f"{name}:", *msgspec.json.format(_encoded(schema)).decode().splitlines()]
    lines += ["annotations:"]
    if tool.annotations is None:
        return [*lines, "  (an earlier release did not keep them)"]
    return [*lines, *(f"  {name}: {str(value).lower()}" for name, value in sorted(tool.annotations.items()))]


def _difference(before: list[str], after: list[str]) -> str:
    """A unified diff without the common beginning, limited to MAX_LINES."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    start = max(0, same - 3)
    old, new = before[start : start + MAX_LINES], after[start : start + MAX_LINES]
    lines = [*difflib.unified_diff(old, new, "when you allowed it", "now", lineterm="")]
    if (more := max(len(before), len(after)) - start - MAX_LINES) > 0:
        lines.append(f"({more:,} more lines are not compared.)")
    return "\n".join(lines)
