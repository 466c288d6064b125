"""The files that configure servers: the user's own and a project's, in the format that all hosts share.

`{"mcpServers": {NAME: {"command": …, "args": […], "env": {…}} or {"url": …, "headers": {…}}}}`
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import shlex
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from ragchat.errors import ServerConfigInvalid, ServerFileNotWritten, ServerFileUnreadable, VariableMissing
from ragchat.sanitize import visible
from ragchat.servers.jsonc import to_json
from ragcommon.errors import DECODE_ERRORS, decode_reason, os_reason
from ragcommon.files.safe_open import read_regular
from ragcommon.files.uris import without_secrets
from ragcommon.files.writing import replace_file
from ragcommon.hosts import SERVER_NAME
from ragconfig.redaction import add_secret, add_secrets_of
from ragconfig.repository import is_repository

USER_FILE = "mcp.json"
PROJECT_FILE = ".mcp.json"
# The size limit of such a file; some hosts keep other settings in it.
MAX_BYTES = 1 << 24
# The keys for servers: of most hosts, of VS Code, of Zed.
KEY = "mcpServers"
KEYS = frozenset({KEY, "servers", "context_servers"})

_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class ConfigScope(StrEnum):
    """Whose file configures a server."""

    USER = "user"
    PROJECT = "project"


class OAuthConfig(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A registration made by the user, for authorization servers without dynamic registration."""

    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    callback_port: int = 0  # 0: any


class ServerConfig(Struct, frozen=True, kw_only=True):
    """How to start a server, or its address. Variables are not expanded yet."""

    name: str
    scope: ConfigScope
    file: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}
    oauth: OAuthConfig = OAuthConfig()
    disabled: bool = False
    trusted: bool = False  # trust its read-only annotations; only in the user's own file

    @property
    def shown(self) -> str:
        """The command or the address on one line."""
        return shlex.join(self.command) or without_secrets(self.url.partition("?")[0])

    @property
    def whole(self) -> str:
        """What the user consents to: the command with its variables and folder, or the address and what is
        sent to it.
        """
        variables = [f"{shlex.quote(name)}={shlex.quote(value)}" for name, value in self.env.items()]
        folder = [f"(in {shlex.quote(self.cwd)})"] if self.cwd else []
        headers = [f"(header {name}: {value})" for name, value in self.headers.items()]
        secret = [f"(client secret {self.oauth.client_secret})"] if self.oauth.client_secret else []
        command = [*variables, shlex.join(self.command), *folder]
        text = " ".join(command if self.command else [self.url, *headers, *secret])
        # Line breaks or many spaces could move a part of it off the screen.
        return " ".join(visible(text.replace("\n", "\\n")).split())

    @property
    def entry(self) -> dict[str, Any]:
        """The server as an entry of these files."""
        if self.url:
            oauth = msgspec.to_builtins(self.oauth)
            known = {"url": self.url, "headers": dict(self.headers), "oauth": oauth}
        else:
            command, *args = self.command
            known = {"command": command, "args": args, "env": dict(self.env), "cwd": self.cwd}
        return {key: value for key, value in known.items() if value}

    @property
    def fingerprint(self) -> str:
        """Identifies exactly what would be started: any change needs a new consent."""
        parts = [self.file, self.name, self.command, dict(self.env), self.cwd, self.url, dict(self.headers)]
        oauth = [self.oauth] if self.oauth != OAuthConfig() else []  # Earlier releases left it out.
        encoded = msgspec.json.encode([*parts, *oauth], order="deterministic")
        return hashlib.sha256(encoded).hexdigest()

    @property
    def identity(self) -> str:
        """The key of the rules for its tools: its name, and the fingerprint of a project's server."""
        return self.name if self.scope is ConfigScope.USER else f"{self.name}\n{self.fingerprint}"

    def changed(self, change: Callable[[str], str]) -> ServerConfig:
        """With other texts: of the command, its environment and folder, or of the headers."""
        return replace(
            self,
            command=tuple(map(change, self.command)),
            env={name: change(text) for name, text in self.env.items()},
            cwd=change(self.cwd),
            headers={name: change(text) for name, text in self.headers.items()},
        )

    def expanded(self, environ: Mapping[str, str] = os.environ) -> ServerConfig:
        """Expand variables. Raises VariableMissing.

        They are `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${userHome}`, and `${workspaceFolder}` for the
        file's folder.
        """
        values = {"userHome": str(Path.home()), "workspaceFolder": str(Path(self.file).parent)}

        def value(found: re.Match[str]) -> str:
            name, has_default, default = found[1].removeprefix("env:").partition(":-")
            if name in values and not has_default:
                return values[name]
            if (text := environ.get(name)) or not has_default:
                if text is None:
                    raise VariableMissing(self.name, name, self.file)
                return text
            return default

        expanded = self.changed(lambda text: _VARIABLE.sub(value, text))
        expanded = replace(
            expanded,
            url=_VARIABLE.sub(value, self.url),
            oauth=replace(self.oauth, client_secret=_VARIABLE.sub(value, self.oauth.client_secret)),
        )
        secrets = (*expanded.env.values(), *expanded.headers.values(), expanded.oauth.client_secret)
        for text in secrets:
            add_secret(text.removeprefix("Bearer "))
        add_secrets_of(expanded.url)
        return expanded


class _Entry(Struct):
    """An entry of any of these files; hosts have different names for the address."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    server_url: str = field(name="serverUrl", default="")
    http_url: str = field(name="httpUrl", default="")
    headers: dict[str, str] = {}
    oauth: OAuthConfig = OAuthConfig()
    disabled: bool = False
    trusted: bool = False


def read_configs(user_file: Path, folder: Path | None = None) -> dict[str, ServerConfig]:
    """The servers of the user's file and of the project of `folder` (default: the working folder).

    The user's entry wins if both have the same name: a repository must not replace a server that the user
    trusts. Raises ServerFileUnreadable, ServerConfigInvalid.
    """
    project_file = find_project_file(folder or Path())
    project = read_file(project_file, ConfigScope.PROJECT) if project_file else {}
    return {**project, **read_file(user_file, ConfigScope.USER)}


def find_project_file(folder: Path) -> Path | None:
    """The nearest project file from `folder` up to the root of its repository; None if there is none."""
    try:
        folder = folder.resolve()
    except OSError:  # The working folder has been deleted.
        return None
    for place in (folder, *folder.parents):
        if (place / PROJECT_FILE).is_file():
            return place / PROJECT_FILE
        if is_repository(place):
            break
    return None


def read_file(file: Path, scope: ConfigScope) -> dict[str, ServerConfig]:
    """The servers of one file; none if it does not exist. Raises as `read_configs`.

    An entry with the name of our own memory is ignored: memory's permissions and trust must not apply to
    another server.
    """
    return {
        name: decode_entry(name, entry, file, scope)
        for name, entry in read_entries(file).items()
        if name != SERVER_NAME
    }


def read_entries(file: Path, *, comments: bool = False) -> dict[str, Raw]:
    """The servers of one file, undecoded; none if it does not exist. Raises as `read_configs`.

    With `comments`, the file may have comments and trailing commas.
    """
    return {
        name: entry
        for key, entries in _read_tables(file, comments).items()
        if key in KEYS
        for name, entry in _decoded(entries, dict[str, Raw], file, key).items()
    }


def write_entry(file: Path, name: str, entry: Mapping[str, Any] | None, new_mode: int = 0o600) -> None:
    """Add or replace a server in a file that hosts share; None removes it. The rest of the file is kept.

    Raises as `read_configs`, and ServerFileNotWritten.
    """
    tables = _read_tables(file)
    if entry is not None:
        tables.setdefault(KEY, Raw(b"{}"))
    for key in KEYS & tables.keys():
        servers = _decoded(tables[key], dict[str, Any], file, key)
        if key == KEY and entry is not None:
            servers[name] = entry
        else:
            servers.pop(name, None)
        tables[key] = Raw(msgspec.json.encode(servers))
    try:
        replace_file(file, msgspec.json.format(msgspec.json.encode(tables)) + b"\n", new_mode)
    except OSError as error:
        raise ServerFileNotWritten(str(file), os_reason(error)) from None


def disable_entry(file: Path, name: str, *, disabled: bool) -> None:
    """Disable or enable a server in the file that configures it. Raises as `read_configs`."""
    entry = _decoded(read_entries(file)[name], dict[str, Any], file, name)
    entry.pop("disabled", None)
    write_entry(file, name, entry | ({"disabled": True} if disabled else {}))


def _read_tables(file: Path, comments: bool = False) -> dict[str, Raw]:
    """The members of a file, undecoded; none if it does not exist."""
    try:
        content = read_regular(file, MAX_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ServerFileUnreadable(str(file), os_reason(error)) from None
    content = to_json(content) if comments else content.removeprefix(codecs.BOM_UTF8)
    tables: dict[str, Raw] = _decoded(Raw(content), dict[str, Raw], file, "its content")
    return tables


def decode_entry(name: str, raw: Raw, file: Path, scope: ConfigScope) -> ServerConfig:
    """Raises ServerConfigInvalid."""
    entry = _decoded(raw, _Entry, file, name)
    url = entry.url or entry.server_url or entry.http_url
    if not name.strip():  # The empty name is reserved for the host's own tools.
        raise ServerConfigInvalid(str(file), "a server", "it needs a name")
    if bool(entry.command) == bool(url):
        raise ServerConfigInvalid(str(file), name, "it needs either a command or a url")
    return ServerConfig(
        name=name,
        scope=scope,
        file=str(file),
        command=(entry.command, *entry.args) if entry.command else (),
        env=entry.env,
        cwd=entry.cwd,
        url=url,
        headers=entry.headers,
        oauth=entry.oauth,
        disabled=entry.disabled,
        trusted=entry.trusted and scope is ConfigScope.USER,
    )


def _decoded(raw: Raw, type: Any, file: Path, what: str) -> Any:
    try:
        return msgspec.json.decode(raw, type=type)
    except DECODE_ERRORS as error:
        raise ServerConfigInvalid(str(file), what, decode_reason(error, bytes(raw))) from None
