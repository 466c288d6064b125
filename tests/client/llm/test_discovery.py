"""Which model answers, and where."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from ragchat.llm.client import Model
from ragchat.llm.discovery import chat_models, resolve, unknown_model, with_near_names
from ragchat.llm.errors import MissingKey, ModelUnreachable, NoChatModel, UnknownModel
from ragchat.llm.types import ModelEndpoint
from ragchat.settings import ModelSettings
from ragconfig.errors import SettingsError
from ragconfig.keys import OPENAI_URL
from tests.client.llm.test_client import settings
from tests.support.openai_server import OpenAIServer
from tests.support.ports import free_port


@asynccontextmanager
async def resolved(
    name: str, environ: dict[str, str] | None = None, **changes: object
) -> AsyncGenerator[Model | None, None]:
    url = f"http://127.0.0.1:{free_port()}/v1"
    plain = msgspec.structs.replace(settings(), ollama_url=url)
    chosen: ModelSettings = msgspec.structs.replace(plain, **changes)
    model = await resolve(name, chosen, environ or {})
    try:
        yield model
    finally:
        if model is not None:
            await model.aclose()


async def test_offline_asks_no_server() -> None:
    async with resolved("offline", {"OPENAI_API_KEY": "k"}) as model:
        assert model is None


async def test_auto_without_key_endpoint_or_ollama_is_offline() -> None:
    async with resolved("auto") as model:
        assert model is None


async def test_auto_with_a_key_is_openais_model() -> None:
    async with resolved("auto", {"OPENAI_API_KEY": "k"}) as model:
        assert model
        assert model.endpoint == ModelEndpoint("gpt-5-mini", OPENAI_URL, "k")


async def test_auto_at_an_endpoint_takes_its_first_chat_model() -> None:
    with OpenAIServer(models=["nomic-embed-text", "llama3.2:latest"]) as server:
        async with resolved("auto", {"OPENAI_BASE_URL": server.base_url}) as model:
            assert model
            assert (model.name, model.endpoint.base_url) == ("llama3.2:latest", server.base_url)


async def test_the_setting_goes_before_the_variable() -> None:
    with OpenAIServer() as server:
        async with resolved("m", {"OPENAI_BASE_URL": "http://elsewhere"}, base_url=server.base_url) as model:
            assert model
            assert model.endpoint.base_url == server.base_url


async def test_auto_at_an_endpoint_without_chat_models_says_so() -> None:
    with OpenAIServer(models=["bge-m3"]) as server, pytest.raises(NoChatModel):
        async with resolved("auto", base_url=server.base_url):
            pass


async def test_a_configured_endpoint_that_is_down_is_an_error_not_offline() -> None:
    with pytest.raises(ModelUnreachable):
        async with resolved("auto", base_url=f"http://127.0.0.1:{free_port()}/v1"):
            pass


async def test_auto_takes_an_ollama_that_answers() -> None:
    with OpenAIServer(models=["all-minilm", "qwen3:4b", "gemma3"]) as ollama:
        async with resolved("auto", ollama_url=ollama.base_url) as model:
            assert model
            assert model.endpoint == ModelEndpoint("qwen3:4b", ollama.base_url, "")


async def test_an_ollama_without_a_chat_model_leaves_auto_offline() -> None:
    with OpenAIServer(models=["all-minilm"]) as ollama:
        async with resolved("auto", ollama_url=ollama.base_url) as model:
            assert model is None


async def test_a_name_goes_to_the_ollama_that_has_it_also_without_its_tag() -> None:
    with OpenAIServer(models=["llama3.2:latest"]) as ollama:
        async with resolved("llama3.2", {"OPENAI_API_KEY": "k"}, ollama_url=ollama.base_url) as model:
            assert model
            assert model.endpoint == ModelEndpoint("llama3.2:latest", ollama.base_url, "")


async def test_a_name_that_no_ollama_has_goes_to_openai_if_there_is_a_key() -> None:
    async with resolved("gpt-5", {"OPENAI_API_KEY": "k"}) as model:
        assert model
        assert model.endpoint.base_url == OPENAI_URL
    with pytest.raises(MissingKey):
        async with resolved("gpt-5"):
            pass


async def test_the_key_comes_from_a_file_where_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n", encoding="utf-8")
    file.chmod(0o600)
    async with resolved("gpt-5", {"OPENAI_API_KEY": "k"}, key_file=str(file)) as model:
        assert model
        assert model.endpoint.key == "from-file"
    with pytest.raises(SettingsError):
        async with resolved("gpt-5", key_file=str(tmp_path / "none")):
            pass


async def test_an_unknown_model_is_an_error_with_the_nearest_names() -> None:
    with OpenAIServer(models=["llama3.2", "mistral", "text-embedding-3"]) as server:
        async with resolved("lama3", base_url=server.base_url) as model:
            assert model
            assert chat_models(await model.names()) == ["llama3.2", "mistral"]
            error = await with_near_names(UnknownModel("lama3", server.base_url), model)
            assert (error.near, error.names) == (["llama3.2"], ["llama3.2", "mistral"])


@pytest.mark.parametrize(
    ("name", "near"),
    [("Qwen", ["qwen2.5-coder:32b-instruct-q4_K_M"]), ("mistrall", ["mistral"]), ("xyz", [])],
)
def test_a_near_name_has_the_wanted_one_in_it_or_is_spelt_alike(name: str, near: list[str]) -> None:
    names = ["llama3.2", "qwen2.5-coder:32b-instruct-q4_K_M", "mistral", "qwen-embed"]
    assert unknown_model(ModelEndpoint(name, "http://x"), names).near == near


async def test_a_misspelt_name_at_an_ollama_is_not_taken_for_a_missing_key() -> None:
    with OpenAIServer(models=["llama3.2:latest"]) as ollama:
        with pytest.raises(UnknownModel) as caught:
            async with resolved("lama3.2", ollama_url=ollama.base_url):
                pass
        assert caught.value.near == ["llama3.2:latest"]
        with pytest.raises(MissingKey):
            async with resolved("gpt-5", ollama_url=ollama.base_url):
                pass
        async with resolved("lama3.2", {"OPENAI_API_KEY": "k"}, ollama_url=ollama.base_url) as model:
            assert model
