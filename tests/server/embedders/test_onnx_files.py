"""A model is downloaded from a Hub on loopback: with progress, after a break, and never damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastembed", reason="the extra `fastembed` is not installed")

from tests.support.hub_server import Hub, hub_server

# The Hub's client reads its address when it is imported.
PROGRAM = """
import json, sys
from pathlib import Path
from fastembed import TextEmbedding
from huggingface_hub import constants
from ragmemory.embedders.onnx_files import ModelUnusable, named_model, on_bytes

constants.DOWNLOAD_CHUNK_SIZE = 50_000  # what is lost when a connection breaks
seen, reasons = [], []
on_bytes.set(lambda done, total: seen.append((done, total)))
for _ in range(2):
    try:
        _, folder = named_model(TextEmbedding, "bge-small-en-v1.5", Path(sys.argv[1]), may_download=True)
    except ModelUnusable as error:
        reasons.append(error.reason)
print(json.dumps({"seen": seen, "reasons": reasons, "folder": str(folder)}))
"""
NAME, MODEL = "model_optimized.onnx", os.urandom(300_000)
FILES = {NAME: MODEL, "config.json": b"{}", "tokenizer.json": b"{ }"}


@pytest.mark.full
def test_a_damaged_file_is_refused_and_fetched_again_and_a_broken_download_goes_on(tmp_path: Path) -> None:
    hub = Hub(FILES)
    hub.damages = hub.breaks = NAME
    with hub_server(hub):
        told = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "home")}
        words = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        done = subprocess.run(words, env={**os.environ, **told}, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["reasons"] == [
        f"{NAME} was damaged on its way: it does not have the digest that was announced"
    ]
    assert hub.ranges == [f"bytes={len(MODEL) // 2}-"]
    assert Path(found["folder"], NAME).read_bytes() == MODEL
    assert found["seen"][-1] == [len(MODEL), len(MODEL)]
