"""The settings of other MCP hosts that add our server: the blocks to paste.

They are here because both programs print them (`ragchat mcp config`, and the page of `ragmemory http`), and
neither may import the other. Few imports: the command line's parser needs the names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

SERVER_NAME = "ragmemory"
# The environment variable with the bearer token. A host's settings refer to it; its user sets it.
TOKEN_VARIABLE = "RAGMEMORY_TOKEN"


Format: TypeAlias = Literal["json", "yaml", "toml"]


class Host(NamedTuple):
    """How one host's settings differ from others'."""

    title: str
    where: str
    key: str = "mcpServers"
    """The key of the servers."""
    started: Mapping[str, Any] = {}
    """Further members of a server that the host starts."""
    workspace_fields: Mapping[str, Any] = {}
    """Further members of a server that runs in the folder open in the host."""
    reached: Mapping[str, Any] | None = None
    """Further members of a server with a URL; None: the host only starts servers."""
    names: Mapping[str, str] = {}
    """Its own names for `command`, `args`, `env` and `url`."""
    token: Mapping[str, Any] = {}
    """The members that send the token, by reference: the settings do not hold it."""
    inputs: tuple[Mapping[str, Any], ...] = ()
    """What the host must ask its user for to resolve that reference."""
    format: Format = "json"
    around: Mapping[str, Any] = {}
    """Further members next to `key`, whose value is then a list of servers with names."""


def _bearer(secret: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {secret}"}}


_VARIABLE = _bearer(f"${{{TOKEN_VARIABLE}}}")
_EDITOR_VARIABLE = _bearer(f"${{env:{TOKEN_VARIABLE}}}")
_PLACEHOLDER = _bearer("PUT-THE-TOKEN-HERE")
_CLINE = {"disabled": False, "autoApprove": ["Query"]}
_GOOSE = {"name": SERVER_NAME, "enabled": True, "timeout": 300}

HOSTS = {
    "claude-desktop": Host(
        "Claude Desktop", "claude_desktop_config.json (Settings > Developer > Edit Config)"
    ),
    "claude-code": Host(
        "Claude Code",
        ".mcp.json in the project's folder",
        started={"type": "stdio"},
        reached={"type": "http"},
        token=_VARIABLE,
    ),
    "vscode": Host(
        "VS Code",
        ".vscode/mcp.json, or the user's (MCP: Open User Configuration)",
        "servers",
        {"type": "stdio"},
        reached={"type": "http"},
        # Its own default where the block is in .vscode/mcp.json, but not in the user's.
        workspace_fields={"cwd": "${workspaceFolder}"},
        token=_bearer("${input:ragmemory-token}"),
        inputs=(
            {
                "type": "promptString",
                "id": "ragmemory-token",
                "description": "ragmemory token",
                "password": True,
            },
        ),
    ),
    "cline": Host(
        "Cline",
        "cline_mcp_settings.json (MCP Servers > Configure > Configure MCP Servers)",
        started=_CLINE,
        reached={"type": "streamableHttp", **_CLINE},
        token=_PLACEHOLDER,
    ),
    "cursor": Host(
        "Cursor",
        "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder",
        reached={},
        token=_EDITOR_VARIABLE,
    ),
    # https://docs.windsurf.com/windsurf/cascade/mcp
    "windsurf": Host(
        "Windsurf",
        "~/.codeium/windsurf/mcp_config.json",
        reached={},
        names={"url": "serverUrl"},
        token=_EDITOR_VARIABLE,
    ),
    # https://zed.dev/docs/ai/mcp
    "zed": Host(
        "Zed",
        "settings.json (zed: open settings file)",
        "context_servers",
        reached={},
        token=_PLACEHOLDER,
    ),
    # https://lmstudio.ai/docs/app/mcp
    "lmstudio": Host(
        "LM Studio",
        "mcp.json (Program > Install > Edit mcp.json)",
        reached={},
        token=_PLACEHOLDER,
    ),
    # https://geminicli.com/docs/tools/mcp-server
    "gemini": Host(
        "Gemini CLI",
        "~/.gemini/settings.json, or .gemini/settings.json in the project's folder",
        reached={},
        names={"url": "httpUrl"},
        token=_VARIABLE,
    ),
    # https://developers.openai.com/codex/mcp
    "codex": Host(
        "Codex",
        "~/.codex/config.toml, or .codex/config.toml in the project's folder",
        "mcp_servers",
        reached={},
        token={"bearer_token_env_var": TOKEN_VARIABLE},
        format="toml",
    ),
    # https://goose-docs.ai/docs/guides/config-files; only the variables in `env_keys` are put into headers.
    "goose": Host(
        "goose",
        "~/.config/goose/config.yaml (Windows: %APPDATA%\\Block\\goose\\config\\config.yaml)",
        "extensions",
        {"type": "stdio", **_GOOSE},
        reached={"type": "streamable_http", **_GOOSE},
        names={"command": "cmd", "env": "envs", "url": "uri"},
        token={"env_keys": [TOKEN_VARIABLE], **_VARIABLE},
        format="yaml",
    ),
    # https://docs.continue.dev/customize/deep-dives/mcp
    "continue": Host(
        "Continue",
        ".continue/mcpServers/ragmemory.yaml in the project's folder",
        started={"type": "stdio"},
        reached={"type": "streamable-http"},
        token={"requestOptions": _bearer(f"${{{{ secrets.{TOKEN_VARIABLE} }}}}")},
        format="yaml",
        around={"name": SERVER_NAME, "version": "1.0.0", "schema": "v1"},
    ),
}


def started(
    host: Host, command: Sequence[str], environ: Mapping[str, str], *, in_open_folder: bool = False
) -> dict[str, Any]:
    """The host's settings with one server, started by `command` with the variables `environ` added.

    `in_open_folder`: in the folder that is open in the host, where its settings can say so.
    """
    entry: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
    if environ:
        entry["env"] = dict(environ)
    return _settings(host, entry, {**host.started, **(host.workspace_fields if in_open_folder else {})})


def reached(
    host: Host, url: str, command: Sequence[str], *, token: bool, token_file: str = ""
) -> dict[str, Any]:
    """The host's settings with the server that runs at `url`; `token`: whether that requires a token.

    The token itself is never in them. A host that only starts servers starts a bridge by `command`, which is
    the program `ragmemory`.
    """
    if host.reached is None:
        file = ["--token-file", token_file or "PATH-OF-THE-TOKEN-FILE"] if token else []
        return started(host, [*command, "bridge", url, *file], {})
    inputs = {"inputs": list(host.inputs)} if token and host.inputs else {}
    return inputs | _settings(host, {"url": url}, {**host.reached, **(host.token if token else {})})


def _settings(host: Host, entry: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    server = {**{host.names.get(name, name): value for name, value in entry.items()}, **more}
    if host.around:
        return {**host.around, host.key: [{"name": SERVER_NAME, **server}]}
    return {host.key: {SERVER_NAME: server}}


def server_command() -> list[str]:
    """The command of `ragmemory`, see `program_command`."""
    return program_command(SERVER_NAME)


def program_command(name: str) -> list[str]:
    """The installed program by its absolute path; else this Python running the module."""
    import shutil
    import sysconfig

    installed = shutil.which(name, path=sysconfig.get_path("scripts"))
    return [installed] if installed else [sys.executable, "-m", name]


# The few forms of YAML and TOML that the settings need, without a library


def write(settings: Mapping[str, Any], format: Format) -> str:
    """The settings as text, without a line end. Keys must be plain words."""
    if format == "json":
        import json

        return json.dumps(settings, indent=2, ensure_ascii=False)
    return "\n".join(_yaml(settings) if format == "yaml" else _toml(settings))


def _yaml(table: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _yaml(value, f"{indent}  ")
        elif _is_tables(value):
            yield f"{indent}{name}:"
            for item in value:
                first, *rest = _yaml(item, f"{indent}    ")
                yield f"{indent}  - {first.lstrip()}"
                yield from rest
        else:
            yield f"{indent}{name}: {_scalar(value)}"


def _toml(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    inner = {name: value for name, value in table.items() if isinstance(value, Mapping)}
    if len(inner) < len(table):
        if path:
            yield f"[{path}]"
        yield from (f"{name} = {_scalar(value)}" for name, value in table.items() if name not in inner)
    for name, value in inner.items():
        yield from _toml(value, f"{path}.{name}".lstrip("."))


def _is_tables(value: Any) -> bool:
    return isinstance(value, Sequence) and any(isinstance(item, Mapping) for item in value)


def _scalar(value: Any) -> str:
    """Text, numbers, truth values and lists of these: JSON, which YAML and TOML read alike."""
    import json

    return json.dumps(value, ensure_ascii=False)
