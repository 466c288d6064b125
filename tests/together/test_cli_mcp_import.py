"""`ragchat mcp import` as a user runs it (`ragchat.commands.mcp_import`)."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, program_in

if sys.platform == "win32":
    pytest.skip("HOME moves the home folder on POSIX only", allow_module_level=True)

from tests.support.terminal import Terminal


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    people = tmp_path / "people"
    people.mkdir()
    return program_in(tmp_path, HOME=str(people), XDG_CONFIG_HOME=str(people / ".config"))


def write(file: Path, servers: dict[str, Any], key: str = "mcpServers") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({key: servers}))


def own(ragchat: Program) -> dict[str, Any]:
    servers: dict[str, Any] = json.loads((ragchat.home / "config" / "mcp.json").read_text())["mcpServers"]
    return servers


def statuses(document: Any) -> dict[str, str]:
    return {server["name"]: server["status"] for server in document["servers"]}


@pytest.mark.smoke
def test_servers_are_copied_once_and_their_secrets_are_never_printed(ragchat: Program) -> None:
    home = Path(ragchat.environ["HOME"])
    entry = {"command": "x", "args": ["--key", "s3cret-one"], "env": {"KEY": "s3cret-two"}}
    write(home / ".cursor" / "mcp.json", {"search": entry, "off": {"command": "y", "disabled": True}})
    write(home / ".codeium" / "windsurf" / "mcp_config.json", {"same": entry, "search": {"command": "z"}})
    write(home / ".lmstudio" / "mcp.json", {"ragmemory": {"command": "/opt/ragmemory"}})
    first = ragchat("mcp", "import")
    assert first.code == 0, first.err
    assert "off  left out: it is disabled there" in first.out
    assert "same  left out: it is there already, as search" in first.out
    assert "search  left out: there is another server of this name" in first.out
    assert "ragmemory  left out" in first.out
    assert "s3cret" not in first.out + first.err
    assert own(ragchat) == {"search": entry}
    assert stat.S_IMODE((ragchat.home / "config" / "mcp.json").stat().st_mode) == 0o600
    again = ragchat("mcp", "import", "--json")
    assert (again.code, {*statuses(again.json).values()}) == (0, {"left out"})
    assert "s3cret" not in again.out


def test_one_host_can_be_chosen(ragchat: Program) -> None:
    home = Path(ragchat.environ["HOME"])
    write(home / ".cursor" / "mcp.json", {"a": {"command": "x"}})
    write(home / ".lmstudio" / "mcp.json", {"b": {"command": "y"}})
    assert statuses(ragchat("mcp", "import", "lmstudio", "--json").json) == {"b": "added"}
    assert ragchat("mcp", "import", "goose").code == 2


def test_a_broken_file_fails_the_command_and_the_others_are_imported(ragchat: Program) -> None:
    home = Path(ragchat.environ["HOME"])
    write(home / ".cursor" / "mcp.json", {"a": {"command": "x"}})
    (home / ".lmstudio").mkdir()
    (home / ".lmstudio" / "mcp.json").write_text("{oops")
    done = ragchat("mcp", "import", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "SERVER_CONFIG_INVALID")
    assert statuses(done.json) == {"a": "added"}
    assert "No other program" not in ragchat("mcp", "import", "lmstudio").err


def test_servers_of_a_project_need_the_user_s_word(ragchat: Program) -> None:
    write(ragchat.folder / ".vscode" / "mcp.json", {"theirs": {"command": "run-me"}}, "servers")
    unasked = ragchat("mcp", "import", "--json").json["servers"][0]
    assert unasked["status"] == "left out"
    assert "on a terminal" in unasked["reason"]
    command = [sys.executable, "-m", "ragchat", "mcp", "import", "vscode"]
    environ = ragchat.variables | {"TERM": "xterm"}
    with Terminal(command, environ, ragchat.folder, columns=200) as terminal:
        terminal.wait_for(r"\[y/N\]")
        terminal.enter("n")
        terminal.wait_for("theirs  left out: it comes with the project, and you did not agree to it")
        assert terminal.wait_for_end() == 0
    with Terminal(command, environ, ragchat.folder, columns=200) as terminal:
        terminal.wait_for("names the server theirs: run-me")
        terminal.wait_for(r"\[y/N\]")
        terminal.enter("y")
        assert terminal.wait_for_end() == 0
    assert own(ragchat) == {"theirs": {"command": "run-me", "cwd": str(ragchat.folder.resolve())}}
