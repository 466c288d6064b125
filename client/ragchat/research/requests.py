"""Requests to the model within a token limit, and requests for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ragchat.llm import tokens
from ragchat.llm.client import Model
from ragchat.llm.completion import Completion
from ragchat.llm.types import Message, Usage

T = TypeVar("T")

NOT_JSON = "This is not the JSON that was asked for: {error}. Reply with that JSON alone."


class TokensUsedUp(Exception):
    """A request might take more tokens than are left."""


class Metered(Model):
    """A model whose requests together take about `most` tokens at most. Raises TokensUsedUp."""

    def __init__(self, model: Model, most: int, answer: int, usage: Usage) -> None:
        """`answer` is the expected maximum of an answer, `usage` the usage of earlier runs."""
        super().__init__(model.endpoint, model.settings)
        self.usage = usage
        self.most = most
        self._model = model
        self._answer = answer
        self._reserved = 0  # by the requests that are under way

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), **options: Any
    ) -> Completion:
        """As for `Model`."""
        size = tokens.about([*messages, *tools]) + self._answer
        if sum(self.usage.best) + self._reserved + size > self.most:
            raise TokensUsedUp
        self._reserved += size
        try:
            completion = await self._model.complete(messages, tools, **options)
        finally:
            self._reserved -= size
        self.usage += completion.usage
        return completion


async def ask_json(model: Model, messages: Sequence[Message], type: type[T]) -> T | None:
    """The model's reply as `type`; None if two replies are invalid. Raises ModelError, TokensUsedUp."""
    completion = await model.complete(messages)
    return await as_json(model, [*messages, {"role": "assistant", "content": completion.text}], type)


async def as_json(model: Model, messages: Sequence[Message], type: type[T]) -> T | None:
    """The last message decoded as `type`; if it is invalid, the model is asked once more."""
    try:
        return _decoded(messages[-1]["content"], type)
    except (msgspec.MsgspecError, RecursionError) as error:
        again: Message = {"role": "user", "content": NOT_JSON.format(error=error)}
    completion = await model.complete([*messages, again])
    try:
        return _decoded(completion.text, type)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _decoded(text: str, type: type[T]) -> T:
    """Decode the JSON object in a reply, which may be in a code block or between other text."""
    start, end = text.find("{"), text.rfind("}")
    return msgspec.json.decode(text[max(start, 0) : end + 1], type=type)
