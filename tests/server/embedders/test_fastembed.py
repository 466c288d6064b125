"""The real loading code on tiny models that are built here: there is no network in these tests.

Covers `onnx_files`.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ragmemory.embedders import EmbedderSettings
from ragmemory.embedders.fastembed import BATCH, SEARCHING, FastEmbedder, prefixes_for, prefixes_of
from ragmemory.errors import EmbedderUnavailable

pytest.importorskip("fastembed", reason="the extra `fastembed` is not installed")
pytest.importorskip("onnx", reason="the tests' package `onnx` is not installed")

from tests.support.onnx_models import DIMENSIONS, embedder_in

TEXT = "query: passage: the car is parked in an automobile garage, the cat sleeps on a mat"
SYNONYMS = {"automobile": "car"}


def embedder_of(model: Path | str, cache: Path) -> FastEmbedder:
    values = {"kind": "fastembed", "model": str(model), "base_url": "", "key_file": "", "batch": 2}
    values |= {"timeout_seconds": 5.0, "retries": 0, "threads": 1, "fastembed_model": "", "openai_model": ""}
    return FastEmbedder(msgspec.convert(values, EmbedderSettings), cache)


def alike(words: list[str]) -> list[float]:
    return [1.0] * len(words)


async def vectors_of(embedder: FastEmbedder, texts: Sequence[str]) -> Any:
    embeddings = await embedder.embed_documents(texts, [""] * len(texts))
    return np.array([np.frombuffer(one, "<f2") for one in embeddings], np.float32)


async def test_a_folder_is_loaded_and_gives_unit_vectors_that_know_synonyms(tmp_path: Path) -> None:
    embedder = embedder_of(embedder_in(tmp_path / "tiny", TEXT, synonyms=SYNONYMS), tmp_path)
    question = await embedder.embed_query("automobile", alike)
    assert question is not None
    assert question.dtype == np.float32
    vectors = await vectors_of(embedder, ["car", "the cat sleeps"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-2)
    close, far = vectors @ question
    assert close > 0.9
    assert far < 0.5
    assert embedder.dimensions == DIMENSIONS


async def test_documents_come_back_in_order_although_batches_are_sorted_by_length(tmp_path: Path) -> None:
    embedder = embedder_of(embedder_in(tmp_path / "tiny", TEXT), tmp_path)
    words = ["garage", "cat", "mat", "car"] * BATCH
    texts = [f"{word} " * (1 + place % 7) for place, word in enumerate(words)]
    vectors = await vectors_of(embedder, texts)
    alone = np.concatenate([await vectors_of(embedder, [text]) for text in texts])
    assert vectors == pytest.approx(alone, abs=1e-2)


async def test_the_title_is_embedded_with_the_text(tmp_path: Path) -> None:
    embedder = embedder_of(embedder_in(tmp_path / "tiny", TEXT), tmp_path)
    [plain, titled] = await embedder.embed_documents(["garage", "garage"], ["", "cat"])
    assert plain != titled


async def test_the_prompts_in_the_folder_are_put_before_queries_and_passages(tmp_path: Path) -> None:
    prompts = {"query": "query: ", "document": "passage: "}
    plain = embedder_of(embedder_in(tmp_path / "plain", TEXT), tmp_path)
    prompted = embedder_of(embedder_in(tmp_path / "prompted", TEXT, prompts=prompts), tmp_path)
    with_prefix = await plain.embed_query("query: car", alike)
    assert (await prompted.embed_query("car", alike)) == pytest.approx(with_prefix, abs=1e-6)
    assert await vectors_of(prompted, ["car"]) == pytest.approx(
        await vectors_of(plain, ["passage: car"]), abs=1e-3
    )


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("BAAI/bge-small-en-v1.5", SEARCHING.query, ""),
        ("BAAI/bge-m3", "", ""),
        (
            "snowflake/snowflake-arctic-embed-s",
            SEARCHING.query,
            "",
        ),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
    ],
)
def test_models_that_were_trained_with_prefixes_get_them(name: str, query: str, passage: str) -> None:
    assert prefixes_for(name) == (query, passage)


def test_a_folder_without_prompts_gets_the_prefixes_of_its_name(tmp_path: Path) -> None:
    assert prefixes_of(tmp_path / "e5-small-v2") == ("query: ", "passage: ")


def test_chunks_are_counted_in_the_models_tokens_and_leave_room_for_the_title(tmp_path: Path) -> None:
    embedder = embedder_of(embedder_in(tmp_path / "tiny", TEXT, longest=128), tmp_path)
    assert embedder.longest_text() == 96
    assert embedder.count_tokens(["the cat", "the " * 500]) == [2, 500]


def test_words_of_the_models_vocabulary_are_not_taken_for_misspelt(tmp_path: Path) -> None:
    embedder = embedder_of(embedder_in(tmp_path / "tiny", TEXT), tmp_path)
    assert embedder.pieces("garage") == 0  # not loaded yet
    embedder.warm_up()
    assert embedder.pieces("garage") == 1
    assert embedder.pieces("garege") > 1


def test_the_identity_follows_the_model_and_not_its_place(tmp_path: Path) -> None:
    one = embedder_of(embedder_in(tmp_path / "tiny", TEXT), tmp_path).identity
    moved = embedder_of(embedder_in(tmp_path / "elsewhere" / "tiny", TEXT), tmp_path).identity
    changed = embedder_of(embedder_in(tmp_path / "tiny", TEXT, seed=1), tmp_path).identity
    assert one == moved != changed
    assert one.startswith("fastembed:tiny@")


@pytest.mark.parametrize("name", ["bge-small", "BGE-small-en-v1.5", "BAAI/bge-small-en-v1.5"])
def test_a_model_has_one_identity_under_all_its_names(name: str, tmp_path: Path) -> None:
    assert embedder_of(name, tmp_path).identity == "fastembed:bge-small-en-v1.5"


async def test_an_empty_query_embeds_nothing(tmp_path: Path) -> None:
    assert await embedder_of("/nope", tmp_path).embed_query(" \n", alike) is None


async def test_a_query_downloads_nothing_and_says_what_would(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"\(67 MB\) are not on this machine yet") as raised:
        await embedder_of("bge-small", tmp_path / "cache").embed_query("car", alike)
    assert "ragchat memory reembed" in raised.value.hint
    assert not (tmp_path / "cache").exists()
    assert "Downloading" not in caplog.text


async def test_documents_try_a_download_once_and_the_failure_is_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastembed import TextEmbedding

    asked = []

    def unreachable(*_: object, local_files_only: bool) -> str:
        asked.append(local_files_only)
        raise OSError("there is no network")

    monkeypatch.setattr(TextEmbedding, "download_files_from_huggingface", unreachable)
    caplog.set_level(logging.WARNING)
    embedder = embedder_of("multilingual-e5", tmp_path / "cache")
    with pytest.raises(EmbedderUnavailable, match="not on this machine yet"):
        await embedder.embed_query("car", alike)
    for _ in range(2):
        with pytest.raises(
            EmbedderUnavailable, match="cannot be downloaded \\(there is no network\\)"
        ) as raised:
            await embedder.embed_documents(["car"], [""])
    assert asked == [True, True, False]
    assert "folder of a model" in raised.value.hint
    assert "Downloading the model intfloat/multilingual-e5-small (470 MB)" in caplog.text


async def test_an_unknown_name_is_answered_with_near_ones(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="is none of them") as raised:
        await embedder_of("bge-smal-en", tmp_path).embed_query("car", alike)
    assert "BAAI/bge-small-en" in raised.value.hint


async def test_a_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EmbedderUnavailable, match="fastembed is not installed") as raised:
        await embedder_of("bge-small", tmp_path).embed_query("car", alike)
    assert raised.value.hint.endswith("-m pip install 'ragchat[fastembed]'")


def damage_model(folder: Path) -> None:
    (folder / "onnx/model.onnx").write_bytes(b"not a model")


def remove_model(folder: Path) -> None:
    (folder / "onnx/model.onnx").unlink()


def remove_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def remove_pooling(folder: Path) -> None:
    (folder / "1_Pooling/config.json").unlink()


def damage_pooling(folder: Path) -> None:
    (folder / "1_Pooling/config.json").write_text("{")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (damage_model, "cannot be loaded"),
        (remove_model, "holds no ONNX file"),
        (remove_tokenizer, "tokenizer.json"),
        (remove_pooling, "does not record how the vectors of tokens become one"),
        (damage_pooling, "config.json cannot be read"),
    ],
)
async def test_a_folder_that_is_no_whole_model_is_refused_with_the_reason(
    harm: Any, says: str, tmp_path: Path
) -> None:
    folder = embedder_in(tmp_path / "tiny", TEXT)
    harm(folder)
    with pytest.raises(EmbedderUnavailable, match=says):
        await embedder_of(folder, tmp_path).embed_query("car", alike)
