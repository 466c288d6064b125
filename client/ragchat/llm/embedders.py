"""What can embed: the models of the memory's machine, of Ollama, and of the configured endpoints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import aclosing, suppress
from pathlib import Path

import anyio
from msgspec import Struct
from msgspec.structs import replace

from ragchat.errors import UnknownEmbedder
from ragchat.llm import ollama
from ragchat.llm.client import Model
from ragchat.llm.discovery import same_tag, with_tag
from ragchat.llm.errors import ModelError
from ragchat.llm.types import ModelEndpoint
from ragchat.settings import ModelSettings
from ragcommon.contract.maintenance import EmbedderModels
from ragcommon.files.uris import without_secrets
from ragconfig.home import user_path
from ragconfig.keys import OPENAI_URL, read_key
from ragconfig.settings import Settings
from ragconfig.writing import Value

PULLED = "ollama:"


class Choice(Struct):
    """`changes` are the settings that choose it. `bytes` are those of its files; 0: unknown, or none.

    `needs` is a command to run first.
    """

    name: str
    where: str
    changes: dict[str, Value]
    bytes: int = 0
    languages: str = ""
    licence: str = ""
    is_here: bool = True
    needs: str = ""
    measured: str = ""
    in_use: bool = False


async def choices(settings: Settings, here: EmbedderModels) -> list[Choice]:
    """`here` are the models that embed on the machine of the memory. Raises SettingsError."""
    found = [
        Choice(
            one.name,
            "ragchat" if one.kind == "local" else one.kind,
            _changes(one.kind, "" if one.kind == "local" else one.name),
            *(one.bytes, one.languages, one.licence, one.is_downloaded),
            needs=here.install if one.kind != "local" else "",
            measured=one.measured,
        )
        for one in here.models
    ]
    model = settings.table("model", ModelSettings)
    found += [
        Choice(
            one.name, "Ollama", _changes("openai", one.name, model.ollama_url), one.bytes, licence=one.licence
        )
        for one in await ollama.embedders(model)
    ]
    table = settings.tables["embedder"]
    for url, key in _endpoints(settings, model).items():
        found += [
            Choice(name, without_secrets(url), _changes("openai", name, url))
            for name in await _listed(url, key, model)
        ]
    current = table["model"] or table.get(f"{table['kind']}_model", "")
    used = next((one for one in found if _is(one, table["kind"], current, table["base_url"])), None)
    if used is None:
        where = without_secrets(table["base_url"]) or table["kind"]
        used = Choice(current, where, _changes(table["kind"], current))
        found.insert(0, used)
    used.in_use = True
    return sorted(found, key=lambda one: not one.is_here)


def _endpoints(settings: Settings, model: ModelSettings) -> dict[str, str]:
    """The keys of the endpoints to ask, by URL: those of the settings, or else OpenAI's if there is a key."""
    table = settings.tables["embedder"]
    keys = {
        model.base_url or os.environ.get("OPENAI_BASE_URL", ""): read_key(model.key_file),
        table["base_url"]: read_key(table["key_file"]),
    }
    if not any(keys) and keys[""]:
        keys[OPENAI_URL] = keys[""]
    return {url: key for url, key in keys.items() if url and url != model.ollama_url}


def _changes(kind: str, model: str, base_url: str = "") -> dict[str, Value]:
    return {"embedder.kind": kind, "embedder.model": model, "embedder.base_url": base_url}


def _is(choice: Choice, kind: str, model: str, base_url: str) -> bool:
    changes = choice.changes
    if kind == "local" or changes["embedder.kind"] != kind:
        return changes["embedder.kind"] == kind
    is_there = not base_url or changes["embedder.base_url"] == base_url
    return is_there and changes["embedder.model"] == model


async def _listed(url: str, key: str, settings: ModelSettings) -> list[str]:
    """The embedding models of an endpoint; none if it does not answer."""
    async with aclosing(Model(ModelEndpoint("", url, key), replace(settings, retries=0))) as model:
        with suppress(ModelError), anyio.move_on_after(ollama.LIST_SECONDS):
            return [name for name in await model.names() if ollama.EMBEDS.search(name)]
    return []


def named(name: str, found: Sequence[Choice], settings: Settings) -> Choice:
    """The choice of that name; `ollama:NAME` need not be there yet, a path is a folder with a model.

    Raises UnknownEmbedder.
    """
    names = [one.name for one in found]
    if known := same_tag(name.removeprefix(PULLED), names):
        return found[names.index(known)]
    if name.startswith(PULLED):
        pulled = with_tag(name.removeprefix(PULLED))
        return Choice(
            pulled,
            "Ollama",
            _changes("openai", pulled, settings.tables["model"]["ollama_url"]),
            is_here=False,
        )
    if name.startswith((".", "~", os.sep)) or Path(name).is_absolute():
        folder = str(user_path(name))
        return Choice(folder, "a folder", _changes("fastembed", folder))
    raise UnknownEmbedder.with_nearest(name, names)
