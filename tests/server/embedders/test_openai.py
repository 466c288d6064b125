from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ragmemory.embedders import EmbedderSettings
from ragmemory.embedders.openai import OpenAIEmbedder
from ragmemory.errors import EmbedderUnavailable, TextRefused
from tests.support.embeddings_server import EmbeddingsServer, embeddings_server


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as told:
        yield told


def settings(url: str, **changes: object) -> EmbedderSettings:
    values = {"kind": "openai", "model": "small", "base_url": url, "key_file": "", "batch": 2}
    values |= {"threads": 1, "fastembed_model": "", "openai_model": ""}
    return msgspec.convert(
        {
            **values,
            "timeout_seconds": 5.0,
            "retries": 2,
            "threads": 1,
            "fastembed_model": "",
            "openai_model": "",
            **changes,
        },
        EmbedderSettings,
    )


@pytest.fixture
async def embedder(server: EmbeddingsServer) -> AsyncIterator[OpenAIEmbedder]:
    made = OpenAIEmbedder(settings(server.url))
    yield made
    await made.aclose()


def alike(words: list[str]) -> list[float]:
    return [1.0] * len(words)


async def test_texts_are_sent_in_batches_under_their_titles_and_come_back_in_order(
    server: EmbeddingsServer, embedder: OpenAIEmbedder
) -> None:
    embeddings = await embedder.embed_documents(["a", "bbbb", "cc"], ["", "Title", ""])
    assert [request["input"] for request in server.requests] == [["a", "Title\nbbbb"], ["cc"]]
    first = [np.frombuffer(one, "<f2")[0] for one in embeddings]
    assert first[0] < first[2] < first[1]
    assert all(np.linalg.norm(np.frombuffer(one, "<f2")) == pytest.approx(1, abs=1e-2) for one in embeddings)


async def test_dimensions_are_known_after_the_first_answer(embedder: OpenAIEmbedder) -> None:
    assert embedder.dimensions == 0
    await embedder.embed_query("hello", alike)
    assert embedder.dimensions == 3


async def test_an_empty_query_sends_no_request(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    assert await embedder.embed_query(" \n", alike) is None
    assert server.requests == []


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_may_pass_is_tried_again(
    server: EmbeddingsServer, embedder: OpenAIEmbedder, status: int
) -> None:
    server.script = [status, status]
    assert len(await embedder.embed_documents(["a"], [""])) == 1
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "refused the key"),
        (404, "does not know the model"),
        (429, "limits requests"),
        (500, "answered 500"),
        (400, "answered 400"),
    ],
)
async def test_what_stays_is_an_embedder_that_is_not_available(
    server: EmbeddingsServer, embedder: OpenAIEmbedder, status: int, reason: str
) -> None:
    server.script = [status] * 10
    with pytest.raises(EmbedderUnavailable, match=reason) as caught:
        await embedder.embed_documents(["a"], [""])
    assert caught.value.embedder == embedder.identity


async def test_a_closed_port_is_an_embedder_that_is_not_available() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        embedder = OpenAIEmbedder(settings(url, retries=0))
        with pytest.raises(EmbedderUnavailable, match="cannot be reached") as caught:
            await embedder.embed_query("hello", alike)
        assert caught.value.hint
        await embedder.aclose()


async def test_a_silent_server_is_an_embedder_that_is_not_available() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        embedder = OpenAIEmbedder(settings(url, retries=0, timeout_seconds=0.1))
        with pytest.raises(EmbedderUnavailable, match="did not answer in time"):
            await embedder.embed_query("hello", alike)
        await embedder.aclose()


async def test_a_vector_for_each_token_is_named_as_missing_pooling(
    server: EmbeddingsServer, embedder: OpenAIEmbedder
) -> None:
    server.per_token = True
    with pytest.raises(EmbedderUnavailable, match="no pooling") as caught:
        await embedder.embed_documents(["one text"], [""])
    assert "--pooling mean" in caught.value.hint


async def test_a_server_that_refuses_to_embed_without_pooling_does_not_blame_the_text(
    server: EmbeddingsServer, embedder: OpenAIEmbedder
) -> None:
    server.script, server.message = [400], "Pooling type 'none' is not OAI compatible."
    with pytest.raises(EmbedderUnavailable) as caught:
        await embedder.embed_documents(["one text"], [""])
    assert not isinstance(caught.value, TextRefused)
    assert "--pooling mean" in caught.value.hint


async def test_after_a_failure_queries_send_no_request_for_a_while(
    server: EmbeddingsServer, embedder: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = [503]
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable, match="503"):
            await embedder.embed_query("hello", alike)
    assert len(server.requests) == 1
    monkeypatch.setattr("ragmemory.embedders.openai.DOWN_SECONDS", 0.0)
    assert await embedder.embed_query("hello", alike) is not None


async def test_documents_are_tried_once_after_a_failure_and_their_success_ends_it(
    server: EmbeddingsServer, embedder: OpenAIEmbedder
) -> None:
    server.script = [503, 503]
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed_query("hello", alike)
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed_documents(["a"], [""])
    assert len(server.requests) == 2
    await embedder.embed_documents(["a"], [""])
    assert await embedder.embed_query("hello", alike) is not None


async def test_a_wrong_model_is_not_remembered(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    server.script = [404]
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed_query("hello", alike)
    assert await embedder.embed_query("hello", alike) is not None


async def test_a_base_url_without_its_v1_has_a_hint(server: EmbeddingsServer) -> None:
    url = server.url.removesuffix("/v1")
    embedder = OpenAIEmbedder(settings(url))
    with pytest.raises(EmbedderUnavailable) as caught:
        await embedder.embed_query("hello", alike)
    assert caught.value.hint == f"Did you mean {url}/v1?"
    await embedder.aclose()


async def test_other_dimensions_than_before_are_refused(
    server: EmbeddingsServer, embedder: OpenAIEmbedder
) -> None:
    await embedder.embed_query("hello", alike)
    server.dimensions = 4
    with pytest.raises(EmbedderUnavailable, match="dimensions"):
        await embedder.embed_query("hello", alike)


async def test_fewer_vectors_than_texts_are_refused(
    server: EmbeddingsServer, embedder: OpenAIEmbedder
) -> None:
    server.forgets_one = True
    with pytest.raises(EmbedderUnavailable, match="2 texts with 1 vectors"):
        await embedder.embed_documents(["a", "b"], ["", ""])


async def test_the_key_comes_from_its_file(server: EmbeddingsServer, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n", encoding="utf-8")
    (tmp_path / "key").chmod(0o600)
    embedder = OpenAIEmbedder(settings(server.url, key_file=str(tmp_path / "key")))
    await embedder.embed_query("hello", alike)
    await embedder.aclose()
    assert server.keys == ["Bearer secret"]


async def test_a_key_file_that_cannot_be_read_makes_the_embedder_unavailable(tmp_path: Path) -> None:
    embedder = OpenAIEmbedder(settings("http://localhost/v1", key_file=str(tmp_path / "key")))
    with pytest.raises(EmbedderUnavailable, match="key cannot be read: no such file") as caught:
        await embedder.embed_documents(["a"], [""])
    assert caught.value.hint == "Check embedder.key_file."


async def test_the_identity_names_the_host_and_the_model(server: EmbeddingsServer) -> None:
    host = server.url.removeprefix("http://").removesuffix("/v1")
    assert OpenAIEmbedder(settings(server.url)).identity == f"openai:{host}:small"
    with_password = server.url.replace("://", "://ann:password@")
    assert OpenAIEmbedder(settings(with_password)).identity == f"openai:{host}:small"


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("four", 1), ("fives", 2), ("黑豹", 2)])
def test_tokens_are_estimated_from_bytes(text: str, tokens: int) -> None:
    assert OpenAIEmbedder(settings("http://localhost/v1")).count_tokens([text]) == [tokens]


@pytest.mark.parametrize(("status", "is_refused"), [(400, True), (413, True), (422, True), (404, False)])
async def test_a_refused_text_is_a_different_error_from_a_service_that_is_down(
    server: EmbeddingsServer, embedder: OpenAIEmbedder, status: int, is_refused: bool
) -> None:
    server.script = [status]
    with pytest.raises(EmbedderUnavailable) as caught:
        await embedder.embed_documents(["a"], [""])
    assert isinstance(caught.value, TextRefused) == is_refused
