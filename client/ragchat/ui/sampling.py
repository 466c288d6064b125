"""Let a server use the model: the user allows each request, and sees the reply before it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from ragchat.llm.client import Model
from ragchat.llm.errors import ModelError
from ragchat.llm.types import Message
from ragchat.sanitize import one_line
from ragchat.servers.permissions import Permissions
from ragchat.ui.dialog import Dialog
from ragmcp.errors import InputDeclined
from ragmcp.protocol.schema.input import Sample, SamplingResult

CHOICES = "[y]es, [s]ession, ne[v]er, [N]o"
# Characters of each message that are shown.
MAX_SHOWN = 2_000


class Sampling:
    """`find_model` gives the model in use, None without one; `show` prints a line."""

    def __init__(
        self,
        dialog: Dialog,
        permissions: Permissions,
        find_model: Callable[[], Awaitable[Model | None]],
        show: Callable[..., None],
    ) -> None:
        self._dialog = dialog
        self._permissions = permissions
        self._find_model = find_model
        self._show = show

    async def answer(self, server: str, request: Sample) -> SamplingResult:
        """The model's reply, if the user allows the request. Raises InputDeclined."""
        if not self._permissions.may_sample(server):
            raise InputDeclined("The user never lets this server use the model.")
        if request.tools:
            raise InputDeclined("The model of this chat does not call tools for a server.")
        if (model := await self._find_model()) is None:
            raise InputDeclined("No language model is configured here.")
        messages = _messages(request)
        async with self._dialog.exclusive() as read:
            self._show(
                f"{server} wants to ask {model.name}, for at most {request.max_tokens:,} tokens:", "name"
            )
            for message in messages:
                self._show(f"  {message['role']}: {_shown(message['content'])}")
            if server not in self._permissions.sampling:
                self._decide(server, await read(f"Let it ask? {CHOICES} "))
            try:
                limited = await model.limited(request.max_tokens)
                completion = await limited.complete(messages)
            except ModelError as error:
                raise InputDeclined(str(error)) from error
            self._show(f"{model.name} replied:\n{_shown(completion.text)}")
            if server not in self._permissions.sampling:
                reply = await read(f"Send this to {one_line(server)}? [Y]es, [n]o ")
                if reply is None or reply.strip().lower()[:1] not in ("", "y"):
                    raise InputDeclined("The user did not let the reply be sent.")
        return SamplingResult(
            role="assistant",
            content={"type": "text", "text": completion.text},
            model=model.name,
            stop_reason="maxTokens" if completion.cut_off else "endTurn",
        )

    def _decide(self, server: str, reply: str | None) -> None:
        """Raises InputDeclined unless the user allows it."""
        match (reply or "").strip().lower():
            case "y" | "yes":
                return
            case "s" | "session":
                self._permissions.sampling.add(server)
                return
            case "v" | "never":
                self._permissions.forbid_sampling(server)
        raise InputDeclined("The user did not let this server use the model.")


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


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text):,} characters)"
