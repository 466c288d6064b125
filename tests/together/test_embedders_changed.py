"""A memory that changes its embedder, with real processes and a tiny ONNX model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import Program, program_in

pytest.importorskip("fastembed", reason="the extra `fastembed` is not installed")
pytest.importorskip("onnx", reason="the tests' package `onnx` is not installed")

from tests.support.onnx_models import DIMENSIONS, embedder_in

NOTES = {
    "garage.md": "The automobile stays in the garage over winter.",
    "cat.md": "The cat sleeps on a mat near the stove.",
}


def test_reembed_switches_to_another_embedder_and_back_and_they_are_never_mixed(tmp_path: Path) -> None:
    text = " ".join(NOTES.values())
    model = embedder_in(tmp_path / "tiny", text + " sedan", synonyms={"sedan": "automobile"})
    local = program_in(tmp_path)
    better = program_in(tmp_path, RAGCHAT_EMBEDDER_KIND="fastembed", RAGCHAT_EMBEDDER_MODEL=str(model))
    for name, note in NOTES.items():
        (local.folder / name).write_text(note, "utf-8")
    assert local("inject", "garage.md").code == 0
    refused = better("inject", "cat.md")
    assert refused.code == 1
    assert "ragchat memory reembed" in refused.out + refused.err
    assert better("memory", "reembed").code == 0
    stats = better("memory", "stats", "--json").json
    assert stats["embedder"].startswith("fastembed:tiny@")
    assert stats["dimensions"] == DIMENSIONS
    assert better("inject", "cat.md").code == 0
    assert first_hit(better, "sedan").endswith("garage.md")
    assert "ragchat memory reembed" in local("query", "garage").err
    assert local("memory", "reembed").code == 0
    assert local("memory", "stats", "--json").json["embedder"].startswith("local:")
    assert first_hit(local, "sleeping cat").endswith("cat.md")


def first_hit(ragchat: Program, query: str) -> str:
    uri: str = ragchat("query", query, "--json").json["hits"][0]["uri"]
    return uri
