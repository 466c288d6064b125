"""One language model behind an OpenAI-compatible endpoint: messages in, pieces of the answer out.

Not the choice of the model (`endpoints`), nor what is said to it (`prompting`). The openai package takes half
a second to import; that happens in a thread, at the first use.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from ragchat.errors import BrokenStream, ModelError
from ragchat.llm.reasoning import WithoutThoughts
from ragchat.settings import ModelSettings
from ragchat.types import Delta, Message, ModelPlace, Notice, ToolRequest, Usage

if TYPE_CHECKING:
    import openai
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

Piece = Delta | ToolRequest | Usage | Notice

# What to say about an answer that did not come to its own end, by the API's finish_reason.
CUT_OFF = {
    "length": "The answer was cut off: the model reached its limit of tokens.",
    "content_filter": "The answer was cut off by the server's content filter.",
}
CONNECT_SECONDS = 5.0
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Model:
    """A named model at its place. Every method raises ModelError."""

    def __init__(self, place: ModelPlace, settings: ModelSettings) -> None:
        self.place = place
        self.settings = settings
        self._client: openai.AsyncOpenAI | None = None
        self._refused: set[str] = set()  # optional arguments that this server does not know

    @property
    def name(self) -> str:
        return self.place.name

    async def load(self) -> openai.AsyncOpenAI:
        """The client, made at first use."""
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

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), *, tokens: int = 0
    ) -> AsyncGenerator[Piece, None]:
        """One answer: text as it comes, usage where the server reports it, then the tools it asks for.

        A notice tells of an answer that the server cut off.

        `tokens` is the estimated size of the prompt, for the error that tells of an overflow. A request that
        failed is repeated as long as nothing of the answer was handed out.
        """
        for attempts_left in range(self.settings.retries, -1, -1):
            begun = False
            try:
                async with aclosing(self._attempt(messages, tools, tokens)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except BrokenStream:
                if begun or not attempts_left:
                    raise

    async def _attempt(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], tokens: int
    ) -> AsyncGenerator[Piece, None]:
        stream = await self._open(messages, tools, tokens)
        requests = _ToolRequests()
        answer = WithoutThoughts()
        finish = None
        try:
            async for chunk in stream:
                if chunk.usage is not None:
                    yield _usage(chunk.usage)
                for choice in chunk.choices[:1]:
                    finish = finish or choice.finish_reason
                    if text := answer.feed(choice.delta.content or ""):
                        yield Delta(text)
                    requests.add(choice.delta.tool_calls or ())
        except Exception as error:
            raise self._mapped(error, tokens, begun=True) from error
        finally:
            with anyio.CancelScope(shield=True):
                await stream.close()
        if finish is None:
            raise BrokenStream(self.place.base_url, "the answer has no end")
        if text := answer.finish():
            yield Delta(text)
        if finish in CUT_OFF:
            yield Notice(CUT_OFF[finish])
        for request in requests.complete():
            yield request

    async def _open(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], tokens: int
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        client = await self.load()
        optional: dict[str, Any] = {"stream_options": {"include_usage": True}, "tools": list(tools)}
        while True:
            extra = {name: value for name, value in optional.items() if value and name not in self._refused}
            try:
                create: Any = client.chat.completions.create
                stream: openai.AsyncStream[ChatCompletionChunk] = await create(
                    model=self.place.name, messages=list(messages), stream=True, **extra
                )
                return stream
            except Exception as error:
                refused = next((name for name in extra if _complains_of(error, name)), None)
                if refused is None:
                    raise self._mapped(error, tokens) from error
                self._refused.add(refused)

    def _mapped(self, error: Exception, tokens: int = 0, *, begun: bool = False) -> ModelError:
        from ragchat.llm.errors import mapped

        return mapped(error, self.place, tokens=tokens, seconds=self.settings.timeout_seconds, begun=begun)


def _usage(usage: CompletionUsage) -> Usage:
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, cached or 0)


class _ToolRequests:
    """Gathers tool calls from their streamed parts."""

    def __init__(self) -> None:
        self._parts: dict[int, list[str]] = {}  # index → id, name, arguments

    def add(self, calls: Sequence[ChoiceDeltaToolCall]) -> None:
        for call in calls:
            parts = self._parts.setdefault(call.index, ["", "", ""])
            parts[0] = parts[0] or call.id or ""
            if call.function is not None:
                parts[1] = parts[1] or call.function.name or ""
                parts[2] += call.function.arguments or ""

    def complete(self) -> list[ToolRequest]:
        return [
            ToolRequest(id or f"call_{index}", name, arguments)
            for index, (id, name, arguments) in sorted(self._parts.items())
        ]


def _make_client(place: ModelPlace, settings: ModelSettings) -> openai.AsyncOpenAI:
    import httpx2
    import openai

    local = urlsplit(place.base_url).hostname in LOOPBACK
    return openai.AsyncOpenAI(
        base_url=place.base_url,
        api_key=place.key or "none",  # the package insists on one; a local server does not look at it
        max_retries=settings.retries,
        timeout=httpx2.Timeout(settings.timeout_seconds, connect=CONNECT_SECONDS),
        # A proxy of the environment cannot reach what runs on this machine.
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False) if local else None,
    )


def _complains_of(error: Exception, argument: str) -> bool:
    """Whether a server refused a request because of one argument (an Ollama model may have no tools)."""
    import openai

    return isinstance(error, (openai.BadRequestError, openai.UnprocessableEntityError)) and (
        argument in error.message
    )
