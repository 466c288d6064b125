"""A server's request to use the model: what the user decides on, then the model's reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from ragchat.llm.client import Model
from ragchat.llm.completion import Completion
from ragchat.llm.errors import ModelError
from ragchat.llm.types import Message
from ragchat.servers.permissions import Permissions
from ragmcp.errors import InputDeclined
from ragmcp.protocol.schema.input import Sample, SamplingResult


@dataclass(frozen=True)
class ModelRequest:
    """What `server` wants to ask `model`. Make it with `of`; every method raises InputDeclined."""

    server: str
    model: Model
    messages: list[Message]
    max_tokens: int
    permissions: Permissions

    @classmethod
    async def of(
        cls,
        server: str,
        request: Sample,
        permissions: Permissions,
        find_model: Callable[[], Awaitable[Model | None]],
    ) -> ModelRequest:
        if not permissions.may_sample(server):
            raise InputDeclined("The user never lets this server use the model.")
        if request.tools:
            raise InputDeclined("The model of this chat does not call tools for a server.")
        if (model := await find_model()) is None:
            raise InputDeclined("No language model is configured here.")
        return cls(server, model, _messages(request), request.max_tokens, permissions)

    @property
    def is_allowed(self) -> bool:
        """Whether the user need not be asked in this session."""
        return self.server in self.permissions.sampling

    def decide(self, decision: str) -> None:
        """`once`, `session`, `never`; any other word declines."""
        match decision:
            case "once":
                return
            case "session":
                self.permissions.sampling.add(self.server)
                return
            case "never":
                self.permissions.forbid_sampling(self.server)
        raise InputDeclined("The user did not let this server use the model.")

    async def complete(self) -> Completion:
        try:
            return await (await self.model.limited(self.max_tokens)).complete(self.messages)
        except ModelError as error:
            raise InputDeclined(str(error)) from error

    def result(self, completion: Completion, *, may_send: bool) -> SamplingResult:
        if not may_send:
            raise InputDeclined("The user did not let the reply be sent.")
        return SamplingResult(
            role="assistant",
            content={"type": "text", "text": completion.text},
            model=self.model.name,
            stop_reason="maxTokens" if completion.cut_off else "endTurn",
        )


def _messages(request: Sample) -> list[Message]:
    """The request in the form of the chat-completions API. Raises InputDeclined."""
    messages: list[Message] = []
    if request.system_prompt is not UNSET:
        messages.append({"role": "system", "content": request.system_prompt})
    for message in request.messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        role = message.get("role")
        messages.append({"role": role if role == "assistant" else "user", "content": _text(blocks)})
    return messages


def _text(blocks: Sequence[Any]) -> str:
    try:
        return "\n".join(block.text for block in msgspec.convert(blocks, list[_TextBlock]))
    except msgspec.ValidationError:
        raise InputDeclined("The model of this chat takes only text from a server.") from None


class _TextBlock(msgspec.Struct, tag="text"):
    text: str
