"""The files of ONNX models, for fastembed: in a folder that the user names, or in the cache, by a name.

A named model is downloaded only if the caller says so. Heavy: importing fastembed takes a second.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.writing import private_folder
from ragconfig.home import UnknownHome, user_path
from ragmemory.errors import first_line

logger = logging.getLogger(__name__)

# Where exporters put the model in its folder, the usual place first.
USUAL_FILES = ("onnx/model.onnx", "model.onnx")
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
# sentence-transformers' records of how the vectors of tokens become one, and of prefixes.
POOLING = "1_Pooling/config.json"
PROMPTS = "config_sentence_transformers.json"
# The first and the last bytes of a file, which identify it: a gigabyte would take a second to hash.
HASHED_BYTES = 1 << 20
SHOWN_NAMES = 3
# How a command installs fastembed.
INSTALL = f"{sys.executable} -m pip install 'ragchat[fastembed]'"
# The digests after which the Hub's cache names its files: SHA-256 of large ones, of git's for others.
SHA256, GIT = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{40}")

# Called with the bytes received and those in all, in any thread, while a model is downloaded.
on_bytes: ContextVar[Callable[[int, int], None] | None] = ContextVar("on_bytes", default=None)


class ModelUnusable(Exception):
    """Why a model cannot be used, as the end of a sentence, and what to do about it."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def as_folder(model: str) -> Path | None:
    """The folder that a setting names, absolute; None if it names a model. Raises UnknownHome."""
    is_path = model.startswith((".", "~", os.sep)) or Path(model).is_absolute()
    return user_path(model) if is_path else None


def identity_of(model: str) -> str:
    """Names a model in the memory: two models with different vectors have different identities. Light."""
    try:
        folder = as_folder(model)
        if folder is None:
            return model.rpartition("/")[2].lower()
        digest = hashlib.sha256()
        for name in (model_file(folder), TOKENIZER, TOKENIZER_CONFIG, POOLING, PROMPTS):
            file = folder / name
            if file.exists():
                size = file.stat().st_size
                digest.update(f"{name} {size}\n".encode())
                with file.open("rb") as content:
                    digest.update(content.read(HASHED_BYTES))
                    content.seek(max(0, size - HASHED_BYTES))
                    digest.update(content.read(HASHED_BYTES))
        return f"{folder.name}@{digest.hexdigest()[:8]}"
    except (OSError, ModelUnusable):  # Loading the model says what is wrong.
        return model


def model_file(folder: Path) -> str:
    """The ONNX file of a folder, relative to it. Raises ModelUnusable."""
    if not folder.is_dir():
        raise ModelUnusable(f"the folder {folder} does not exist", "Name the folder of a model.")
    found = [name for name in USUAL_FILES if (folder / name).is_file()]
    others = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.onnx"))
    if not found and len(others) != 1:
        holds = f"several ONNX files ({', '.join(others[:SHOWN_NAMES])})" if others else "no ONNX file"
        raise ModelUnusable(f"{folder} holds {holds}", f"It should hold one model, as {USUAL_FILES[0]}.")
    return (found or others)[0]


def read_json(path: Path) -> dict[str, Any]:
    """A file of the model's folder; empty if there is none. Raises ModelUnusable."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict)
    except FileNotFoundError:
        return {}
    except (OSError, *DECODE_ERRORS) as error:
        raise ModelUnusable(f"{path} cannot be read ({error})", "Copy or download the model again.") from None


@contextmanager
def using_fastembed() -> Iterator[None]:
    """For all calls of fastembed: whatever they raise is raised as ModelUnusable."""
    if importlib.util.find_spec("fastembed") is None:
        raise ModelUnusable("the package fastembed is not installed", f"Install it: {INSTALL}")
    try:
        from loguru import logger as fastembeds

        # Its exceptions repeat what it logs.
        fastembeds.disable("fastembed")
        yield
    except UnknownHome as error:
        raise ModelUnusable(f"there is no folder {error.filename}", "Name the folder of a model.") from None
    except ModelUnusable:
        raise
    except Exception as error:  # From fastembed, onnxruntime, tokenizers and a damaged or unusual model.
        reason = f"it cannot be loaded ({first_line(error)})"
        raise ModelUnusable(reason, "Download or export the model again, or choose another one.") from error


def named_model(family: Any, wanted: str, cache: Path, *, may_download: bool) -> tuple[str, Path]:
    """A model named with or without its organization: its name in fastembed's list, and its folder.

    Files that are not in `cache` are downloaded if that is allowed. Raises ModelUnusable.
    """
    entry = _listed(family, wanted)
    name, source = entry["model"], entry["sources"]["hf"]
    files = [entry["model_file"], *entry["additional_files"]]
    fetch = partial(family.download_files_from_huggingface, source, str(cache), files)
    try:
        folder = Path(fetch(local_files_only=True))
        if all((folder / file).exists() for file in files):
            return name, folder
    except Exception as error:
        logger.debug("%s is not in %s: %s", source, cache, first_line(error))
    size = f"{entry['size_in_GB'] * 1000:,.0f} MB"
    if not may_download:
        reason = f"its files ({size}) are not on this machine yet"
        raise ModelUnusable(reason, "`ragchat memory reembed` downloads them, as does loading a document.")
    logger.warning("Downloading the model %s (%s) from %s to %s", name, size, source, cache)
    private_folder(cache)
    try:
        folder = Path(fetch(local_files_only=False, **_progress_arguments()))
    except Exception as error:
        from huggingface_hub.constants import ENDPOINT

        reason = f"{ENDPOINT}/{source} cannot be downloaded ({first_line(error)})"
        hint = f"Check the network, or name the folder of a model on this machine. Downloads go to {cache}."
        raise ModelUnusable(reason, hint) from error
    _check_digests(folder)
    logger.warning("The model %s is complete.", name)
    return name, folder


def _listed(family: Any, wanted: str) -> dict[str, Any]:
    """The entry of a model in fastembed's list. Raises ModelUnusable."""
    models: list[dict[str, Any]] = family.list_supported_models()
    entries = {entry["model"].lower(): entry for entry in models}
    entries |= {name.rpartition("/")[2]: entry for name, entry in entries.items()}
    if found := entries.get(wanted.lower()):
        return found
    near = dict.fromkeys(entries[one]["model"] for one in get_close_matches(wanted.lower(), entries, 6, 0.4))
    hint = f"Near names: {', '.join([*near][:SHOWN_NAMES])}. " if near else ""
    reason = f"fastembed knows {len(models)} models, and this is none of them"
    raise ModelUnusable(reason, f"{hint}A folder with an ONNX model works too.")


def _progress_arguments() -> dict[str, Any]:
    """Arguments of a download that report its progress to `on_bytes`."""
    tell = on_bytes.get()
    if tell is None:
        return {}
    from huggingface_hub.utils.tqdm import tqdm

    plain: Any = tqdm

    def add(bar: Any, n: float | None = 1) -> None:
        bar.n += int(n or 0)
        if bar.name == "huggingface_hub.snapshot_download":  # the bytes of all files together
            tell(bar.n, int(bar.total or 0))

    def begin(bar: Any, *arguments: Any, name: str | None = None, **options: Any) -> None:
        plain.__init__(bar, *arguments, name=name, **{**options, "disable": True})
        bar.name = name

    return {"tqdm_class": type("Counter", (tqdm,), {"__init__": begin, "update": add})}


def _check_digests(folder: Path) -> None:
    """Compare downloaded files with the digests in their names; delete what differs. Raises ModelUnusable.

    The Hub's client compares sizes only. A cache without links has no such names.
    """
    for file in folder.rglob("*"):
        blob = file.resolve()
        if not blob.is_file():
            continue
        if SHA256.fullmatch(blob.name):
            digest = hashlib.sha256()
        elif GIT.fullmatch(blob.name):
            digest = hashlib.sha1(f"blob {blob.stat().st_size}\0".encode(), usedforsecurity=False)
        else:
            continue
        with blob.open("rb") as content:
            while part := content.read(HASHED_BYTES):
                digest.update(part)
        if digest.hexdigest() != blob.name:
            blob.unlink()
            reason = f"{file.name} was damaged on its way: it does not have the digest that was announced"
            raise ModelUnusable(reason, "Run the command again: it downloads this file once more.")
