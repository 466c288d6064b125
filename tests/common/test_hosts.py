"""The blocks for other hosts, read as these hosts read them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ragcommon.hosts import HOSTS, reached, started, write

PARSERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "yaml": msgspec.yaml.decode,
    "toml": tomllib.loads,
}
COMMAND = ["C:\\Program Files\\rag\\ragmemory.exe", "--memory", '/home/zoë/"quoted": #1 😀/{a}.db']
ENVIRON = {"RAGCHAT_HOME": "/home/zoë/it's: here"}
STARTED = {"command": "ragmemory", "args": ["-v"], "env": {"A": "b"}}
URL = "http://127.0.0.1:8765/mcp"


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_what_is_written_is_read_as_it_was_meant(host: Any) -> None:
    for settings in (
        started(host, COMMAND, ENVIRON),
        started(host, COMMAND, {}),
        reached(host, URL, COMMAND, token=False),
        reached(host, URL, COMMAND, token=True, token_file="t"),
    ):
        assert PARSERS[host.format](write(settings, host.format)) == settings


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "goose",
            {
                "extensions": {
                    "ragmemory": {
                        "type": "stdio",
                        "name": "ragmemory",
                        "enabled": True,
                        "timeout": 300,
                        "cmd": "ragmemory",
                        "args": ["-v"],
                        "envs": {"A": "b"},
                    }
                }
            },
        ),
        (
            "zed",
            {"context_servers": {"ragmemory": STARTED}},
        ),
        (
            "continue",
            {
                "name": "ragmemory",
                "version": "1.0.0",
                "schema": "v1",
                "mcpServers": [
                    {
                        "name": "ragmemory",
                        "type": "stdio",
                        "command": "ragmemory",
                        "args": ["-v"],
                        "env": {"A": "b"},
                    }
                ],
            },
        ),
        (
            "codex",
            {"mcp_servers": {"ragmemory": STARTED}},
        ),
    ],
)
def test_a_host_that_has_its_own_form_gets_it(name: str, settings: dict[str, Any]) -> None:
    assert started(HOSTS[name], ["ragmemory", "-v"], {"A": "b"}) == settings


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        (
            "goose",
            {
                "type": "streamable_http",
                "name": "ragmemory",
                "enabled": True,
                "timeout": 300,
                "uri": URL,
                "headers": {"Authorization": "Bearer ${RAGMEMORY_TOKEN}"},
                "env_keys": ["RAGMEMORY_TOKEN"],
            },
        ),
        ("zed", {"url": URL, "headers": {"Authorization": "Bearer PUT-THE-TOKEN-HERE"}}),
        ("windsurf", {"serverUrl": URL, "headers": {"Authorization": "Bearer ${env:RAGMEMORY_TOKEN}"}}),
        ("lmstudio", {"url": URL, "headers": {"Authorization": "Bearer PUT-THE-TOKEN-HERE"}}),
        ("gemini", {"httpUrl": URL, "headers": {"Authorization": "Bearer ${RAGMEMORY_TOKEN}"}}),
        ("codex", {"url": URL, "bearer_token_env_var": "RAGMEMORY_TOKEN"}),
    ],
)
def test_the_token_is_referred_to_as_the_host_reads_it(name: str, entry: dict[str, Any]) -> None:
    host = HOSTS[name]
    assert reached(host, URL, COMMAND, token=True)[host.key] == {"ragmemory": entry}


def test_without_a_token_nothing_asks_for_one() -> None:
    for host in HOSTS.values():
        assert "token" not in write(reached(host, URL, COMMAND, token=False), host.format).lower()
