"""The border to the openai package: its exceptions become ours.

Imports openai only for type checkers: by the time an exception of it arrives here, it is loaded.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ragchat.errors import (
    BrokenStream,
    ContextOverflow,
    KeyRejected,
    MissingKey,
    ModelBroken,
    ModelError,
    ModelRefused,
    ModelTimedOut,
    ModelUnreachable,
    QuotaUsedUp,
    RateLimited,
    UnknownModel,
)
from ragchat.sanitize import one_line
from ragchat.types import ModelPlace
from ragconfig.redaction import discreet

if TYPE_CHECKING:
    import openai

# How OpenAI, Azure, vLLM, llama.cpp, Ollama and LM Studio say that a prompt is too long.
_OVERFLOW = re.compile(
    r"context[ _](length|window|size)|maximum context|n_ctx|too many (input )?tokens|prompt is too long"
    r"|exceeds? the (model's )?(available )?context",
    re.IGNORECASE,
)
# A server may send a whole page.
_CHARACTERS = 300


def mapped(
    error: Exception, place: ModelPlace, *, tokens: int = 0, seconds: float = 0.0, begun: bool = False
) -> ModelError:
    """Our error for one of openai's (or for what it lets through), at the model's `place`.

    `tokens` is the size of the prompt, `seconds` the time allowed, `begun` whether the answer had begun.
    Anything that is none of these is raised as it is.
    """
    import openai

    if isinstance(error, openai.APITimeoutError):
        return ModelTimedOut(place.base_url, seconds)
    if isinstance(error, openai.APIConnectionError):
        reason = _reason(error)
        return BrokenStream(place.base_url, reason) if begun else ModelUnreachable(place.base_url, reason)
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, place, tokens)
    if isinstance(error, openai.APIError):
        if _OVERFLOW.search(error.message):
            return ContextOverflow(place.name, tokens)
        return ModelBroken(place.base_url, _part(error.message))
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return ModelBroken(place.base_url, "it sent something that is not JSON")
    raise error


def _of_status(error: openai.APIStatusError, place: ModelPlace, tokens: int) -> ModelError:
    status, message = error.status_code, _part(_message(error))
    if error.code == "context_length_exceeded" or status == 413 or _OVERFLOW.search(message):
        return ContextOverflow(place.name, tokens)
    if status == 401:
        return KeyRejected(place.base_url) if place.key else MissingKey(place.name)
    if status == 404 and (error.code == "model_not_found" or "model" in message.lower()):
        return UnknownModel(place.name, place.base_url)
    # OpenAI says it with the status of a server that is busy; others with 402, "Payment Required".
    if status == 402 or "insufficient_quota" in (error.code, error.type):
        return QuotaUsedUp(place.base_url, message)
    if status == 429:
        return RateLimited(place.base_url, message, _seconds(error.response.headers.get("retry-after")))
    if status >= 500:
        return ModelBroken(place.base_url, f"{status}, {message}")
    return ModelRefused(place.base_url, status, message)


def _message(error: openai.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return error.message


def _reason(error: BaseException) -> str:
    """What lies at the bottom of a connection error."""
    while error.__cause__ is not None:
        error = error.__cause__
    return _part(str(error)) or type(error).__name__


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:  # Retry-After may also be a date
        return None


def _part(text: str) -> str:
    """Foreign text as a part of a sentence: one line, bounded, without a full stop."""
    return one_line(discreet(text), _CHARACTERS).rstrip(".")
