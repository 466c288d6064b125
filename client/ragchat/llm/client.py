"""A language model behind an OpenAI-compatible endpoint: messages in, a streamed answer out.

The openai package takes half a second to import. That happens in a thread, at the first request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import anyio

from ragchat.llm.completion import Assembly, Completion
from ragchat.llm.errors import BrokenStream, ModelError, mapped
from ragchat.settings import ModelSettings
from ragchat.types import Message, ModelPlace

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionChunk

    Chunks: TypeAlias = openai.AsyncStream[ChatCompletionChunk]

CONNECT_SECONDS = 5.0
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Model:
    """A model by its name and endpoint. Every method raises ModelError."""

    def __init__(self, place: ModelPlace, settings: ModelSettings) -> None:
        self.place = place
        self.settings = settings
        self._client: openai.AsyncOpenAI | None = None
        self._refused: set[str] = set()  # optional arguments that this server has refused

    @property
    def name(self) -> str:
        return self.place.name

    async def load(self) -> openai.AsyncOpenAI:
        """The client, created at first use."""
        if self._client is None:
            self._client = await anyio.to_thread.run_sync(_make_client, self.place, self.settings)
        return self._client

    async def aclose(self) -> None:
        if self._client is not None:
            with anyio.CancelScope(shield=True):
                await self._client.close()
            self._client = None

    async def names(self) -> list[str]:
        """The models that the server lists."""
        client = await self.load()
        try:
            return [model.id async for model in client.models.list()]
        except Exception as error:
            raise self._mapped(error) from error

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] = (),
        *,
        on_text: Callable[[str], None],
        tokens: int = 0,
    ) -> Completion:
        """Request an answer. `on_text` gets its text in pieces, as they arrive.

        `tokens` is the estimated size of the prompt, for the sentence of ContextOverflow. A request whose
        stream breaks before the first piece is repeated.
        """
        for attempts_left in range(self.settings.retries, -1, -1):
            assembly = Assembly(on_text)
            try:
                await self._receive(await self._open(messages, tools, tokens), assembly, tokens)
                break
            except BrokenStream:
                if assembly.begun or not attempts_left:
                    raise
        return assembly.completion()

    async def _receive(self, stream: Chunks, assembly: Assembly, tokens: int) -> None:
        try:
            while (chunk := await self._next(stream, tokens)) is not None:
                assembly.add(chunk)
        finally:
            with anyio.CancelScope(shield=True):
                await stream.close()
        if assembly.finish_reason is None:
            raise BrokenStream(self.place.base_url, "the answer has no end")

    async def _next(self, stream: Chunks, tokens: int) -> ChatCompletionChunk | None:
        """The next chunk; None after the last one."""
        try:
            return await anext(stream, None)
        except Exception as error:
            raise self._mapped(error, tokens, begun=True) from error

    async def _open(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], tokens: int
    ) -> Chunks:
        client = await self.load()
        optional: dict[str, Any] = {"stream_options": {"include_usage": True}, "tools": list(tools)}
        while True:
            extra = {name: value for name, value in optional.items() if value and name not in self._refused}
            try:
                create: Any = client.chat.completions.create
                stream: Chunks = await create(
                    model=self.place.name, messages=list(messages), stream=True, **extra
                )
                return stream
            except Exception as error:
                refused = next((name for name in extra if _complains_of(error, name)), None)
                if refused is None:
                    raise self._mapped(error, tokens) from error
                self._refused.add(refused)

    def _mapped(self, error: Exception, tokens: int = 0, *, begun: bool = False) -> ModelError:
        return mapped(error, self.place, tokens=tokens, seconds=self.settings.timeout_seconds, begun=begun)


def _make_client(place: ModelPlace, settings: ModelSettings) -> openai.AsyncOpenAI:
    import httpx2
    import openai

    local = urlsplit(place.base_url).hostname in LOOPBACK
    return openai.AsyncOpenAI(
        base_url=place.base_url,
        api_key=place.key or "none",  # the package requires one; local servers ignore it
        max_retries=settings.retries,
        timeout=httpx2.Timeout(settings.timeout_seconds, connect=CONNECT_SECONDS),
        # A proxy of the environment cannot reach a server on this machine.
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False) if local else None,
    )


def _complains_of(error: Exception, argument: str) -> bool:
    """Whether a server refused a request because of one argument, such as `tools` for some Ollama models."""
    import openai

    return isinstance(error, (openai.BadRequestError, openai.UnprocessableEntityError)) and (
        argument in error.message
    )
