"""Ollama's own API: the embedding models that it has, and pulling a model.

https://github.com/ollama/ollama/blob/main/docs/api.md. A pull resumes by itself, and checks digests.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from ragchat.llm.discovery import EMBEDDING_NAMES
from ragchat.llm.errors import LimitReached, PullFailed
from ragchat.settings import ModelSettings
from ragcommon.errors import DECODE_ERRORS

if TYPE_CHECKING:
    import httpx2

# For servers that do not say what a model can do.
EMBEDS = re.compile(EMBEDDING_NAMES, re.IGNORECASE)
# Seconds for a list of models.
LIST_SECONDS = 5.0
# The reports of one pull, if it takes a day.
MAX_PULL_BYTES = 1 << 28

AGAIN = "Run the command again: Ollama goes on where it stopped."

# Called with the bytes done and those in all.
OnBytes = Callable[[int, int], Awaitable[None]]


class OllamaEmbedder(NamedTuple):
    name: str
    bytes: int
    licence: str  # the first line of its text


class _Tag(Struct):
    name: str
    size: int = 0


class _Tags(Struct):
    models: list[_Tag] = []


class _Shown(Struct):
    license: str | list[str] = ""
    capabilities: list[str] | None = None


class _Pulling(Struct):
    """One line of the answer to a pull."""

    status: str = ""
    error: str = ""
    digest: str = ""
    total: int = 0
    completed: int = 0


async def embedders(settings: ModelSettings) -> list[OllamaEmbedder]:
    """The embedding models of Ollama; none if it does not answer as Ollama does."""
    import httpx2

    found: dict[str, OllamaEmbedder] = {}

    async def look(client: httpx2.AsyncClient, tag: _Tag) -> None:
        answer = await client.post(_url(settings, "/api/show"), json={"model": tag.name})
        shown = msgspec.json.decode(answer.content, type=_Shown)
        embeds = EMBEDS.search(tag.name) if shown.capabilities is None else "embedding" in shown.capabilities
        if embeds:
            text = shown.license if isinstance(shown.license, str) else " ".join(shown.license)
            found[tag.name] = OllamaEmbedder(tag.name, tag.size, text.strip().partition("\n")[0])

    try:
        with anyio.move_on_after(LIST_SECONDS):
            async with (
                await _client(settings, settings.message_bytes) as client,
                anyio.create_task_group() as tasks,
            ):
                answer = await client.get(_url(settings, "/api/tags"))
                for tag in msgspec.json.decode(answer.content, type=_Tags).models:
                    tasks.start_soon(look, client, tag)
    except* (httpx2.HTTPError, *DECODE_ERRORS, LimitReached):  # another program, or one that has ended
        pass
    return [found[name] for name in sorted(found)]


async def pull(name: str, settings: ModelSettings, on_bytes: OnBytes) -> None:
    """Have Ollama download a model. Raises PullFailed."""
    import httpx2

    layers: dict[str, tuple[int, int]] = {}
    status = ""
    try:
        async with (
            await _client(settings, MAX_PULL_BYTES) as client,
            client.stream("POST", _url(settings, "/api/pull"), json={"model": name}) as answer,
        ):
            async for line in answer.aiter_lines():
                event = msgspec.json.decode(line, type=_Pulling)
                if event.error:
                    raise PullFailed(name, event.error.rstrip("."))
                status = event.status
                if event.total:
                    layers[event.digest] = (event.completed, event.total)
                    done, total = (sum(column) for column in zip(*layers.values(), strict=True))
                    await on_bytes(done, total)
    except httpx2.HTTPError as error:
        raise PullFailed(name, f"the connection broke ({error or type(error).__name__})", AGAIN) from error
    except msgspec.DecodeError:
        raise PullFailed(name, f"{settings.ollama_url} does not answer as Ollama does") from None
    if status != "success":
        raise PullFailed(name, f"{settings.ollama_url} ended its answer before the model was complete", AGAIN)


def _url(settings: ModelSettings, path: str) -> str:
    return urljoin(settings.ollama_url, path)


async def _client(settings: ModelSettings, most: int) -> httpx2.AsyncClient:
    from ragchat.llm.bounded import bounded_client

    return await to_thread.run_sync(bounded_client, "Ollama", settings.ollama_url, most)
