"""`ragchat model setup` in a pipe: what it finds, writes and takes back.

Covers `ragchat.commands.changing`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragchat.cli import main
from ragchat.llm import servers
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import Reply


@pytest.fixture
def at_ollama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaServer]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(servers, "USUAL", ())
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path))
    with OllamaServer("qwen3:8b") as server:
        monkeypatch.setenv("RAGCHAT_MODEL_OLLAMA_URL", server.base_url)
        yield server


def written(home: Path) -> str:
    file = home / "config" / "config.toml"
    return file.read_text() if file.exists() else ""


@pytest.mark.usefixtures("at_ollama")
def test_what_answers_is_listed_and_nothing_is_written_before_the_user_chooses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "setup"]) == 0
    listed = capsys.readouterr()
    assert "qwen3:8b  answered in" in listed.out
    assert "--yes" in listed.err
    assert written(tmp_path) == ""
    assert main(["model", "setup", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == {"model.name": "qwen3:8b", "model.base_url": ""}
    assert written(tmp_path) == '[model]\nname = "qwen3:8b"\nbase_url = ""\n'
    assert main(["model", "setup", "--use", "offline"]) == 0
    assert main(["model", "setup", "--use", "offline"]) == 0
    assert main(["model", "setup", "--use", "back"]) == 0
    assert 'name = "qwen3:8b"' in written(tmp_path)


def test_the_password_in_an_address_is_not_printed(
    at_ollama: OllamaServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", at_ollama.base_url.replace("://", "://me:secret@"))
    for option in ("--json", "--yes"):
        assert main(["model", "setup", option]) == 0
    said = capsys.readouterr()
    assert "://***@127.0.0.1" in said.out
    assert "secret" not in said.out + said.err
    assert "me:secret@" in written(tmp_path)


def test_a_model_that_is_not_there_is_pulled_with_consent_only(
    at_ollama: OllamaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "setup", "--use", "big"]) == 1
    assert "not done without your consent" in capsys.readouterr().err
    assert at_ollama.pulls == []
    assert main(["model", "setup", "--use", "big", "--yes"]) == 1  # the connection breaks
    assert main(["model", "setup", "--use", "big", "--yes"]) == 0
    assert 'name = "big:latest"' in written(tmp_path)


@pytest.mark.usefixtures("at_ollama")
def test_without_any_server_it_says_what_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAGCHAT_MODEL_OLLAMA_URL", "http://127.0.0.1:9/v1")
    assert main(["model", "setup"]) == 1
    assert "Start Ollama" in capsys.readouterr().err
    assert main(["model", "setup", "--use", "qwen3:8b", "--yes"]) == 1
    assert "No server that was found" in capsys.readouterr().err
    for kept in (None, b"", b'{"model.name": "\xff"}'):
        if kept is not None:
            (tmp_path / "state" / "before-model.json").write_bytes(kept)
        assert main(["model", "setup", "--use", "back"]) == 1
        assert "none to go back to" in capsys.readouterr().err


@pytest.mark.usefixtures("at_ollama")
def test_a_value_from_the_environment_is_not_overruled_by_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAGCHAT_MODEL_NAME", "offline")
    assert main(["model", "setup", "--yes"]) == 1
    assert "comes from the environment variable RAGCHAT_MODEL_NAME" in capsys.readouterr().err
    assert written(tmp_path) == ""


def test_a_model_that_does_not_answer_is_not_written(
    at_ollama: OllamaServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at_ollama.replies = [Reply(status=403, message="Not you.")]
    monkeypatch.setenv("RAGCHAT_MODEL_RETRIES", "0")
    assert main(["model", "setup", "--use", "qwen3:8b"]) == 1
    assert "The settings are unchanged" in capsys.readouterr().err
    assert written(tmp_path) == ""
