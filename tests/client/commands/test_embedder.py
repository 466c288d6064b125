"""`ragchat embedder use`: a comparison by the user's own cases decides."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from ragchat.arguments.parser import make_parser
from ragchat.cli import main
from ragchat.commands.embedder import _is_worse
from ragchat.commands.invocation import Invocation
from ragchat.console import Console
from ragchat.evaluation.cases import Case, RightPlace
from ragchat.evaluation.store import EvaluationStore
from tests.support.ollama_server import OllamaServer
from tests.support.stores import sql

FOX = "The quick brown fox jumps over the lazy dog."
LOCAL = "local:wordllama-l2-256"


@pytest.fixture
def at_ollama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaServer]:
    """Ollama without a model."""
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path))
    with OllamaServer() as server:
        monkeypatch.setenv("RAGCHAT_MODEL_OLLAMA_URL", server.base_url)
        yield server


async def save_case(home: Path, question: str, uri: str, text: str) -> None:
    async with EvaluationStore(home / "data" / "sessions.db") as store:
        place = RightPlace(uri, text, uri)
        await store.save_case(Case(question, question, verdict="good", places=[place], answered=True))


def embedder_of(home: Path) -> str:
    [(embedder,)] = sql(home / "data" / "memory.db", "SELECT value FROM meta WHERE key = 'embedder'")
    return str(embedder)


@pytest.mark.full
def test_an_embedder_that_loses_a_case_is_not_used_unless_told_to_and_one_command_goes_back(
    at_ollama: OllamaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number, text in enumerate([FOX, *(f"The invoice {number} was paid in May." for number in range(9))]):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\n{text}\n")
    assert main(["inject", str(notes)]) == 0
    # Found by meaning alone, which the bag of words at Ollama does not know.
    anyio.run(save_case, tmp_path, "Which animal leaps?", (notes / "0.md").as_uri(), FOX)

    assert main(["embedder", "use", "ollama:all-minilm", "--yes"]) == 1
    said = capsys.readouterr().err
    assert at_ollama.pulls == ["all-minilm:latest"]
    assert "Embedded 10 chunks" in said
    assert "worse: Which animal leaps?" in said
    assert "Nothing has changed" in said
    assert embedder_of(tmp_path) == LOCAL
    assert not (tmp_path / "config" / "config.toml").exists()

    embedded = at_ollama.embedded
    assert main(["embedder", "use", "all-minilm", "--anyway", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["previous"] == LOCAL
    assert at_ollama.embedded == embedded + 1  # the word that tries it
    assert embedder_of(tmp_path).startswith("openai:127.0.0.1")
    assert 'model = "all-minilm:latest"' in (tmp_path / "config" / "config.toml").read_text()

    assert main(["embedder", "use", "-"]) == 0
    assert embedder_of(tmp_path) == LOCAL
    assert at_ollama.embedded == embedded + 1
    assert [*(tmp_path / "cache").iterdir()] == []  # the copy for the comparison is gone


async def test_without_cases_nothing_is_asked_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path))
    console = Console(stderr=io.StringIO())
    run = Invocation(make_parser().parse_args(["embedder", "use", "bge-small"]), console)
    assert not await _is_worse(run, run.settings)
    assert isinstance(console.stderr, io.StringIO)
    assert "nothing was compared" in console.stderr.getvalue()


def test_the_memory_of_a_server_elsewhere_keeps_its_embedder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--server", "http://127.0.0.1:9", "embedder", "use", "bge-small"]) == 1
    assert "chooses its embedder itself" in capsys.readouterr().err
