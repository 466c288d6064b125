"""Finds the servers of models that run on this machine, and those that a key or a setting names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from itertools import compress
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from ragchat.llm.client import PROBE, Model
from ragchat.llm.discovery import chat_models, listens
from ragchat.llm.errors import ModelError
from ragchat.llm.ollama import LIST_SECONDS
from ragchat.llm.types import ModelEndpoint
from ragchat.settings import ModelSettings
from ragcommon.concurrency import gathered
from ragcommon.files.uris import without_secrets
from ragconfig.keys import OPENAI_URL, read_key

# Where programs listen unless they are told otherwise.
USUAL = (
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
)
# What programs call the owner of a model.
OWNERS = {
    "library": "Ollama",
    "llamacpp": "llama.cpp",
    "organization_owner": "LM Studio",
    "vllm": "vLLM",
}
# For a short answer, before which a model may have to be loaded.
TRY_SECONDS = 60.0
# Enough for a short answer.
TRY_TOKENS = 16


class ModelServer(Struct):
    """A server that was found. `models` are those that chat; `problem` says why it cannot be used."""

    name: str
    base_url: str
    models: list[str] = []
    problem: str = ""
    takes_key: bool = False


class Trial(Struct):
    """One short question to a model. `problem` is a sentence; "": it has answered in `seconds`."""

    model: str
    seconds: float = 0.0
    problem: str = ""


async def find_servers(settings: ModelSettings, environ: Mapping[str, str]) -> list[ModelServer]:
    """All at once. The key is sent only where a setting or OPENAI_BASE_URL names the server, and to OpenAI.

    Raises SettingsError for an unreadable key file.
    """
    key = read_key(settings.key_file, environ=environ)
    named = settings.base_url or environ.get("OPENAI_BASE_URL", "")
    places = {url: name for name, url in reversed([("Ollama", settings.ollama_url), *USUAL])}
    servers = [ModelServer(name, url) for url, name in reversed(places.items()) if url != named]
    if named:
        servers.insert(0, ModelServer(places.get(named, "endpoint"), named, takes_key=True))
    elif key:
        servers.append(ModelServer("OpenAI", OPENAI_URL, takes_key=True))

    async def look(server: ModelServer) -> bool:
        if server.base_url != OPENAI_URL and not await listens(server.base_url, settings.ollama_seconds):
            if not server.takes_key:
                return False
            server.problem = f"Nothing listens at {server.base_url}."
        else:
            await _list(server, key, settings)
        server.problem = without_secrets(server.problem)
        return True

    return [*compress(servers, await gathered(look, servers))]


async def try_model(
    server: ModelServer, name: str, settings: ModelSettings, environ: Mapping[str, str]
) -> Trial:
    """Ask a model one short question."""
    key = read_key(settings.key_file, environ=environ) if server.takes_key else ""
    endpoint = ModelEndpoint(name, server.base_url, key)
    started = anyio.current_time()
    try:
        async with aclosing(Model(endpoint, replace(settings, retries=0))) as model:
            with anyio.fail_after(TRY_SECONDS):
                await (await model.limited(TRY_TOKENS)).complete(PROBE)
    except ModelError as error:
        return Trial(name, problem=without_secrets(str(error)))
    except TimeoutError:
        return Trial(name, problem=f"{name} did not answer within {TRY_SECONDS:g} s.")
    return Trial(name, anyio.current_time() - started)


async def _list(server: ModelServer, key: str, settings: ModelSettings) -> None:
    endpoint = ModelEndpoint("", server.base_url, key if server.takes_key else "")
    owners: list[Any] = []
    try:
        async with aclosing(Model(endpoint, replace(settings, retries=0))) as model:
            with anyio.fail_after(LIST_SECONDS):
                listed = await model.listed()
        owners = [one.owned_by for one in listed]
        server.models = chat_models([one.id for one in listed])
        server.problem = "" if server.models else f"{server.base_url} lists no chat model."
    except ModelError as error:
        server.problem = str(error)
    except TimeoutError:
        server.problem = f"{server.base_url} sent no list of models within {LIST_SECONDS:g} s."
    if names := [OWNERS[owner] for owner in owners if isinstance(owner, str) and owner in OWNERS]:
        server.name = names[0]
