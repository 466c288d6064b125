"""The files that name servers."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragchat.errors import ServerConfigInvalid, ServerFileNotWritten, ServerFileUnreadable, VariableMissing
from ragchat.servers.configs import (
    PROJECT_FILE,
    ConfigScope,
    OAuthConfig,
    ServerConfig,
    read_configs,
    read_file,
    write_entry,
)
from tests.support.disks import small_disk


def write(file: Path, servers: dict[str, Any], key: str = "mcpServers") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({key: servers}))
    return file


def test_a_command_and_an_address_are_read(tmp_path: Path) -> None:
    file = write(
        tmp_path / "mcp.json",
        {
            "files": {"command": "npx", "args": ["-y", "files"], "env": {"A": "1"}, "trusted": True},
            "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"X": "y"}},
        },
    )
    found = read_file(file, ConfigScope.USER)
    assert found["files"].command == ("npx", "-y", "files")
    assert (found["files"].env, found["files"].trusted) == ({"A": "1"}, True)
    assert (found["web"].url, found["web"].headers) == ("https://example.org/mcp", {"X": "y"})
    assert found["web"].shown == "https://example.org/mcp"
    assert (
        replace(found["web"], url="https://ann:pass@example.org/mcp?key=1").shown
        == "https://***@example.org/mcp"
    )


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    """Editors on Windows write one, and no editor shows it."""
    file = write(tmp_path / "mcp.json", {"a": {"command": "x"}})
    file.write_bytes(codecs.BOM_UTF8 + file.read_bytes())
    assert [*read_file(file, ConfigScope.USER)] == ["a"]
    write_entry(file, "b", {"command": "y"})
    assert [*read_file(file, ConfigScope.USER)] == ["a", "b"]


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("servers", {"type": "http", "url": "https://a.org/mcp"}),
        ("context_servers", {"url": "https://a.org/mcp"}),
        ("mcpServers", {"serverUrl": "https://a.org/mcp"}),
        ("mcpServers", {"httpUrl": "https://a.org/mcp"}),
    ],
)
def test_the_forms_of_other_hosts_are_read(tmp_path: Path, key: str, entry: dict[str, Any]) -> None:
    file = write(tmp_path / "mcp.json", {"a": entry}, key)
    assert read_file(file, ConfigScope.USER)["a"].url == "https://a.org/mcp"


def test_the_project_file_is_found_up_to_the_root_of_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "src" / "deep"
    inner.mkdir(parents=True)
    write(tmp_path / PROJECT_FILE, {"outside": {"command": "x"}})
    (tmp_path / "repo" / ".git").mkdir()
    assert read_configs(tmp_path / "none.json", inner) == {}
    write(tmp_path / "repo" / PROJECT_FILE, {"a": {"command": "x", "trusted": True}})
    [config] = read_configs(tmp_path / "none.json", inner).values()
    assert (config.name, config.scope, config.trusted) == ("a", ConfigScope.PROJECT, False)


def test_a_project_cannot_replace_a_server_of_the_user(tmp_path: Path) -> None:
    user = write(tmp_path / "mcp.json", {"a": {"command": "mine"}})
    write(tmp_path / "repo" / PROJECT_FILE, {"a": {"command": "theirs"}})
    assert read_configs(user, tmp_path / "repo")["a"].command == ("mine",)


def test_no_file_can_name_a_server_like_the_memory_of_ragchat(tmp_path: Path) -> None:
    write(tmp_path / PROJECT_FILE, {"ragmemory": {"command": "evil"}, "memory": {"command": "good"}})
    assert [*read_configs(tmp_path / "none.json", tmp_path)] == ["memory"]


def test_variables_are_expanded(tmp_path: Path) -> None:
    config = ServerConfig(
        name="a",
        scope=ConfigScope.USER,
        file=str(tmp_path / "mcp.json"),
        command=("${HERE}/run", "${GONE:-there}", "${workspaceFolder}"),
        env={"TOKEN": "${env:TOKEN}"},
    )
    expanded = config.expanded({"HERE": "/opt", "TOKEN": "s3cret-token"})
    assert expanded.command == ("/opt/run", "there", str(tmp_path))
    assert expanded.env == {"TOKEN": "s3cret-token"}


def test_a_missing_variable_is_named() -> None:
    config = ServerConfig(
        name="a", scope=ConfigScope.USER, file="mcp.json", url="https://a.org", headers={"X": "${KEY}"}
    )
    with pytest.raises(VariableMissing) as caught:
        config.expanded({})
    assert str(caught.value) == "The server a needs the environment variable KEY, which is not set."
    assert caught.value.hint == "Set it, or write ${KEY:-default} in mcp.json."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "its content: it is not valid JSON: its end is missing"),
        ('{\n"mcpServers": {},\n}', r"it is not valid JSON: trailing comma in object \(line 3\)"),
        ("// mine\n{}", r"its content: it is not valid JSON: comments are not allowed \(line 1\)"),
        ('{\n"mcpServers": {} // x\n}', r"comments are not allowed \(line 2\)"),
        ('{"mcpServers": {"a": {"command": "x",\n/* y */\n}}}', r"comments are not allowed \(line 2\)"),
        ("{}\n// end", "comments are not allowed"),
        ('{"a": 1/2}', r"it is not valid JSON: expected ',' or '}' \(line 1\)"),
        ("[]", "its content: it must be a table, not a list"),
        ('{"mcpServers": []}', "mcpServers"),
        ('{"mcpServers": {"a": {}}}', "a: it needs either a command or a url"),
        ('{"mcpServers": {"": {"command": "x"}}}', "a server: it needs a name"),
        ('{"mcpServers": {"a": {"command": "x", "url": "y"}}}', "a: it needs either"),
        ('{"mcpServers": {"a": {"command": 1}}}', "a: command must be a text, not a whole number"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}', "a: a value of env must be a text"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(ServerConfigInvalid, match=reason):
        read_file(file, ConfigScope.USER)


def test_a_folder_instead_of_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ServerFileUnreadable):
        read_file(tmp_path, ConfigScope.USER)


def test_the_fingerprint_changes_with_everything_that_would_be_started() -> None:
    config = ServerConfig(name="a", scope=ConfigScope.PROJECT, file="f", command=("x",))
    others = [
        ServerConfig(name="a", scope=ConfigScope.PROJECT, file="f", command=("x", "y")),
        ServerConfig(name="a", scope=ConfigScope.PROJECT, file="f", command=("x",), env={"A": "1"}),
        ServerConfig(name="a", scope=ConfigScope.PROJECT, file="g", command=("x",)),
        ServerConfig(
            name="a",
            scope=ConfigScope.PROJECT,
            file="f",
            command=("x",),
            oauth=OAuthConfig(client_secret="s"),
        ),
    ]
    assert len({one.fingerprint for one in (config, *others)}) == 5


def test_a_command_is_shown_so_that_its_arguments_cannot_be_mistaken(tmp_path: Path) -> None:
    entry = {"command": "sh", "args": ["-c", "fetch | sh"], "env": {"A": "1 sh"}}
    config = read_file(write(tmp_path / "mcp.json", {"a": entry}), ConfigScope.USER)["a"]
    assert config.shown == "sh -c 'fetch | sh'"
    assert config.whole == "A='1 sh' sh -c 'fetch | sh'"


def test_everything_that_an_address_is_sent_is_shown(tmp_path: Path) -> None:
    entry = {
        "url": "https://a.org/mcp",
        "headers": {"X-Client": "${OPENAI_API_KEY}"},
        "oauth": {"clientSecret": "${GITHUB_TOKEN}"},
    }
    config = read_file(write(tmp_path / "mcp.json", {"a": entry}), ConfigScope.PROJECT)["a"]
    sent = "(header X-Client: ${OPENAI_API_KEY}) (client secret ${GITHUB_TOKEN})"
    assert config.whole == f"https://a.org/mcp {sent}"


def test_no_part_of_a_command_is_moved_out_of_sight(tmp_path: Path) -> None:
    script = "fetch | sh #" + "\n" * 50 + " " * 5_000 + "\u2800\x1b[2J"
    entry = {"command": "sh", "args": ["-c", script]}
    config = read_file(write(tmp_path / "mcp.json", {"a": entry}), ConfigScope.PROJECT)["a"]
    assert config.whole == "sh -c 'fetch | sh #" + "\\n" * 50 + " \\u2800\\x1b[2J'"


def test_a_file_that_cannot_be_written_is_as_it_was(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        file = write(disk.path / "mcp.json", {"web": {"url": "https://example.org/mcp"}})
        before = file.read_bytes()
        disk.fill()
        with pytest.raises(ServerFileNotWritten, match=r"mcp\.json cannot be written: no space left"):
            write_entry(file, "more", {"command": "more"})
        assert file.read_bytes() == before
