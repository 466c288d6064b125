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
from ragmemory.embedders.onnx_files import ModelUnusable, listed, on_bytes

constants.DOWNLOAD_CHUNK_SIZE = 50_000  # what is lost when a connection breaks
seen = []
on_bytes.set(lambda done, total: seen.append((done, total)))
try:
    found = listed(TextEmbedding, "bge-small-en-v1.5", Path(sys.argv[1]), may_download=True)
    print(json.dumps({"seen": seen, "folder": str(found.folder)}))
except ModelUnusable as error:
    print(json.dumps({"seen": seen, "reason": error.reason, "hint": error.hint}))
"""
NAME, MODEL = "model_optimized.onnx", os.urandom(300_000)
FILES = {NAME: MODEL, "config.json": b"{}", "tokenizer.json": b"{ }"}


def downloaded(hub: Hub, cache: Path) -> dict[str, object]:
    told = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(cache / "home")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(cache)],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.full
def test_a_damaged_file_is_refused_and_fetched_again_and_a_broken_download_goes_on(tmp_path: Path) -> None:
    with hub_server(Hub(FILES)) as hub:
        hub.damaged.add(NAME)
        refused = downloaded(hub, tmp_path)
        assert str(refused["reason"]).startswith(f"{NAME} was damaged on its way")
        hub.damaged.clear()
        hub.breaks = NAME
        done = downloaded(hub, tmp_path)
    assert hub.ranges == [f"bytes={len(MODEL) // 2}-"]
    assert Path(str(done["folder"]), NAME).read_bytes() == MODEL
    assert isinstance(done["seen"], list)
    assert done["seen"][-1] == [len(MODEL), len(MODEL)]
