"""`ragchat completion SHELL`: the script that completes commands, options and names at Tab."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ragchat.arguments.parser import make_parser
from ragchat.commands.invocation import Invocation
from ragcommon.completion import completed, script
from ragconfig.prompt_files import ROLES, role_files

_OF_SERVERS = ("rm", "enable", "disable", "test", "login", "logout")


def completion(run: Invocation) -> None:
    """Print the script; with words, which the script gives, the candidates for the last one."""
    shell, words = run.arguments.shell, run.arguments.words
    if not words:
        text = script(shell, "ragchat")
        run.console.result({"shell": shell, "script": text}, text.rstrip("\n"))
        return
    config = run.home.config

    def roles() -> Iterable[str]:
        return role_files(config / ROLES)

    def prompts() -> Iterable[str]:
        from ragchat.commands.prompt import templates

        return sorted(templates(run))

    def servers() -> Iterable[str]:
        from ragchat.servers.configs import USER_FILE, read_configs

        return read_configs(config / USER_FILE, Path())

    known = {
        "--prompt": prompts,
        "--role": roles,
        "ragchat prompt show": lambda: [*prompts(), *roles()],
        **{f"ragchat mcp {name}": servers for name in _OF_SERVERS},
    }
    for line in completed(make_parser(), words, known):
        run.console.print(line)
