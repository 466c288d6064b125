"""Resolves `model = "auto"`, "offline" or a model's name to a model and its endpoint.

Servers are contacted only where needed; never for "offline".
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import anyio

from ragchat.llm.client import Model
from ragchat.llm.errors import MissingKey, ModelError, NoChatModel, UnknownModel
from ragchat.llm.types import OFFLINE, ModelEndpoint
from ragchat.settings import ModelSettings
from ragconfig.keys import OPENAI_URL, read_key
from ragconfig.redaction import add_secrets_of

AUTO = "auto"

# Suggestions for an unknown model name.
NEAR_NAMES = 3

EMBEDDING_NAMES = r"embed|minilm|\bbge|\bgte|\be5-"
# Servers list these models together with chat models; the API does not distinguish them.
_NOT_FOR_CHAT = re.compile(
    EMBEDDING_NAMES + r"|rerank|whisper|tts|audio|realtime|transcribe|dall-e|image|sora"
    r"|moderation|davinci|babbage|codex|search|instruct-0914|guard",
    re.IGNORECASE,
)


async def resolve(
    name: str, settings: ModelSettings, environ: Mapping[str, str] = os.environ
) -> Model | None:
    """The model for `name`: "auto", "offline", or the name of a model. None: offline.

    "auto" is offline if neither a key nor an endpoint is configured and no Ollama with a chat model answers.
    A named model is used at the configured endpoint, else at an Ollama that has it, else at OpenAI. Raises
    ModelError, and SettingsError for an unreadable key file.
    """
    if name == OFFLINE:
        return None
    base_url = settings.base_url or environ.get("OPENAI_BASE_URL", "")
    key = read_key(settings.key_file, environ=environ)
    add_secrets_of(base_url)
    if base_url:
        return await _at(ModelEndpoint(name, base_url, key), settings)
    if name == AUTO:
        if key:
            return Model(ModelEndpoint(settings.openai_model, OPENAI_URL, key), settings)
        return await _at_ollama(name, settings)
    try:
        if model := await _at_ollama(name, settings):
            return model
    except UnknownModel as error:
        if error.near and not key:
            raise
    if not key:
        raise MissingKey(name)
    return Model(ModelEndpoint(name, OPENAI_URL, key), settings)


async def _at(endpoint: ModelEndpoint, settings: ModelSettings) -> Model:
    """A model at the configured endpoint; for "auto", one of those that it lists."""
    model = Model(endpoint, settings)
    if endpoint.name == AUTO:
        try:
            names = await model.names()
            chosen = choose(names, settings.openai_model)
            if chosen is None:
                raise NoChatModel(endpoint.base_url)
        except BaseException:
            await model.aclose()
            raise
        model.endpoint = ModelEndpoint(chosen, endpoint.base_url, endpoint.key)
        model.others = 0 if chosen == settings.openai_model else len(chat_models(names)) - 1
    return model


async def _at_ollama(name: str, settings: ModelSettings) -> Model | None:
    """The named model, or for "auto" the most recent one. None without an Ollama that has a chat model.

    Raises UnknownModel if Ollama has only other models.
    """
    if not await listens(settings.ollama_url, settings.ollama_seconds):
        return None
    model = Model(ModelEndpoint(name, settings.ollama_url, ""), settings)
    try:
        names = await model.names()
    except ModelError:  # another program listens there
        names = []
    chosen = choose(names, "") if name == AUTO else same_tag(name, names)
    if chosen is None:
        await model.aclose()
        if name != AUTO:
            raise unknown_model(model.endpoint, names)
        return None
    model.endpoint = ModelEndpoint(chosen, settings.ollama_url, "")
    model.others = len(chat_models(names)) - 1 if name == AUTO else 0
    return model


async def with_near_names(error: UnknownModel, model: Model) -> UnknownModel:
    """The same error with suggestions from the server's models."""
    try:
        names = await model.names()
    except ModelError:
        return error
    return unknown_model(ModelEndpoint(error.model, error.base_url), names)


def unknown_model(endpoint: ModelEndpoint, names: list[str]) -> UnknownModel:
    """The error for a model that is not among the `names` that a server lists."""
    names = chat_models(names)
    wanted = endpoint.name.lower()
    parts = [name for name in names if wanted in name.lower()]
    near = parts or difflib.get_close_matches(wanted, names, n=NEAR_NAMES, cutoff=0.5)
    return UnknownModel(endpoint.name, endpoint.base_url, near[:NEAR_NAMES], names)


def chat_models(names: list[str]) -> list[str]:
    """Without models that do not chat, as far as their names tell."""
    return [name for name in names if not _NOT_FOR_CHAT.search(name)]


def choose(names: list[str], preferred: str) -> str | None:
    """The preferred model if it is there, else the first chat model."""
    if preferred in names:
        return preferred
    return next(iter(chat_models(names)), None)


def same_tag(name: str, names: list[str]) -> str | None:
    """The listed name of a model: Ollama lists `llama3.2:latest` for `llama3.2`."""
    return next((known for known in names if known in (name, with_tag(name))), None)


def with_tag(name: str) -> str:
    """A model's name as Ollama lists it."""
    return name if ":" in name else f"{name}:latest"


async def listens(url: str, seconds: float) -> bool:
    """Whether something accepts connections at the URL's port."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with anyio.move_on_after(seconds):
        try:
            stream = await anyio.connect_tcp(parts.hostname or "", port)
        except OSError:
            return False
        await stream.aclose()
        return True
    return False
