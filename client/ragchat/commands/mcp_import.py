"""`ragchat mcp import`: copy the servers of other MCP hosts into the user's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragchat.commands.invocation import Invocation
from ragchat.commands.stdin import confirm
from ragchat.console import Failure, describe
from ragchat.servers.configs import USER_FILE, ConfigScope, ServerConfig, read_file, write_entry
from ragchat.servers.imports import Found, Unreadable, find_servers, host_files
from ragcommon.hosts import HOSTS
from ragcommon.text.rules import counted

ADDED, LEFT_OUT = "added", "left out"


def import_servers(run: Invocation) -> int:
    """Exit code 1 if a file cannot be read; the others are imported nevertheless."""
    folder = Path.cwd()
    chosen = run.arguments.host
    file = run.home.config / USER_FILE
    own = read_file(file, ConfigScope.USER)
    results, failures = [], []
    for host, files in host_files(folder).items():
        if chosen not in (None, host):
            continue
        for found in find_servers(host, files, folder):
            if isinstance(found, Unreadable):
                failures.append(describe(found.error))
                continue
            reason = _skip_reason(run, found, own)
            if not reason and found.config is not None:
                write_entry(file, found.name, found.config.entry)
                own[found.name] = found.config
            results.append(_result(found, reason))
    return _print(run, results, failures, file)


def _skip_reason(run: Invocation, found: Found, own: dict[str, ServerConfig]) -> str:
    """Why a server is left out, as a clause; "" if it is added. This may ask the user."""
    if found.config is None or found.obstacle:
        return found.obstacle
    for name, config in own.items():
        if config.entry == found.config.entry:
            return "it is there already" if name == found.name else f"it is there already, as {name}"
    if found.name in own:
        return "there is another server of this name"
    if not found.of_project:
        return ""
    # Other people may have written the files of a project.
    if not run.can_ask:
        return "it comes with the project: run this command on a terminal to agree to it"
    run.console.note(f"{found.file} names the server {found.name}: {found.config.whole}")
    agreed = confirm("Add it for all your chats?")
    return "" if agreed else "it comes with the project, and you did not agree to it"


def _result(found: Found, reason: str) -> dict[str, Any]:
    # Without the command: its arguments may hold a key.
    known = {"name": found.name, "host": found.host, "file": str(found.file)}
    return known | {"status": LEFT_OUT if reason else ADDED, "reason": reason}


def _print(run: Invocation, results: list[dict[str, Any]], failures: list[Failure], file: Path) -> int:
    for failure in failures if not run.console.json else ():
        run.console.failure(failure)
    lines, notes, place = list[str](), list[str](), ""
    for result in results:
        if place != result["file"]:
            place = result["file"]
            lines.append(f"{HOSTS[result['host']].title} ({place}):")
        reason = f": {result['reason']}" if result["reason"] else ""
        lines.append(f"  {result['name']}  {result['status']}{reason}")
    if added := sum(result["status"] == ADDED for result in results):
        notes.append(f"{counted(added, 'server')} added to {file}. `ragchat mcp test` tries them.")
    elif not results and not failures:
        notes.append("No other program has servers in its usual place.")
    document = {"file": str(file), "servers": results}
    return run.console.result(document, *lines, notes=notes, failure=next(iter(failures), None))
