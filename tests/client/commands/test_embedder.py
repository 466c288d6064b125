"""`ragchat embedder use`: a comparison by the user's cases decides. Covers `ragchat.llm.embedders`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from ragchat.cli import main
from ragchat.evaluation.cases import Case, RightPlace
from ragchat.evaluation.store import evaluation_store
from tests.support.ollama_server import OllamaServer

FOX = "The quick brown fox jumps over the lazy dog."
PIE = "Bake the apple pie for forty minutes."


@pytest.fixture
def at_ollama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaServer]:
    """Ollama without a model, and a memory of notes embedded with the built-in embedder."""
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RAGCHAT_MODEL_NAME", raising=False)
    notes = tmp_path / "notes"
    notes.mkdir()
    texts = [FOX, PIE, *(f"The invoice {number} was paid in May." for number in range(9))]
    for number, text in enumerate(texts):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\n{text}\n")
    with OllamaServer("all-minilm:latest") as server:
        monkeypatch.setenv("RAGCHAT_MODEL_OLLAMA_URL", server.base_url)
        assert main(["inject", str(notes)]) == 0
        yield server


def save_case(home: Path, question: str, uri: str, text: str) -> None:
    async def save() -> None:
        async with evaluation_store(home / "data" / "sessions.db") as store:
            place = RightPlace(uri, text, uri)
            await store.save_case(Case(question, question, verdict="good", places=[place], answered=True))

    anyio.run(save)


def embedder_of(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["memory", "stats", "--json"]) == 0
    embedder: str = json.loads(capsys.readouterr().out)["embedder"]
    return embedder


@pytest.mark.full
def test_an_embedder_that_loses_a_case_is_not_used_unless_told_to_and_one_command_goes_back(
    at_ollama: OllamaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fox = (tmp_path / "notes" / "0.md").as_uri()
    # Found by meaning alone, which the bag of words at Ollama does not know.
    save_case(tmp_path / "home", "Which animal leaps?", fox, FOX)
    local = embedder_of(capsys)
    assert main(["embedder", "use", "all-minilm"]) == 1
    said = capsys.readouterr().err
    assert "Embedded 11 chunks" in said
    assert "worse: Which animal leaps?" in said
    assert "Nothing has changed" in said
    assert embedder_of(capsys) == local
    assert not (tmp_path / "home" / "config" / "config.toml").exists()
    embedded = at_ollama.embedded

    assert main(["embedder", "use", "all-minilm", "--anyway", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is True
    assert at_ollama.embedded == embedded + 1  # the word that tries it
    assert embedder_of(capsys).startswith("openai:127.0.0.1")
    assert main(["query", "quick brown fox", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"][0]["uri"] == fox
    assert main(["embedder", "ls"]) == 0
    assert "* all-minilm:latest" in capsys.readouterr().out

    assert main(["embedder", "use", "-"]) == 0
    assert embedder_of(capsys) == local


def test_without_cases_it_says_that_nothing_was_compared_and_changes(
    at_ollama: OllamaServer, capsys: pytest.CaptureFixture[str]
) -> None:
    at_ollama.models.clear()
    assert main(["embedder", "use", "ollama:all-minilm"]) == 1
    assert "not done without your consent" in capsys.readouterr().err
    assert main(["embedder", "use", "ollama:all-minilm", "--yes"]) == 0
    assert "nothing was compared" in capsys.readouterr().err
    assert at_ollama.pulls == ["all-minilm:latest"]
    assert main(["embedder", "use", "all-minilm"]) == 0
    assert "in use already" in capsys.readouterr().out


@pytest.mark.usefixtures("at_ollama")
def test_an_unknown_name_is_answered_with_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embedder", "use", "bge-smal"]) == 1
    assert "Did you mean bge-small?" in capsys.readouterr().err
