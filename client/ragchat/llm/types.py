"""Messages, tool calls and token counts of requests to a model. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

OFFLINE = "offline"

# Tool arguments may not be nested deeper: they are shown, sent and stored recursively.
MAX_DEPTH = 100

Message = dict[str, Any]  # one message of the chat-completions API


class ModelEndpoint(Struct, frozen=True):
    """A model's name, and the endpoint that serves it."""

    name: str
    base_url: str
    key: str = ""

    def __repr__(self) -> str:  # never the key
        return f"ModelEndpoint({self.name!r}, {self.base_url!r})"


class Usage(Struct, frozen=True):
    """Tokens as reported by the model's server, summed over the requests of a turn; None: not reported.

    The estimates are always present.
    """

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    cached_tokens: int | None = 0  # of the prompt
    estimated_prompt_tokens: int = 0
    estimated_completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.prompt_tokens, other.prompt_tokens),
            _sum(self.completion_tokens, other.completion_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            self.estimated_prompt_tokens + other.estimated_prompt_tokens,
            self.estimated_completion_tokens + other.estimated_completion_tokens,
        )

    @property
    def is_reported(self) -> bool:
        return self.prompt_tokens is not None and self.completion_tokens is not None

    @property
    def best(self) -> tuple[int, int]:
        """The tokens of the prompts and of the answers, as reported or else as estimated."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        return (
            self.estimated_prompt_tokens if prompt is None else prompt,
            self.estimated_completion_tokens if completion is None else completion,
        )


NOT_REPORTED = Usage(None, None, None)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


class ToolRequest(Struct, frozen=True):
    """A tool call that the model requests. `arguments` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str

    def decoded(self) -> dict[str, Any]:
        """The arguments; none for an empty text. Raises ValueError as `decode_arguments`."""
        return decode_arguments(self.arguments or "{}")

    @property
    def is_readable(self) -> bool:
        """Whether the arguments are a JSON object."""
        try:
            decode_arguments(self.arguments)
        except ValueError:
            return False
        return True


def decode_arguments(text: str) -> dict[str, Any]:
    """The arguments of a tool. Raises ValueError if they are not a JSON object, or nested too deeply."""
    too_deep = ValueError(f"more than {MAX_DEPTH} levels are nested")
    try:
        arguments = msgspec.json.decode(text, type=dict[str, Any])
    except RecursionError:
        raise too_deep from None
    level: list[Any] = [arguments]
    for _ in range(MAX_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [value for values in inner for value in values if isinstance(value, (dict, list))]
        if not level:
            return arguments
    raise too_deep
