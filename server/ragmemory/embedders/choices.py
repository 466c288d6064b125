"""The models that can embed on this machine: the built-in one, and those of fastembed."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from ragcommon.contract.maintenance import EmbedderModel, EmbedderModels
from ragmemory.embedders.fastembed import SHORT_NAMES, register_e5
from ragmemory.embedders.onnx_files import INSTALL, using_fastembed

LOCAL = EmbedderModel(
    name="local",
    kind="local",
    bytes=0,
    languages="English best; not Arabic, Greek, Hindi or Thai",
    licence="MIT",
    is_downloaded=True,
    measured="8,000 texts of 128 words a second on 2 cores; nDCG@10 with the words of the question: .899 on "
    "SQuAD, .412 on Cranfield, .429 on CoSQA",
)
# What fastembed's list does not say of them, or says only once it is installed.
SHORT = {
    "bge-small": (67_000_000, "English", "mit"),
    "multilingual-e5": (470_000_000, "about 100 languages", "mit"),
}
MEASURED = {
    "all-MiniLM-L6-v2": "20 texts of 128 words a second on 2 cores (with torch); nDCG@10 likewise: .903 on "
    "SQuAD, .439 on Cranfield, .520 on CoSQA",
}
# Halves of a pair of models, and models of images.
_UNSUITABLE = re.compile(r"query-side|document side|text&image", re.IGNORECASE)
_LANGUAGES = re.compile(r"\(text(?:, image)?\)[\w -]*, (?:supports )?((?:[^,(]|\([^)]*\))+)")


def choices(cache: Path) -> EmbedderModels:
    """All of them. `cache` is the folder of downloaded models. Takes a second. Raises ModelUnusable."""
    if importlib.util.find_spec("fastembed") is None:
        short = [
            EmbedderModel(name, "fastembed", *facts, is_downloaded=False) for name, facts in SHORT.items()
        ]
        return EmbedderModels([LOCAL, *short], INSTALL)
    with using_fastembed():
        from fastembed import TextEmbedding

        register_e5()
        listed = TextEmbedding.list_supported_models()
    names = {full: short for short, full in SHORT_NAMES.items()}
    found = [
        _described(entry, names, cache) for entry in listed if not _UNSUITABLE.search(entry["description"])
    ]
    return EmbedderModels([LOCAL, *sorted(found, key=lambda model: (model.name not in SHORT, model.bytes))])


def _described(entry: dict[str, Any], names: dict[str, str], cache: Path) -> EmbedderModel:
    full = entry["model"].rpartition("/")[2]
    name = names.get(full, full)
    size, languages, licence = SHORT.get(name, (0, "", ""))
    if said := _LANGUAGES.search(entry["description"]):
        languages = said[1]
    folder = cache / f"models--{entry['sources']['hf'].replace('/', '--')}"
    return EmbedderModel(
        name=name,
        kind="fastembed",
        bytes=int(entry["size_in_GB"] * 1e9) or size,
        languages=languages,
        licence=entry["license"] or licence,
        is_downloaded=any(folder.glob(f"snapshots/*/{entry['model_file']}")),
        measured=MEASURED.get(full, ""),
    )
