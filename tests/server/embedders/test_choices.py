"""The models that can embed on this machine, with what a user wants to know before choosing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ragmemory.embedders.choices import LOCAL, choices
from ragmemory.embedders.fastembed import SHORT_NAMES


def test_without_the_extra_the_usual_ones_are_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    found = choices(tmp_path)
    assert [one.name for one in found.models] == ["local", *SHORT_NAMES]
    assert found.install.endswith("-m pip install 'ragchat[fastembed]'")


def test_with_it_all_that_embed_texts_are_listed_and_those_on_this_machine_are_marked(tmp_path: Path) -> None:
    pytest.importorskip("fastembed", reason="the extra `fastembed` is not installed")
    model = tmp_path / "models--Qdrant--bge-small-en-v1.5-onnx-Q/snapshots/1/model_optimized.onnx"
    model.parent.mkdir(parents=True)
    model.touch()
    found = choices(tmp_path)
    by_name = {one.name: one for one in found.models}
    assert found.install == ""
    assert [one.name for one in found.models[:3]] == ["local", *SHORT_NAMES]
    assert [one for one in found.models if one.is_downloaded] == [LOCAL, by_name["bge-small"]]
    assert all(one.languages and one.licence and one.bytes for one in found.models[1:])
    assert by_name["multilingual-e5"].languages == "about 100 languages"
    assert by_name["jina-embeddings-v2-base-de"].languages == "Multilingual (German, English)"
    assert by_name["all-MiniLM-L6-v2"].measured
    assert not [name for name in by_name if "clip" in name]
