"""How the memory server is started."""

from __future__ import annotations

import json
import sys
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ragchat.servers.memory.process import OWN_PREFIXES, command, environment
from ragchat.servers.memory.server import open_memory
from tests.support.program import program_in
from tests.support.turns import settings_in

LOCAL = {
    "RAGCHAT_EMBEDDER_KIND": "local",
    "RAGCHAT_EMBEDDER_MODEL": "",
    "RAGCHAT_EMBEDDER_BASE_URL": "",
    "RAGCHAT_INDEX_URL": "",
    "RAGCHAT_MEMORY_READ_ONLY": "false",
}
SECRETS = {
    "OPENAI_API_KEY": "sk-model",
    "ANTHROPIC_API_KEY": "sk-other",
    "AWS_SECRET_ACCESS_KEY": "other",
    "RAGMEMORY_TOKEN": "token",
    "RAGCHAT_MODEL_BASE_URL": "http://me:password@host/v1",
}
NEEDED = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "LD_LIBRARY_PATH": "/lib",
    "SSL_CERT_FILE": "/certificates.pem",
    "https_proxy": "http://proxy",
    "SystemRoot": "C:\\Windows",
    "PYTHONPATH": "/modules",
    "RAGCHAT_HOME": "/ragchat",
    "RAGCHAT_MEMORY": "/m.db",
    "RAGCHAT_MEMORY_UNDO_DEPTH": "5",
    "RAGCHAT_EMBEDDER_BATCH": "5",
}


def test_the_server_gets_the_memory_the_settings_file_and_the_wish_for_more_log(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, memory__path=str(tmp_path / "m.db"))
    words = command(replace(settings, config_file=tmp_path / "c.toml", verbose=True))
    assert words[words.index("--memory") + 1] == str(tmp_path / "m.db")
    assert words[words.index("--config") + 1] == str(tmp_path / "c.toml")
    assert "-v" in words
    assert "-v" not in command(settings)


def test_the_server_gets_the_environment_it_needs_and_no_secret(tmp_path: Path) -> None:
    assert environment(settings_in(tmp_path), NEEDED | SECRETS) == NEEDED | LOCAL


def test_an_embedder_that_uses_the_models_key_gets_it(tmp_path: Path) -> None:
    openai = {"OPENAI_API_KEY": "sk-model", "OPENAI_BASE_URL": "http://host/v1"}
    remote = LOCAL | {"RAGCHAT_EMBEDDER_KIND": "openai"}
    settings = settings_in(tmp_path, embedder__kind="openai")
    assert environment(settings, NEEDED | SECRETS | openai) == NEEDED | openai | remote
    settings = settings_in(tmp_path, embedder__kind="openai", embedder__key_file="key")
    assert environment(settings, NEEDED | openai) == NEEDED | {"OPENAI_BASE_URL": "http://host/v1"} | remote


def test_a_server_that_downloads_models_learns_from_where(tmp_path: Path) -> None:
    mirror = {"HF_ENDPOINT": "https://mirror.example", "HF_HUB_OFFLINE": "1"}
    assert environment(settings_in(tmp_path), NEEDED | mirror) == NEEDED | LOCAL
    settings = settings_in(tmp_path, embedder__kind="fastembed")
    downloading = LOCAL | {"RAGCHAT_EMBEDDER_KIND": "fastembed"}
    assert environment(settings, NEEDED | mirror) == NEEDED | mirror | downloading


def test_every_table_of_the_memorys_settings_reaches_the_server() -> None:
    tables = msgspec.toml.decode(resources.files("ragconfig").joinpath("memory.toml").read_bytes(), type=dict)
    for table in tables:
        assert f"RAGCHAT_{table.upper()}_X".startswith(OWN_PREFIXES), table


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Python is a shell script")
async def test_the_process_of_the_server_does_not_hold_the_models_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nenv > "{tmp_path}/environment"\nexec "{sys.executable}" "$@"\n', "utf-8")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-model")
    async with open_memory(settings_in(tmp_path)) as memory:
        assert (await memory.stats()).documents == 0
    given = (tmp_path / "environment").read_text("utf-8")
    assert "PATH=" in given
    assert "sk-model" not in given


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_serve_becomes_a_process_that_does_not_hold_the_models_key(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path, OPENAI_API_KEY="sk-model", RAGMEMORY_TOKEN="its-own-token")
    with ragchat.started("serve", "--port", "0", "--json", python=sys.executable) as server:
        described = json.loads(server.line())
        given = Path(f"/proc/{described['pid']}/environ").read_bytes()
    assert described["authorization"] == "bearer"
    assert b"RAGMEMORY_TOKEN=its-own-token" in given
    assert b"sk-model" not in given
