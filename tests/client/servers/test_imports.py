"""The files of other hosts, on each platform, and what of them can be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragchat.arguments.mcp import JSON_HOSTS
from ragchat.servers.imports import Found, Unreadable, find_servers, host_files


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)


def found(folder: Path, host: str, entry: dict[str, Any], key: str = "mcpServers") -> Found:
    """What is found of one server in a file of `host`."""
    file = folder / "theirs.json"
    file.write_text(json.dumps({key: {"a": entry}}))
    [one] = find_servers(host, [file], folder)
    assert isinstance(one, Found)
    return one


def test_every_host_with_a_json_file_has_its_places_on_each_platform(tmp_path: Path) -> None:
    for platform in ("linux", "darwin", "win32"):
        assert {*host_files(tmp_path, {}, platform)} == {*JSON_HOSTS}
    linux = host_files(tmp_path, {}, "linux")
    assert linux["claude-desktop"] == [tmp_path / ".config/Claude/claude_desktop_config.json"]
    assert linux["vscode"][-1] == tmp_path / ".vscode" / "mcp.json"
    mac = host_files(tmp_path, {}, "darwin")["vscode"][0]
    assert mac == tmp_path / "Library/Application Support/Code/User/mcp.json"
    windows = host_files(tmp_path, {"APPDATA": str(tmp_path / "Roaming")}, "win32")["cline"][0]
    assert windows.is_relative_to(tmp_path / "Roaming" / "Code" / "User" / "globalStorage")


def test_comments_and_trailing_commas_do_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(
        '{"theme": "dark", // mine\n "context_servers": {"a": {"command": "x", "args": ["y",],},},}'
    )
    [one] = find_servers("zed", [file], tmp_path)
    assert isinstance(one, Found)
    assert one.config is not None
    assert (one.config.command, one.obstacle) == (("x", "y"), "")


def test_an_entry_that_is_no_text_in_utf_8_is_left_out_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b'{"mcpServers": {"a": {"command": "caf\xe9"}, "b": {"command": "x"}}}')
    broken, good = find_servers("cline", [file], tmp_path)
    assert isinstance(broken, Found)
    assert isinstance(good, Found)
    assert (broken.obstacle, good.obstacle) == ("it is not text in UTF-8", "")


@pytest.mark.parametrize(
    ("host", "key", "entry", "expected"),
    [
        ("vscode", "servers", {"type": "http", "url": "https://a.org"}, {"url": "https://a.org"}),
        ("windsurf", "mcpServers", {"serverUrl": "https://a.org"}, {"url": "https://a.org"}),
        (
            "zed",
            "context_servers",
            {"command": {"path": "x", "args": ["y"]}},
            {"command": "x", "args": ["y"]},
        ),
        (
            "gemini",
            "mcpServers",
            {"command": "x", "env": {"KEY": "$KEY"}, "trust": True},
            {"command": "x", "env": {"KEY": "${KEY}"}},
        ),
        ("cline", "mcpServers", {"command": "x", "autoApprove": ["y"], "disabled": False}, {"command": "x"}),
        (
            "cursor",
            "mcpServers",
            {"command": "x", "env": {"A": "${env:A}"}},
            {"command": "x", "env": {"A": "${env:A}"}},
        ),
    ],
)
def test_the_form_of_each_host_becomes_ours_without_its_permissions(
    tmp_path: Path, host: str, key: str, entry: dict[str, Any], expected: dict[str, Any]
) -> None:
    one = found(tmp_path, host, entry, key)
    assert one.config is not None
    assert (one.config.entry, one.obstacle) == (expected, "")


@pytest.mark.parametrize(
    ("entry", "obstacle"),
    [
        (
            {"command": "x", "env": {"KEY": "${input:key}"}},
            "it uses ${input:key}, which only",
        ),
        (
            {"command": "x", "args": ["${workspaceFolder}"]},
            "it uses ${workspaceFolder}, which only",
        ),
        ({"command": "x", "disabled": True}, "it is disabled there"),
        ({"command": "x", "enabled": False}, "it is disabled there"),
        ({"command": "x", "envFile": ".env"}, "it takes variables from a file (envFile)"),
        ({"settings": {}}, "it needs either a command or a url"),
        ({"command": "/opt/bin/ragmemory"}, "it is this memory itself"),
        ({"command": "python", "args": ["-m", "ragmemory"]}, "it is this memory itself"),
    ],
)
def test_what_cannot_be_used_here_is_explained(tmp_path: Path, entry: dict[str, Any], obstacle: str) -> None:
    assert found(tmp_path, "vscode", entry).obstacle.startswith(obstacle)


def test_a_folder_that_is_called_like_our_server_is_no_reason(tmp_path: Path) -> None:
    assert found(tmp_path, "cursor", {"command": "files", "args": ["/src/ragmemory"]}).obstacle == ""


def test_a_project_s_server_runs_in_the_project_s_folder(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".vscode").mkdir(parents=True)
    file = project / ".vscode" / "mcp.json"
    file.write_text(json.dumps({"servers": {"a": {"command": "x", "args": ["${workspaceFolder}/src"]}}}))
    [one] = find_servers("vscode", [file], project)
    assert isinstance(one, Found)
    assert one.config is not None
    assert (one.of_project, one.obstacle) == (True, "")
    assert one.config.entry == {"command": "x", "args": [f"{project}/src"], "cwd": str(project)}


def test_a_broken_file_does_not_hide_the_others(tmp_path: Path) -> None:
    broken, good = tmp_path / "a.json", tmp_path / "b.json"
    broken.write_text("{oops")
    good.write_text('{"mcpServers": {"b": {"command": "x"}}}')
    first, second = find_servers("cursor", [broken, tmp_path / "none.json", good], tmp_path)
    assert isinstance(first, Unreadable)
    assert isinstance(second, Found)
