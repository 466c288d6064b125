"""Servers of models are found at their usual ports, on loopback with the APIs of each.

Covers `ragchat.llm.ollama` too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from ragchat.llm import ollama, servers
from ragchat.llm.errors import PullFailed
from ragchat.llm.servers import find_servers, try_model
from tests.client.llm.test_client import settings
from tests.support.ollama_server import LICENCE, MB, OllamaServer
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.ports import free_port

KEY = {"OPENAI_API_KEY": "sk-secret"}


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, OpenAIServer]]:
    """llama.cpp, LM Studio and another program at the usual port of vLLM."""
    scripts = {
        "llama.cpp": OpenAIServer(models=["gpt-oss"], fields={"owned_by": "llamacpp"}, key="none"),
        "LM Studio": OpenAIServer(
            models=["text-embedding-nomic", "qwen3"], fields={"owned_by": "organization_owner"}, key="none"
        ),
        "vLLM": OpenAIServer(page="<html>A page.</html>"),
    }
    with ExitStack() as stack:
        for script in scripts.values():
            stack.enter_context(script)
        monkeypatch.setattr(servers, "USUAL", [(name, one.base_url) for name, one in scripts.items()])
        yield scripts


@pytest.mark.usefixtures("usual")
async def test_all_are_found_at_once_with_their_chat_models_and_without_the_key() -> None:
    with OllamaServer("all-minilm:latest", "qwen3:8b") as at_ollama:
        chosen = replace(settings(), ollama_url=at_ollama.base_url, ollama_seconds=10.0, retries=2)
        found = await find_servers(chosen, KEY | {"OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1"})
    assert [(one.name, one.models) for one in found] == [
        ("endpoint", []),
        ("Ollama", ["qwen3:8b"]),
        ("llama.cpp", ["gpt-oss"]),
        ("LM Studio", ["qwen3"]),
        ("vLLM", []),
    ]
    assert "Nothing listens" in found[0].problem
    assert found[4].problem != ""
    assert [one.name for one in found if one.takes_key] == ["endpoint"]


async def test_a_server_is_named_by_what_it_says_not_by_its_port(usual: dict[str, OpenAIServer]) -> None:
    usual["llama.cpp"].fields = {"owned_by": "vllm"}
    found = await find_servers(
        replace(settings(), ollama_url=usual["llama.cpp"].base_url, ollama_seconds=10.0), {}
    )
    assert found[0].name == "vLLM"


async def test_a_model_is_tried_with_one_short_question() -> None:
    with OpenAIServer([Reply("Hello")]) as server:
        chosen = replace(settings(), base_url=server.base_url, ollama_seconds=10.0)
        [found] = [one for one in await find_servers(chosen, {}) if one.takes_key]
        trial = await try_model(found, "test-model", chosen, {})
        refused = await try_model(found, "gone", chosen, {})
    assert (trial.problem, len(server.requests), server.requests[0]["max_tokens"]) == ("", 2, 16)
    assert "has no model gone" in refused.problem


async def ignore(done: int, total: int) -> None:
    """No progress."""


async def test_a_pull_that_breaks_off_goes_on_where_it_was() -> None:
    seen: list[tuple[int, int]] = []

    async def see(done: int, total: int) -> None:
        seen.append((done, total))

    with OllamaServer() as server:
        chosen = replace(settings(), ollama_url=server.base_url)
        with pytest.raises(PullFailed, match="the connection broke") as raised:
            await ollama.pull("big", chosen, see)
        assert "goes on" in raised.value.hint
        await ollama.pull("big", chosen, see)
        assert server.models == ["big:latest"]
    assert seen == [(0, 40 * MB), (20 * MB, 40 * MB), (22 * MB, 42 * MB)]


async def test_a_pull_of_a_model_that_does_not_exist_says_what_ollama_said() -> None:
    with OllamaServer() as server, pytest.raises(PullFailed, match="file does not exist") as raised:
        await ollama.pull("nonsense", replace(settings(), ollama_url=server.base_url), ignore)
    assert raised.value.hint == ""


async def test_a_pull_from_another_program_or_from_nothing_is_an_error() -> None:
    with OpenAIServer() as server, pytest.raises(PullFailed, match="before the model was complete"):
        await ollama.pull("qwen3:8b", replace(settings(), ollama_url=server.base_url), ignore)
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(PullFailed, match="the connection broke"):
        await ollama.pull("qwen3:8b", replace(settings(), ollama_url=nowhere), ignore)


async def test_ollamas_embedders_come_with_size_and_licence_and_another_program_has_none() -> None:
    with OllamaServer("all-minilm:latest", "qwen3:8b") as server:
        found = await ollama.embedders(replace(settings(), ollama_url=server.base_url))
    assert found == [("all-minilm:latest", 46 * MB, LICENCE.partition("\n")[0])]
    with OpenAIServer() as other:
        assert await ollama.embedders(replace(settings(), ollama_url=other.base_url)) == []
    assert await ollama.embedders(replace(settings(), ollama_url=other.base_url)) == []
