"""`ragchat mcp add|ls|rm|enable|disable|test|login|logout`: the other MCP servers that a model may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

from ragchat.commands.invocation import Invocation
from ragchat.commands.stdin import confirm, read_line
from ragchat.console import Failure, describe
from ragchat.errors import ServerExists, ServerNameReserved, UnknownServer, VariableMissing
from ragchat.servers.configs import (
    PROJECT_FILE,
    USER_FILE,
    ConfigScope,
    ServerConfig,
    find_project_file,
    read_configs,
    read_entries,
    read_file,
    write_entry,
)
from ragchat.servers.connection import Connection
from ragchat.servers.login import Credentials, log_in
from ragchat.servers.managed import ServerState
from ragchat.servers.manager import ServerManager
from ragchat.servers.permissions import Permissions
from ragchat.servers.recipes import find_recipe, missing_program, read_recipes
from ragchat.settings import ServerSettings
from ragcommon.files.uris import is_http_url
from ragcommon.hosts import SERVER_NAME
from ragcommon.text.rules import counted

NO_SERVERS = "There are no other servers. `ragchat mcp add NAME -- COMMAND` adds one."


def add(run: Invocation) -> None:
    """Write a server into the user's file, or into the project's; or list the recipes for servers."""
    arguments = run.arguments
    if arguments.recipe is None:
        entry, environ = _entry(arguments.command), {**os.environ, **dict(arguments.env)}
        program = entry.get("command", "")
        # A variable in it is known only when the server is started.
        missing = [] if "url" in entry or "${" in program else [*missing_program(program, environ)]
        _add(run, arguments.name, entry, missing)
    elif not arguments.recipe:
        _list_recipes(run)
    else:
        recipe_name, *folders = arguments.recipe
        recipe = find_recipe(recipe_name)
        name = arguments.name or recipe_name
        _add(run, name, recipe.entry(recipe_name, folders), [*recipe.missing()])


def _entry(words: Sequence[str]) -> dict[str, Any]:
    first, *rest = words
    return {"url": first} if is_http_url(first) else {"command": first, "args": rest}


def _add(run: Invocation, name: str, entry: dict[str, Any], missing: Sequence[str]) -> None:
    """`missing` are sentences about what the server still needs."""
    arguments = run.arguments
    if name == SERVER_NAME:
        raise ServerNameReserved(name)
    file = _file(run, arguments.scope)
    for key, pairs in (("env", arguments.env), ("headers", arguments.header)):
        if pairs:
            entry[key] = {**entry.get(key, {}), **dict(pairs)}
    if arguments.trusted:
        entry["trusted"] = True
    if name in read_entries(file):
        raise ServerExists(name, str(file))
    # A project's file is for everybody who works on it.
    write_entry(file, name, entry, 0o600 if arguments.scope == ConfigScope.USER else 0o644)
    if run.console.json:
        added = _described(read_file(file, ConfigScope(arguments.scope))[name])
        run.console.document({**added, "missing": list(missing)})
        return
    run.console.print(f"Added {name} to {file}. `ragchat mcp test {quote(name)}` tries it.")
    for sentence in missing:
        run.console.note(f"It still needs something: {sentence}")


def _list_recipes(run: Invocation) -> None:
    recipes = read_recipes()
    described = [
        {"name": name, "description": one.description, "needs": one.needs} for name, one in recipes.items()
    ]
    rows = [(name, ", ".join(one.needs), one.description) for name, one in recipes.items()]
    header, note = ("recipe", "needs", "lends tools to"), "`ragchat mcp add --recipe RECIPE` adds its server."
    run.console.listing({"recipes": described}, header, rows, notes=[note])


def ls(run: Invocation) -> None:
    """The servers that are named, without starting them."""
    permissions = Permissions(run.home.config)
    configs = [*read_configs(run.home.config / USER_FILE).values()]
    rows = [(one.name, one.scope, _state(one, permissions), one.shown) for one in configs]
    header = ("name", "scope", "state", "command or address")
    run.console.listing({"servers": [*map(_described, configs)]}, header, rows, NO_SERVERS)


def rm(run: Invocation) -> None:
    """Take a server out of the file that names it, and forget what was allowed and granted to it."""
    config = _find(run, run.arguments.name)
    write_entry(Path(config.file), config.name, None)
    permissions = Permissions(run.home.config)
    permissions.forget(config.name)  # Another server may get its name.
    permissions.withdraw_start(config)
    with suppress(VariableMissing):
        if url := config.expanded().url:
            Credentials(run.home.data).keep_grant(url, None)
    run.console.result(
        {"name": config.name, "file": config.file}, f"Removed {config.name} from {config.file}."
    )


def enable(run: Invocation) -> int:
    """Exit code 1 if the file of a project disables the server."""
    return _switch(run, disabled=False)


def disable(run: Invocation) -> int:
    return _switch(run, disabled=True)


def _switch(run: Invocation, *, disabled: bool) -> int:
    permissions = Permissions(run.home.config)
    permissions.disable(_find(run, run.arguments.name), disabled=disabled)
    config = _find(run, run.arguments.name)
    state = _state(config, permissions)
    failure: Failure | None = None
    if config.disabled and not disabled:
        failure = Failure("SERVER_NOT_READY", f"{config.file} disables {config.name}.", "Change it there.")
        run.console.failure(failure)
    document = _described(config) | {"state": state}
    return run.console.result(document, f"{config.name}: {state}", failure=failure)


async def test(run: Invocation) -> int:
    """Start the servers and list what they offer. Exit code 1 if one does not start."""
    names = run.arguments.names
    for name in names:
        _find(run, name)
    async with ServerManager(run.settings) as manager:
        manager.start()
        chosen = [one for name, one in manager.connections.items() if not names or name in names]
        for connection in chosen:
            if connection.state is ServerState.UNASKED and _confirms_start(run, connection.config):
                manager.agree(connection.name)
        chosen = [manager.connection(one.config.name) for one in chosen]
        for connection in chosen:
            await connection.wait_started()
        results = [_test_result(connection) for connection in chosen]
    lines = [line for result in results for line in _lines(result)]
    unready = [one for one in results if one["state"] not in (ServerState.READY, ServerState.DISABLED)]
    failure = _failure(unready[0]) if unready else None
    return run.console.result({"servers": results}, *lines, empty=NO_SERVERS, failure=failure)


async def login(run: Invocation) -> None:
    """Let the user log in at a remote server."""
    config = _find(run, run.arguments.name).expanded()
    if not config.url:
        text = f"{config.name} runs on this machine: it needs no login."
        run.console.result({"name": config.name, "url": ""}, text)
        return
    settings = run.settings.table("servers", ServerSettings)
    # With --json the caller is a program, which has no address to paste.
    read = read_line if sys.stdin.isatty() and not run.console.json else None
    await log_in(config, Credentials(run.home.data), settings, run.console.note, read)
    run.console.result({"name": config.name, "url": config.url}, f"{config.name} can be used now.")


def logout(run: Invocation) -> None:
    """Forget the login at a remote server."""
    config = _find(run, run.arguments.name).expanded()
    credentials = Credentials(run.home.data)
    was_logged_in = credentials.grant(config.url) is not None
    if was_logged_in:
        credentials.keep_grant(config.url, None)
    done = f"The login at {config.name} is forgotten on this machine."
    text = done if was_logged_in else f"You were not logged in at {config.name}."
    run.console.result({"name": config.name, "logged_out": was_logged_in}, text)


def _test_result(connection: Connection) -> dict[str, Any]:
    result = _described(connection.config) | {"state": connection.state}
    result["tools"] = [tool.name for tool in connection.tools]
    result["left_out"] = connection.left_out
    if connection.failure is not None:
        result["error"] = describe(connection.failure)
        result["log"] = "" if connection.config.url else str(connection.log)
    return result


def _failure(result: dict[str, Any]) -> Failure:
    """Why a server cannot be used."""
    message, *hint = (line.strip() for line in _lines(result))
    return result.get("error") or Failure("SERVER_NOT_READY", f"{message}.", *hint)


def _lines(result: dict[str, Any]) -> Iterator[str]:
    name, state, tools = result["name"], result["state"], result["tools"]
    if state is ServerState.READY:
        yield f"{name}: {counted(len(tools), 'tool')}: {', '.join(tools)}"
        yield from (f"  {text}" for text in result["left_out"])
        return
    yield f"{name}: {state}"
    if state is ServerState.UNASKED:
        yield f"  On a terminal, `ragchat mcp test {quote(name)}` shows its command and asks you."
    if error := result.get("error"):
        yield f"  {error.message}"
        if error.hint:
            yield f"  {error.hint}"
        if result["log"]:
            yield f"  Its log: {result['log']}"


def _described(config: ServerConfig) -> dict[str, Any]:
    """A server without its secrets."""
    place = {"url": config.shown} if config.url else {"command": list(config.command)}
    known = {"name": config.name, "scope": config.scope, "file": config.file, **place}
    return known | {"disabled": config.disabled, "trusted": config.trusted}


def _state(config: ServerConfig, permissions: Permissions) -> str:
    if permissions.is_disabled(config):
        return ServerState.DISABLED
    return "enabled" if permissions.may_start(config) else ServerState.UNASKED


def _confirms_start(run: Invocation, config: ServerConfig) -> bool:
    """Whether the user agrees to start a server that a project's file names."""
    if not run.can_ask:
        return False
    run.console.note(f"{config.file} wants to start: {config.whole}")
    return confirm("Start it?")


def _find(run: Invocation, name: str) -> ServerConfig:
    """Raises UnknownServer."""
    return UnknownServer.look_up(name, read_configs(run.home.config / USER_FILE))


def _file(run: Invocation, scope: str) -> Path:
    if scope == ConfigScope.USER:
        return run.home.config / USER_FILE
    return find_project_file(Path()) or Path.cwd() / PROJECT_FILE
