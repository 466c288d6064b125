"""A repository's own memory and running servers, as a user meets them on the command line.

Covers `ragchat.servers.memory.repository`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.http_memory import http_memory
from tests.support.program import Program, program_in


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    """Works in a git repository with two documents."""
    program = program_in(tmp_path)
    subprocess.run(["git", "init", "--quiet", str(program.folder)], check=True)
    (program.folder / "src").mkdir()
    (program.folder / "tea.md").write_text("Green tea is brewed at 75 degrees.\n", "utf-8")
    (program.folder / "src" / "coffee.md").write_text("Espresso is pressed at nine bar.\n", "utf-8")
    return program


def below(program: Program, name: str) -> Program:
    return Program(program.home, program.folder / name, program.environ)


def memory_of(program: Program) -> str:
    return str(program("memory", "stats", "--json").json["path"])


def test_loading_a_whole_repository_makes_its_memory_and_says_so(ragchat: Program, tmp_path: Path) -> None:
    own = ragchat.folder / ".ragchat" / "memory.db"
    usual = tmp_path / "home" / "data" / "memory.db"
    done = ragchat("inject", ".")
    assert (done.code, done.out) == (0, "2 added (2 chunks).\n")
    assert done.err == f"This repository has its own memory now: {own} (ignored by git).\n"
    assert (ragchat.folder / ".ragchat" / ".gitignore").read_text("utf-8") == "*\n"
    assert ragchat("inject", ".").err == ""
    # It is used from anywhere in the repository, and nowhere else.
    for folder in (ragchat, below(ragchat, "src")):
        assert memory_of(folder) == str(own)
        assert folder("query", "espresso").out.startswith("[1] ")
        assert f"memory file    {own}" in folder("doctor").out
    elsewhere = Program(ragchat.home, tmp_path, ragchat.environ)
    assert memory_of(elsewhere) == str(usual)
    assert elsewhere("query", "espresso").out == ""
    # From elsewhere, too, the whole repository goes to its own memory.
    (ragchat.folder / "mate.md").write_text("Mate is drunk through a straw.\n", "utf-8")
    loaded = elsewhere("inject", str(ragchat.folder))
    assert "1 added" in loaded.out
    assert (
        loaded.err
        == elsewhere("inject", str(ragchat.folder)).err
        == (
            f"Only questions in {ragchat.folder} use this repository's memory; "
            f"elsewhere `ragchat --memory {own}` does.\n"
        )
    )
    assert elsewhere("--memory", str(own), "query", "mate").out.startswith("[1] ")
    assert elsewhere("query", "mate").out == ""
    assert ragchat("query", "mate").out.startswith("[1] ")


def test_loading_a_part_of_a_repository_makes_none(ragchat: Program, tmp_path: Path) -> None:
    for words in (("src",), ("tea.md",), (".", "src"), ("-",)):
        assert ragchat("inject", *words, stdin="text").code == 0
    assert not (ragchat.folder / ".ragchat").exists()
    assert memory_of(ragchat) == str(tmp_path / "home" / "data" / "memory.db")


def test_a_memory_that_the_user_names_wins(ragchat: Program, tmp_path: Path) -> None:
    named = str(tmp_path / "named.db")
    assert ragchat("inject", ".", "--memory", named).err == ""
    assert not (ragchat.folder / ".ragchat").exists()
    ragchat("inject", ".")
    assert memory_of(ragchat) == str(ragchat.folder / ".ragchat" / "memory.db")
    by_variable = Program(ragchat.home, ragchat.folder, {"RAGCHAT_MEMORY": named})
    assert memory_of(by_variable) == named


@pytest.mark.smoke
def test_ragmemory_uses_it_as_well(ragchat: Program) -> None:
    ragchat("inject", ".")
    shown = below(ragchat, "src")("mcp", "config", "vscode")
    assert str(ragchat.folder / ".ragchat" / "memory.db") in shown.out
    request = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "Query", "arguments":'
    request += b' {"query": "espresso"}, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",'
    request += b' "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},'
    request += b' "io.modelcontextprotocol/clientCapabilities": {}}}}\n'
    done = subprocess.run(
        [sys.executable, "-m", "ragmemory"],
        input=request,
        capture_output=True,
        cwd=ragchat.folder / "src",
        env=ragchat.variables,
        check=True,
    )
    assert b"coffee.md" in done.stdout


def test_a_file_there_that_is_no_memory_is_said_to_be_none(ragchat: Program) -> None:
    (ragchat.folder / ".ragchat").mkdir()
    (ragchat.folder / ".ragchat" / "memory.db").write_text("a text" * 1000, "utf-8")
    done = ragchat("query", "tea")
    assert done.code == 1
    assert "left as it is" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_memory_that_leads_out_of_the_repository_is_refused(ragchat: Program, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (ragchat.folder / ".ragchat").symlink_to(tmp_path / "theirs")
    done = ragchat("inject", ".")
    assert done.code == 1
    assert "is a link that leads out of the repository" in done.err
    assert list((tmp_path / "theirs").iterdir()) == []


# Running servers


def test_doctor_says_which_server_is_used(ragchat: Program, tmp_path: Path) -> None:
    memory = ("--memory", str(tmp_path / "memory.db"))
    assert "a process of our own, started in" in ragchat("doctor", *memory).out
    with http_memory(tmp_path, RAGCHAT_HOME=str(ragchat.home)) as server:
        # On a busy machine a found server may answer too late to be used.
        attempts = (ragchat("doctor", *memory).out for _ in range(10))
        found = next(text for text in attempts if "a process of our own" not in text)
        named = ragchat("doctor", "--server", server.url).out
    for shown in (found, named):
        assert f"the one that runs at {server.root}, ready in" in shown


def test_a_named_server_that_is_not_there_is_said(ragchat: Program) -> None:
    done = ragchat("query", "tea", "--server", "http://127.0.0.1:9")
    assert done.code == 1
    assert "The server at http://127.0.0.1:9/mcp cannot be reached" in done.err


def test_a_memory_and_a_server_cannot_both_be_named(ragchat: Program) -> None:
    for words in (
        ("query", "tea", "--memory", "m.db", "--server", "http://127.0.0.1:8765"),
        ("--memory", "m.db", "query", "tea", "--server", "http://127.0.0.1:8765"),
        ("serve", "--server", "http://127.0.0.1:8765"),
        ("query", "tea", "--server", "8765"),
    ):
        done = ragchat(*words)
        assert (done.code, done.out) == (2, "")


def test_a_named_memory_wins_over_the_server_of_the_settings(ragchat: Program, tmp_path: Path) -> None:
    (ragchat.home / "config").mkdir(parents=True)
    (ragchat.home / "config" / "config.toml").write_text(
        '[memory_server]\nurl = "http://127.0.0.1:9"\n', "utf-8"
    )
    assert ragchat("memory", "stats").code == 1
    named = str(tmp_path / "named.db")
    assert ragchat("memory", "stats", "--memory", named, "--json").json["path"] == named
    assert ragchat("inject", ".").code == 1
    assert not (ragchat.folder / ".ragchat").exists()


def test_a_script_with_a_memory_of_its_own_leaves_a_named_server_alone(
    ragchat: Program, tmp_path: Path
) -> None:
    (ragchat.folder / "script.toml").write_text('[script]\n[[step]]\ninject = "src"\n', "utf-8")
    with http_memory(tmp_path, RAGCHAT_HOME=str(ragchat.home)) as server:
        with_server = Program(ragchat.home, ragchat.folder, {"RAGCHAT_MEMORY_SERVER_URL": server.url})
        assert with_server("run", "script.toml").code == 0
        assert with_server("memory", "stats", "--json").json["documents"] == 0


def test_serving_a_memory_that_is_served_already_starts_another_server(
    ragchat: Program, tmp_path: Path
) -> None:
    environ = {**ragchat.variables, "RAGCHAT_MEMORY_SERVER_URL": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "ragchat", "serve", "--memory", str(tmp_path / "memory.db")]
    with (
        http_memory(tmp_path, RAGCHAT_HOME=str(ragchat.home)) as first,
        http_memory(tmp_path, command=command, **environ) as second,
    ):
        assert first.url != second.url
        assert second.process.poll() is None


def test_the_block_for_an_editor_needs_no_path_of_a_repository(ragchat: Program, tmp_path: Path) -> None:
    for folder in (ragchat, Program(ragchat.home, tmp_path, ragchat.environ)):
        done = folder("mcp", "config", "vscode", "--repository")
        [server] = done.json["servers"].values()
        assert (server["args"][-1], server["cwd"]) == ("--repository", "${workspaceFolder}")
        assert str(ragchat.folder) not in done.out
    other = ragchat("mcp", "config", "cursor", "--repository")
    assert other.json["mcpServers"]["ragmemory"]["args"][-1] == "--repository"
    assert "must start the server in a folder of the repository" in other.err
    for words in (("--memory", "m.db"), ("--url", "http://127.0.0.1:8765")):
        assert ragchat("mcp", "config", "cursor", "--repository", *words).code == 2
