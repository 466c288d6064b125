"""Other MCP servers here, and this memory in other programs."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import Any

from ragchat.arguments.declaring import argument, command, flag, pair, text
from ragcommon.files.uris import is_http_url
from ragcommon.hosts import HOSTS

# The hosts whose servers can be imported.
JSON_HOSTS = tuple(name for name, host in HOSTS.items() if host.format == "json")


_NAME = argument("name", metavar="NAME", help="its name")


class ReplacesPositionals(argparse.Action):
    """An option with which the positional arguments of its command need not be given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        setattr(namespace, self.dest, values)
        for action in parser._actions:
            action.required = False


def _check_add(arguments: Namespace) -> str:
    if arguments.recipe is not None and arguments.command:
        return "--recipe has the command: they cannot be combined"
    if not arguments.command:
        return ""
    is_url = is_http_url(arguments.command[0])
    if "://" in arguments.command[0] and not is_url:
        return f"{arguments.command[0]!r} is not the address of a server, such as https://example.org/mcp"
    if is_url and arguments.env:
        return "--env belongs to a command: a URL takes --header"
    if arguments.header and not is_url:
        return "--header belongs to a URL: a command takes --env"
    return ""


def _check_config(arguments: Namespace) -> str:
    if arguments.repository and (arguments.url or arguments.memory):
        return "--repository has a memory of its own: it needs no --url or --memory"
    if arguments.token_file and not arguments.url:
        return "--token-file belongs to a running server: it needs --url"
    if arguments.url and not is_http_url(arguments.url):
        return f"{arguments.url!r} is not the address of a server, such as http://127.0.0.1:8765/mcp"
    return ""


COMMANDS = (
    command(
        "mcp add",
        "add a server whose tools a model may use",
        text("name", metavar="NAME", help="how you call it"),
        text(
            "command",
            metavar="COMMAND",
            nargs="+",
            help="-- and the command that starts it, or the URL where it runs",
        ),
        text(
            "--recipe",
            metavar=("RECIPE", "FOLDER"),
            nargs="*",
            action=ReplacesPositionals,
            help="instead of a command: a server that ragchat knows; without RECIPE, list them",
        ),
        argument(
            "--scope",
            choices=("user", "project"),
            default="user",
            help="for you everywhere, or for everybody in this project (.mcp.json)",
        ),
        argument(
            "--env",
            metavar="NAME=VALUE",
            type=pair("="),
            action="append",
            default=[],
            help="a variable for it; ${NAME} is replaced by yours at its start",
        ),
        argument(
            "--header",
            metavar="NAME:VALUE",
            type=pair(":"),
            action="append",
            default=[],
            help="a header for its URL, such as 'Authorization: Bearer ${TOKEN}'",
        ),
        flag("--trusted", help="run the tools that it says only read without asking"),
        check=_check_add,
    ),
    command(
        "mcp import",
        "copy the servers of Claude Desktop, VS Code, Cursor and others",
        argument(
            "host",
            metavar="HOST",
            nargs="?",
            choices=JSON_HOSTS,
            help=f"of this program only: {', '.join(JSON_HOSTS)}",
        ),
        target="mcp_import:import_servers",
    ),
    command("mcp ls", "list the other servers", alias="list"),
    command("mcp rm", "remove a server, and what it was allowed", _NAME, alias="remove"),
    command("mcp enable", "start a server again that you disabled", _NAME),
    command("mcp disable", "do not start a server any more", _NAME),
    command(
        "mcp test",
        "start servers and list their tools",
        argument("names", metavar="NAME", nargs="*", help="their names (default: all)"),
    ),
    command("mcp login", "log in at a remote server", _NAME),
    command("mcp logout", "forget the login at a remote server", _NAME),
    command(
        "mcp config",
        "print the block to paste into the settings of another program",
        argument("host", metavar="HOST", choices=tuple(HOSTS), help=", ".join(HOSTS)),
        flag("--repository", help="not this memory: that of the git repository which is open in the program"),
        text("--url", help="use the running `ragchat serve` at this URL"),
        text("--token-file", metavar="FILE", help="a file with the bearer token of that server"),
        target="mcp_config:config",
        check=_check_config,
    ),
)
