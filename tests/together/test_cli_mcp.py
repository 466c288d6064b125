"""`ragchat mcp add|ls|rm|enable|disable|test|login|logout` as a user runs them (`ragchat.commands.mcp`)."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import httpx2
import pytest
from anyio import to_thread

from ragchat.commands.mcp import _lines
from ragchat.servers.managed import ServerState
from tests.support.authorization_server import protected
from tests.support.mcp_process import ENV, SERVER
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    return program_in(tmp_path)


@pytest.mark.smoke
def test_a_server_is_added_tried_listed_and_removed(ragchat: Program) -> None:
    path = f"PYTHONPATH={ENV['PYTHONPATH']}"
    assert ragchat("mcp", "add", "mine", "--env", path, "--", *SERVER).code == 0
    [listed] = ragchat("mcp", "list", "--json").json["servers"]
    assert (listed["name"], listed["scope"], listed["command"]) == ("mine", "user", SERVER)
    [tried] = ragchat("mcp", "test", "mine", "--json").json["servers"]
    assert (tried["state"], "Echo" in tried["tools"]) == ("ready", True)
    assert ragchat("mcp", "remove", "mine").code == 0
    assert ragchat("mcp", "list", "--json").json == {"servers": []}


def test_a_server_is_disabled_and_enabled(ragchat: Program) -> None:
    ragchat("mcp", "add", "mine", "--", *SERVER)
    assert ragchat("mcp", "disable", "mine").out == "mine: disabled\n"
    [listed] = ragchat("mcp", "ls", "--json").json["servers"]
    assert listed["disabled"]
    [tried] = ragchat("mcp", "test", "--json").json["servers"]
    assert tried["state"] == "disabled"
    enabled = ragchat("mcp", "enable", "mine", "--json").json
    assert (enabled["name"], enabled["state"], enabled["disabled"]) == ("mine", "enabled", False)
    assert ragchat("mcp", "enable", "mnie", "--json").json["error"]["code"] == "SERVER_UNKNOWN"
    assert ragchat("mcp", "rm", "mine").code == 0
    assert ragchat("mcp", "ls", "--json").json == {"servers": []}


def test_a_server_of_a_project_is_disabled_without_a_change_of_its_file(ragchat: Program) -> None:
    ragchat("mcp", "add", "theirs", "--scope", "project", "--", *SERVER)
    file = ragchat.folder / ".mcp.json"
    before = file.read_bytes()
    assert ragchat("mcp", "disable", "theirs").out == "theirs: disabled\n"
    assert "disabled" in ragchat("mcp", "ls").out
    assert ragchat("mcp", "enable", "theirs").out == "theirs: waits for your consent\n"
    assert file.read_bytes() == before
    file.write_text(json.dumps({"mcpServers": {"theirs": {"command": "x", "disabled": True}}}))
    done = ragchat("mcp", "enable", "theirs", "--json")
    assert (done.code, ".mcp.json disables theirs." in done.err) == (1, True)
    assert (done.json["state"], done.json["error"]["code"]) == ("disabled", "SERVER_NOT_READY")


def test_a_program_that_is_not_there_is_named_when_its_server_is_added(ragchat: Program) -> None:
    done = ragchat("mcp", "add", "gone", "--", "there-is-no-such-program", "-v")
    assert (done.code, done.out.startswith("Added gone to ")) == (0, True)
    assert "The program there-is-no-such-program is not on your PATH." in done.err
    assert "Install it, or correct its name." in done.err
    done = ragchat("mcp", "add", "path", "--json", "--", "./nothing")
    assert done.json["missing"] == ["There is no program ./nothing. Install it, or correct its name."]
    for words in (SERVER, ["${TOOL}"], ["https://example.org/mcp"]):
        name = words[0].replace("/", "")
        assert ragchat("mcp", "add", name, "--json", "--", *words).json["missing"] == []


def test_a_server_that_does_not_start_fails_the_test_with_its_reason(ragchat: Program) -> None:
    ragchat("mcp", "add", "gone", "--", "there-is-no-such-program")
    done = ragchat("mcp", "test")
    assert done.code == 1
    assert "there is no such program" in done.out
    told = ragchat("mcp", "test", "--json")
    assert (told.code, told.json["error"]) == (1, told.json["servers"][0]["error"])


def test_a_server_that_waits_for_consent_fails_the_test_with_what_to_do(ragchat: Program) -> None:
    ragchat("mcp", "add", "theirs", "--scope", "project", "--", *SERVER)
    told = ragchat("mcp", "test", "--json")
    assert told.code == 1
    assert told.json["error"] == {
        "code": "SERVER_NOT_READY",
        "message": "theirs: waits for your consent.",
        "hint": "On a terminal, `ragchat mcp test theirs` shows its command and asks you.",
    }


def test_one_tool_is_counted_as_one_and_those_left_out_are_named() -> None:
    tried = {"name": "calc", "state": ServerState.READY, "tools": ["add"], "left_out": ["The tool x is …"]}
    assert [*_lines(tried)] == ["calc: 1 tool: add", "  The tool x is …"]


def test_names_that_are_taken_or_unknown_are_refused(ragchat: Program) -> None:
    assert ragchat("mcp", "add", "web", "https://example.org/mcp").code == 0
    taken = ragchat("mcp", "add", "web", "--json", "--", "x")
    assert (taken.code, taken.json["error"]["code"]) == (1, "SERVER_EXISTS")
    reserved = ragchat("mcp", "add", "ragmemory", "--json", "--", "x")
    assert (reserved.code, reserved.json["error"]["code"]) == (1, "SERVER_NAME_RESERVED")
    unknown = ragchat("mcp", "remove", "wbe", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (1, "SERVER_UNKNOWN")
    assert ragchat("mcp", "add", "x", "--env", "no value", "--", "y").code == 2


def test_an_address_that_is_not_http_is_wrong_usage(ragchat: Program) -> None:
    done = ragchat("mcp", "add", "files", "ftp://example.org")
    assert (done.code, "is not the address of a server" in done.err) == (2, True)


def test_a_variable_for_an_address_and_a_header_for_a_command_are_wrong_usage(ragchat: Program) -> None:
    done = ragchat("mcp", "add", "web", "https://example.org/mcp", "--env", "A=1")
    assert (done.code, "--env belongs to a command" in done.err) == (2, True)
    done = ragchat("mcp", "add", "mine", "--header", "X: y", "--", "x")
    assert (done.code, "--header belongs to a URL" in done.err) == (2, True)
    assert ragchat("mcp", "ls", "--json").json["servers"] == []


def test_a_name_with_a_space_is_quoted_in_the_command_to_try(ragchat: Program) -> None:
    assert "`ragchat mcp test 'my notes'`" in ragchat("mcp", "add", "my notes", "--", "x").out


def test_what_else_is_in_the_file_is_kept_and_a_secret_is_never_printed(ragchat: Program) -> None:
    file = ragchat.home / "config" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"inputs": [1], "mcpServers": {"a": {"command": "x", "extra": True}}}))
    url = "https://example.org/mcp"
    added = ragchat("mcp", "add", "web", f"{url}?key=s3cret", "--header", "X: s3cret", "--json")
    assert (added.code, added.json["url"]) == (0, url)
    kept = json.loads(file.read_text())
    assert (kept["inputs"], kept["mcpServers"]["a"]["extra"]) == ([1], True)
    assert kept["mcpServers"]["web"]["headers"] == {"X": "s3cret"}
    listed = ragchat("mcp", "list")
    assert "s3cret" not in added.out + listed.out + ragchat("mcp", "list", "--json").out
    if os.name == "posix":
        assert stat.S_IMODE((ragchat.home / "config" / "mcp.json").stat().st_mode) & 0o077 in (0, 0o044)


def test_a_server_of_a_project_is_not_started_without_consent(ragchat: Program) -> None:
    marker = ragchat.folder / "started"
    command = ["python3", "-c", f"open({str(marker)!r}, 'w')"]
    assert ragchat("mcp", "add", "theirs", "--scope", "project", "--", *command).code == 0
    assert (ragchat.folder / ".mcp.json").is_file()
    done = ragchat("mcp", "test")
    assert done.code == 1
    assert "waits for your consent" in done.out
    assert "On a terminal, `ragchat mcp test theirs` shows its command and asks you." in done.out
    assert not marker.exists()


def test_a_broken_file_is_named_and_left_as_it_is(ragchat: Program) -> None:
    file = ragchat.home / "config" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text("{oops")
    done = ragchat("mcp", "add", "a", "--json", "--", "x")
    assert (done.code, done.json["error"]["code"]) == (1, "SERVER_CONFIG_INVALID")
    assert file.read_text() == "{oops"


def test_a_recipe_is_one_command_and_names_a_key_without_its_value(ragchat: Program) -> None:
    ragchat.environ["TAVILY_API_KEY"] = "s3cret-key"
    done = ragchat("mcp", "add", "--recipe", "web-search", "--json")
    assert (done.code, done.json["name"]) == (0, "web-search")
    stored = (ragchat.home / "config" / "mcp.json").read_text()
    assert "${TAVILY_API_KEY}" in stored
    assert "s3cret-key" not in stored + done.out + done.err


def test_a_recipe_may_have_another_name_and_folders(ragchat: Program) -> None:
    notes = ragchat.folder / "notes"
    notes.mkdir()
    assert ragchat("mcp", "add", "mine", "--recipe", "files", "notes").code == 0
    [listed] = ragchat("mcp", "list", "--json").json["servers"]
    assert (listed["name"], listed["command"][-1]) == ("mine", str(notes.resolve()))
    assert ragchat("mcp", "add", "--recipe", "files", "--json").json["error"]["code"] == "RECIPE_FOLDERS"


def test_what_a_recipe_still_needs_is_said(ragchat: Program) -> None:
    done = ragchat("mcp", "add", "--recipe", "github")
    assert done.code == 0
    assert "GITHUB_TOKEN is not set. Make a token at https://github.com" in done.err


def test_a_server_whose_program_is_missing_says_how_to_get_it(ragchat: Program) -> None:
    ragchat.environ["PATH"] = str(ragchat.folder)
    ragchat("mcp", "add", "--recipe", "git")
    done = ragchat("mcp", "test", "git")
    assert done.code == 1
    assert "The server `uvx mcp-server-git` did not start: there is no such program." in done.out
    assert "Install uv: https://docs.astral.sh/uv" in done.out


def test_recipes_are_listed_and_unknown_ones_refused(ragchat: Program) -> None:
    listed = ragchat("mcp", "add", "--recipe", "--json").json["recipes"]
    needs = {one["name"]: one["needs"] for one in listed}
    assert {"web-search", "github", "files", "git", "fetch"} <= {*needs}
    assert needs["web-search"] == ["npx", "TAVILY_API_KEY"]
    assert needs["files"] == ["npx", "folders"]
    assert "search the web" in ragchat("mcp", "add", "--recipe").out
    assert ragchat("mcp", "add", "--recipe", "gitt", "--json").json["error"]["code"] == "RECIPE_UNKNOWN"
    assert ragchat("mcp", "add").code == 2
    assert ragchat("mcp", "add", "a", "--recipe", "git", "--", "x").code == 2


def test_a_server_on_this_machine_needs_no_login(ragchat: Program) -> None:
    ragchat("mcp", "add", "mine", "--", *SERVER)
    assert ragchat("mcp", "login", "mine").out == "mine runs on this machine: it needs no login.\n"
    assert ragchat("mcp", "login", "mine", "--json").json == {"name": "mine", "url": ""}


async def test_a_server_that_wants_a_login_says_how(ragchat: Program) -> None:
    async with protected() as server:
        ragchat("mcp", "add", "remote", f"{server.url}/mcp")
        done = await to_thread.run_sync(ragchat, "mcp", "test")
    assert done.code == 1
    assert "wants you to log in" in done.out
    assert "`ragchat mcp login remote`" in done.out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
async def test_a_login_elsewhere_is_pasted_used_and_forgotten(ragchat: Program) -> None:
    async with protected() as server:
        ragchat("mcp", "add", "remote", f"{server.url}/mcp")
        await to_thread.run_sync(log_in_elsewhere, ragchat)
        assert (await to_thread.run_sync(ragchat, "mcp", "test")).code == 0
        assert ragchat("mcp", "logout", "remote", "--json").json == {"name": "remote", "logged_out": True}
        assert (await to_thread.run_sync(ragchat, "mcp", "test")).code == 1
    assert "not logged in" in ragchat("mcp", "logout", "remote").out


def log_in_elsewhere(ragchat: Program) -> None:
    """On a terminal of a machine without a browser."""
    from tests.support.terminal import Terminal

    command = [sys.executable, "-m", "ragchat", "mcp", "login", "remote"]
    variables = ragchat.variables | {"TERM": "xterm", "BROWSER": "true"}
    with Terminal(command, variables, ragchat.folder, columns=1000) as terminal:
        terminal.wait_for("paste that whole address here:")  # Before, the address may be there in part.
        page = terminal.wait_for(r"http://\S+/authorize\?\S+")[0]
        terminal.enter(httpx2.get(page, trust_env=False, timeout=LONGEST_SECONDS).headers["location"])
        terminal.wait_for("remote can be used now")
        assert terminal.wait_for_end() == 0
