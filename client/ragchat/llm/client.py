"""A language model behind an OpenAI-compatible endpoint: messages in, a streamed answer out.

The openai package takes half a second to import. That happens in a thread, at the first request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import msgspec
from msgspec.structs import replace

from ragchat.llm import tokens
from ragchat.llm.completion import Assembly, Completion, OnText
from ragchat.llm.errors import (
    BrokenStream,
    ContextOverflow,
    KeyUnusable,
    LimitReached,
    ModelBroken,
    ModelError,
    ModelLoading,
    ModelRefused,
    ModelUnreachable,
    NoApi,
    PromptNotTaken,
    ServerHungUp,
    SessionOverflow,
    mapped,
    message_in,
    not_json,
)
from ragchat.llm.images import NO_IMAGES, Images, with_images
from ragchat.llm.listing import ListedModel, ModelList, context_of
from ragchat.llm.types import Message, ModelEndpoint
from ragchat.settings import ModelSettings
from ragmcp.backoff import Backoff

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    Chunks: TypeAlias = openai.AsyncStream[ChatCompletionChunk]

CONNECT_SECONDS = 5.0
# Seconds between attempts, unless the server sends Retry-After.
FIRST_PAUSE, MAX_PAUSE = 0.5, 8.0
# There is no further attempt if the server asks for a longer pause: the user decides.
MAX_RETRY_AFTER = 120.0
# The pause while a model is loading.
LOADING_PAUSE = 2.0
# Fields that are omitted for servers that refuse them; max_tokens is renamed instead.
OPTIONAL = frozenset({"stream_options", "tools", "max_tokens"})
# The wording of 404 (OpenRouter) and 500 (llama.cpp) responses for models without image input.
_NO_IMAGES = re.compile(r"image|vision|multi-?modal|mmproj", re.IGNORECASE)

# Seconds a running server may take to report its context, or to answer a short question.
CONTEXT_SECONDS, PROBE_SECONDS = 2.0, 20.0
PROBE: Sequence[Message] = ({"role": "user", "content": "Hi"},)

# Called with the error of a failed attempt, and the seconds until the next one.
OnRetry = Callable[[ModelError, float], None]


def ignore_text(text: str) -> None:
    """The default `OnText`."""


def ignore_retry(error: ModelError, seconds: float) -> None:
    """The default `OnRetry`."""


class Model:
    """A model by its name and endpoint. Every method raises ModelError."""

    def __init__(self, endpoint: ModelEndpoint, settings: ModelSettings) -> None:
        self.endpoint = endpoint
        self.settings = settings
        self._client: openai.AsyncOpenAI | None = None
        self._refused: set[str] = set()  # those of OPTIONAL that this server has refused
        self.takes_images = True
        """False once the server has refused images."""
        self.others = 0
        """How many other chat models the server lists, if none was chosen and the user does not know yet."""
        self.context: int | None = None
        """The context length in tokens, if the server reports it."""

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def takes_tools(self) -> bool:
        """False once the server has refused tools."""
        return "tools" not in self._refused

    async def load(self) -> openai.AsyncOpenAI:
        """The client, created at first use."""
        if self._client is None:
            self._client = await anyio.to_thread.run_sync(_make_client, self.endpoint, self.settings)
        return self._client

    async def limited(self, max_tokens: int) -> Model:
        """A copy whose answers have at most `max_tokens` tokens. It shares the client, and closes with it."""
        await self.load()
        limited = copy(self)
        most = min(max_tokens, self.settings.max_tokens or max_tokens)
        limited.settings = replace(self.settings, max_tokens=most)
        return limited

    async def aclose(self) -> None:
        if self._client is not None:
            with anyio.CancelScope(shield=True):
                await self._client.close()
            self._client = None

    async def names(self) -> list[str]:
        """The models that the server lists."""
        return [model.id for model in await self.listed()]

    async def find_context(self) -> None:
        """Set `context` from what the server reports. Raises nothing."""
        self.context = None
        with anyio.move_on_after(CONTEXT_SECONDS), suppress(ModelError):
            listed = await self.listed()
            # A server with one model accepts any name.
            if found := [model for model in listed if model.id == self.name or len(listed) == 1]:
                self.context = await context_of(found[0], self.endpoint.base_url, self._get)

    async def listed(self) -> list[ListedModel]:
        """The models that the server lists, with what it says about each."""
        try:
            return msgspec.convert(await self._get("/models"), ModelList).data
        except msgspec.ValidationError:
            raise NoApi(self.endpoint.base_url, "it sent no list of models") from None

    async def _get(self, path: str) -> object:
        """The JSON at a path of the API, or at a URL."""
        client = (await self.load()).with_options(max_retries=self.settings.retries)
        try:
            # client.models.list() fails with an internal error if it gets a web page.
            return await client.get(path, cast_to=object)
        except Exception as error:
            raise self._mapped(error) from error

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] = (),
        *,
        on_text: OnText = ignore_text,
        on_reasoning: OnText = ignore_text,
        on_retry: OnRetry = ignore_retry,
        images: Images = NO_IMAGES,
        seconds: float = inf,
    ) -> Completion:
        """Request an answer. `on_text` and `on_reasoning` get their pieces as they arrive.

        `images` are omitted for a model without image input. A request that fails with a temporary error
        before the first piece is repeated: `on_retry` gets the error and the seconds until the next attempt.
        With it, a model that is loading is waited for, for at most model.timeout_seconds.
        After `seconds`, and at the limits of the settings, the answer is cut off.
        """
        started = anyio.current_time()
        deadline = started + min(seconds, self.settings.turn_seconds)
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        backoff.next()
        retries, took_images = self.settings.retries, self.takes_images
        while True:
            assembly = Assembly(on_text, on_reasoning, self.settings.answer_characters)
            sent = with_images(messages, images if self.takes_images else NO_IMAGES)
            try:
                completion = await self._attempt(sent, tools, assembly, deadline)
                return completion.estimated([*messages, *tools])
            except LimitReached:
                raise
            except ModelError as error:
                if images and self.takes_images and not assembly.begun and _may_be_images(error):
                    self.takes_images = False
                    continue
                longest = min(MAX_RETRY_AFTER, deadline - anyio.current_time())
                if isinstance(error, ModelLoading) and on_retry is not ignore_retry:
                    retries, pause = retries + 1, LOADING_PAUSE
                    longest = min(longest, started + error.seconds - anyio.current_time())
                else:
                    pause = error.retry_after or backoff.next()
                if assembly.begun or not retries or not error.is_temporary or pause > longest:
                    self.takes_images = took_images  # the failure had another cause
                    if isinstance(error, ContextOverflow):
                        raise _overflow(error, messages) from error
                    if assembly.is_empty and isinstance(error, (ServerHungUp, BrokenStream)):
                        raise await self._explained(error, messages) from error
                    raise
                on_retry(error, pause)
            retries -= 1
            await anyio.sleep(pause)

    async def _attempt(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        assembly: Assembly,
        deadline: float,
    ) -> Completion:
        """Request an answer once. One that reaches a limit is cut off; LimitReached if it has no text yet."""
        try:
            with anyio.CancelScope(deadline=deadline):
                await self._receive(messages, tools, assembly)
                return assembly.completion()
            raise LimitReached(self.name, f"model.turn_seconds = {self.settings.turn_seconds:g}")
        except LimitReached as error:
            completion = assembly.cut_off(error.setting)
            if not completion.text.strip():
                raise
            return completion

    async def _explained(self, error: ModelError, messages: Sequence[Message]) -> ModelError:
        """Find out why the server closed the connection: it is down, its context is too small, or `error`."""
        try:
            with anyio.fail_after(PROBE_SECONDS):
                await self.listed()
        except (ModelUnreachable, ServerHungUp) as failure:
            return ModelUnreachable(self.endpoint.base_url, failure.reason)
        except TimeoutError:
            return ModelUnreachable(self.endpoint.base_url, f"it has not answered for {PROBE_SECONDS:g} s")
        except ModelError:  # It answers, though not with a list.
            pass
        try:
            with anyio.fail_after(PROBE_SECONDS):
                await (await self.limited(1))._request(PROBE, (), stream=False)
        except (ModelError, TimeoutError):
            return error
        return PromptNotTaken(self.endpoint.base_url, tokens.prompt_at_most(messages))

    async def _receive(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], assembly: Assembly
    ) -> None:
        """Request an answer as a stream; some servers send it in one piece."""
        from ragchat.llm.bounded import is_done

        stream: Chunks = await self._request(messages, tools, stream=True)
        try:
            if stream.response.headers.get("content-type", "").startswith("application/json"):
                await self._take(assembly, assembly.add_whole(await self._whole(stream)))
            else:
                while (chunk := await self._next(stream, assembly)) is not None:
                    await self._take(assembly, assembly.add(chunk))
        except NoApi as error:
            if assembly.is_empty:
                raise
            raise BrokenStream(self.endpoint.base_url, error.reason) from error
        finally:
            with anyio.CancelScope(shield=True):
                await stream.close()
        if assembly.is_empty:
            # llama-cpp-python ends the stream at once if the prompt does not fit: only a response without
            # streaming has the error.
            whole = await self._request(messages, tools, stream=False)
            if isinstance(whole, str):
                raise not_json(self.endpoint)
            await self._take(assembly, assembly.add_whole(whole))
        # Some servers and proxies send no finish_reason.
        elif assembly.finish_reason is None and not is_done(stream.response):
            raise BrokenStream(self.endpoint.base_url, "the answer has no end")

    async def _take(self, assembly: Assembly, pieces: Iterator[None]) -> None:
        """Pass on the pieces of an answer. Raises LimitReached once the answer is too long."""
        for _ in pieces:
            await anyio.lowlevel.checkpoint()  # so that a flood of data can be cancelled
        if assembly.is_full:
            raise LimitReached(self.name, f"model.answer_characters = {self.settings.answer_characters}")

    async def _next(self, stream: Chunks, assembly: Assembly) -> ChatCompletionChunk | None:
        """The next chunk; None after the last one."""
        try:
            return await anext(stream, None)
        except Exception as error:
            if assembly.finish_reason is not None:  # The answer is whole: only the usage was still to come.
                return None
            raise self._mapped(error, begun=True) from error

    async def _whole(self, stream: Chunks) -> ChatCompletion:
        """The answer of a server that does not stream."""
        import json

        import openai
        from openai.types.chat import ChatCompletion

        try:
            body = json.loads(await stream.response.aread())
            if not isinstance(body, dict) or "choices" not in body:  # an error with a success status
                raise openai.APIError(message_in(body), stream.response.request, body=body)
        except Exception as error:
            raise self._mapped(error, begun=True) from error
        return ChatCompletion.model_construct(**body)

    async def _request(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], *, stream: bool
    ) -> Any:
        """Chunks if `stream`, else a ChatCompletion, or the text of an answer that is not JSON."""
        client = await self.load()
        while True:
            fields = self._fields(tools, stream=stream)
            try:
                create: Any = client.chat.completions.create
                return await create(
                    model=self.endpoint.name, messages=list(messages), stream=stream, **fields
                )
            except Exception as error:
                refused = next(
                    (name for name in OPTIONAL & fields.keys() if _complains_of(error, name)), None
                )
                if refused is None:
                    raise self._mapped(error) from error
                self._refused.add(refused)

    def _fields(self, tools: Sequence[dict[str, Any]], *, stream: bool) -> dict[str, Any]:
        """The fields of a request besides the model and the messages."""
        settings = self.settings
        fields: dict[str, Any] = {
            "stream_options": {"include_usage": True} if stream else None,
            "tools": list(tools),
            "max_tokens": settings.max_tokens,
            "reasoning_effort": settings.reasoning_effort,
            "extra_body": settings.extra_body,
        }
        fields = {name: value for name, value in fields.items() if value and name not in self._refused}
        if settings.temperature >= 0:
            fields["temperature"] = settings.temperature
        if settings.max_tokens and "max_tokens" in self._refused:
            fields["max_completion_tokens"] = settings.max_tokens
        return fields

    def _mapped(self, error: Exception, *, begun: bool = False) -> ModelError:
        return mapped(error, self.endpoint, seconds=self.settings.timeout_seconds, begun=begun)


def _make_client(endpoint: ModelEndpoint, settings: ModelSettings) -> openai.AsyncOpenAI:
    import httpx2
    import openai

    from ragchat.llm.bounded import bounded_client

    if not (endpoint.key.isascii() and endpoint.key.isprintable()):
        raise KeyUnusable()
    return openai.AsyncOpenAI(
        base_url=endpoint.base_url,
        api_key=endpoint.key or "none",  # the package requires one; local servers ignore it
        max_retries=0,  # the package would wait for minutes without reporting it
        timeout=httpx2.Timeout(settings.timeout_seconds, connect=CONNECT_SECONDS),
        http_client=bounded_client(endpoint.name, endpoint.base_url, settings.message_bytes),
    )


def _overflow(error: ContextOverflow, messages: Sequence[Message]) -> ContextOverflow:
    """The error with our estimate of the tokens, and as SessionOverflow where earlier turns were sent."""
    has_history = sum(message["role"] == "user" for message in messages) > 1
    kind = SessionOverflow if has_history else ContextOverflow
    return kind(error.model, error.message, tokens.prompt_at_most(messages))


def _may_be_images(error: ModelError) -> bool:
    """Whether a request with images may have failed because of them."""
    match error:
        case ModelRefused():
            return True
        case ModelBroken(message=reason) | NoApi(reason=reason):
            return _NO_IMAGES.search(reason) is not None
    return False


def _complains_of(error: Exception, argument: str) -> bool:
    """Whether a server refused a request because of one argument, such as `tools` for some Ollama models."""
    import openai

    return isinstance(error, (openai.BadRequestError, openai.UnprocessableEntityError)) and (
        argument in error.message
    )
