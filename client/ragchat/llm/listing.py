"""The models that a server lists, and the context length that it reports for one of them.

It is in the list (vLLM, OpenRouter, llama.cpp), in /props (llama.cpp), or in /api/ps for loaded models
(Ollama). llama-cpp-python and OpenAI do not report it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urljoin

from msgspec import Struct


class ListedModel(Struct):
    """All fields except `id` are extensions of the API, and may have any type."""

    id: str
    owned_by: Any = None
    max_model_len: Any = None
    context_length: Any = None
    meta: Any = None


class ModelList(Struct):
    """The response of /models."""

    data: list[ListedModel]


async def context_of(
    model: ListedModel, base_url: str, get: Callable[[str], Awaitable[object]]
) -> int | None:
    """The context length in tokens, if the server reports it. Raises what `get` raises."""
    match model.owned_by:
        case "llamacpp":
            props = await get(urljoin(base_url, "/props"))
            listed = [_at(props, "default_generation_settings", "n_ctx"), _at(model.meta, "n_ctx")]
        case "library":  # Ollama
            loaded = _at(await get(urljoin(base_url, "/api/ps")), "models")
            listed = [
                _at(one, "context_length")
                for one in (loaded if isinstance(loaded, list) else [])
                if _at(one, "name") == model.id
            ]
        case _:
            listed = [model.max_model_len, model.context_length]
    return next((size for size in listed if isinstance(size, int) and size > 0), None)


def _at(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
