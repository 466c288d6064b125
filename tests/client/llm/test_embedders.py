"""What can embed here, by name, with what chooses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragchat.errors import UnknownEmbedder
from ragchat.llm.embedders import Choice, choices, named
from ragcommon.contract.maintenance import EmbedderModel, EmbedderModels
from ragconfig.settings import Settings
from tests.support.ollama_server import MB, OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.turns import settings_in

LOCAL = EmbedderModel("local", "local", 0, "English", "MIT", is_downloaded=True)
SMALL = EmbedderModel("bge-small", "fastembed", 67 * MB, "English", "mit", is_downloaded=False)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


async def found_with(settings: Settings, install: str = "") -> list[Choice]:
    return await choices(settings, EmbedderModels([LOCAL, SMALL], install))


async def test_those_of_ollama_and_of_a_configured_endpoint_are_listed_and_the_one_in_use_is_marked(
    tmp_path: Path,
) -> None:
    with (
        OllamaServer("all-minilm:latest", "qwen3:8b") as at_ollama,
        OpenAIServer(models=["gpt-oss", "nomic-embed"]) as endpoint,
    ):
        where = {"model__ollama_url": at_ollama.base_url, "model__base_url": endpoint.base_url}
        found = await found_with(settings_in(tmp_path, **where))
        assert [(one.name, one.in_use) for one in found] == [
            ("local", True),
            ("all-minilm:latest", False),
            ("nomic-embed", False),
            ("bge-small", False),
        ]
        assert found[1].changes == {
            "embedder.kind": "openai",
            "embedder.model": "all-minilm:latest",
            "embedder.base_url": at_ollama.base_url,
        }
        used = {"embedder__kind": "openai", "embedder__model": "nomic-embed"}
        assert [
            one.name for one in await found_with(settings_in(tmp_path, **where, **used)) if one.in_use
        ] == ["nomic-embed"]


async def test_what_is_at_the_address_of_ollama_and_is_not_text_is_passed_over(tmp_path: Path) -> None:
    with OpenAIServer(pages={"/api/tags": b'{"models": [{"name": "\xff"}]}'}) as another:
        found = await found_with(settings_in(tmp_path, model__ollama_url=another.base_url))
    assert [one.name for one in found] == ["local", "bge-small"]


async def test_an_embedder_in_use_that_is_not_listed_is_shown_too(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, embedder__kind="fastembed", embedder__model="/models/own")
    assert [one.name for one in await found_with(settings) if one.in_use] == ["/models/own"]
    settings = settings_in(tmp_path, embedder__kind="fastembed")
    assert [one.name for one in await found_with(settings) if one.in_use] == ["bge-small"]
    address = {"embedder__base_url": "http://me:secret@127.0.0.1:9/v1", "embedder__model": "own"}
    settings = settings_in(tmp_path, embedder__kind="openai", **address)
    (used,) = [one for one in await found_with(settings) if one.in_use]
    assert used.where == "http://***@127.0.0.1:9/v1"


async def test_a_name_is_one_of_the_list_a_folder_or_one_that_ollama_pulls(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    found = await found_with(settings, "pip install it")
    assert named("bge-small", found, settings).needs == "pip install it"
    assert named("/models/x", found, settings).changes["embedder.model"] == "/models/x"
    pulled = named("ollama:bge-m3", found, settings)
    assert (pulled.name, pulled.is_here) == ("bge-m3:latest", False)
    with pytest.raises(UnknownEmbedder) as raised:
        named("bge-smal", found, settings)
    assert raised.value.hint.startswith("Did you mean bge-small?")
