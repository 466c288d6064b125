"""Any OpenAI-compatible /v1/embeddings (OpenAI, Ollama, llama.cpp, vLLM …) through the `openai` package."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragconfig.errors import UnreadableFile
from ragconfig.keys import OPENAI_URL, read_key
from ragconfig.redaction import add_secrets_of, redacted
from ragmemory.embedders import DOWN_SECONDS, Embedder, EmbedderSettings, WordWeights, inputs_of
from ragmemory.embedders.calibration import LOCAL
from ragmemory.errors import EmbedderUnavailable, TextRefused
from ragmemory.types.writes import Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from openai import AsyncOpenAI, OpenAIError


# A rough count is enough to size chunks; endpoints offer no exact one.
BYTES_PER_TOKEN = 4
# Statuses that blame the input: a text is too long, or cannot be embedded.
REFUSED = (400, 413, 422)
# Seconds that a query waits: it can be searched by words alone, and the chat waits for 10 seconds.
QUERY_SECONDS = 8.0

PER_TOKEN = "it sends one vector for each token instead of one for each text (it does no pooling)"
POOLING_HINT = (
    "Start the server with pooling (llama.cpp: --pooling mean; llama-cpp-python: --pooling_type 1), "
    "or with a model made for embeddings."
)


class OpenAIEmbedder(Embedder):
    """For documents, the client retries by itself, with backoff and Retry-After (429, 5xx, no response).

    After a temporary failure, queries fail with the same error for a while, and documents are tried once
    until a request succeeds.
    """

    # Not measured: that would take a request at each start.
    scale = LOCAL
    is_costly = True

    def __init__(self, settings: EmbedderSettings) -> None:
        self.settings = settings
        self.dimensions = 0
        self.base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        add_secrets_of(self.base_url)
        place = urlsplit(self.base_url).netloc.rpartition("@")[2]  # It is stored in the memory.
        self.identity = f"openai:{place}:{settings.model}"
        self._client: AsyncOpenAI | None = None
        self._down: EmbedderUnavailable | None = None
        self._down_since = 0.0

    def count_tokens(self, texts: list[str]) -> list[int]:
        return [math.ceil(len(text.encode()) / BYTES_PER_TOKEN) for text in texts]

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        inputs = inputs_of(texts, titles)
        size = self.settings.batch
        vectors = [v for i in range(0, len(inputs), size) for v in await self._request(inputs[i : i + size])]
        return [vector.astype("<f2").tobytes() for vector in vectors]

    async def embed_query(self, text: str, weights: WordWeights) -> NDArray[np.float32] | None:  # noqa: ARG002
        if not text.strip():
            return None
        if self._down is not None and time.monotonic() < self._down_since + DOWN_SECONDS:
            raise EmbedderUnavailable(self.identity, self._down.reason, self._down.hint)
        seconds = min(self.settings.timeout_seconds, QUERY_SECONDS)
        vector: NDArray[np.float32] = (await self._request([text], retries=0, seconds=seconds))[0]
        return vector

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _connected(self) -> AsyncOpenAI:
        """Raises EmbedderUnavailable for a key file that cannot be read."""
        if self._client is None:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient

            try:
                key = read_key(self.settings.key_file)
            except UnreadableFile as error:
                reason = f"the {error.kind} {error.path} cannot be read: {error.reason}"
                hint = error.hint or "Check embedder.key_file."
                raise EmbedderUnavailable(self.identity, reason, hint) from error
            self._client = AsyncOpenAI(
                # Local servers need no key, but the client requires one.
                api_key=key or "none",
                base_url=self.base_url,
                timeout=self.settings.timeout_seconds,
                max_retries=self.settings.retries,
                # Reading the certificates takes longer than most requests to a server on this machine.
                http_client=DefaultAsyncHttpxClient(verify=urlsplit(self.base_url).scheme != "http"),
            )
        return self._client

    async def _request(
        self, inputs: Sequence[str], retries: int | None = None, seconds: float | None = None
    ) -> NDArray[np.float32]:
        """(n, d) float32, unit length, in the order of `inputs`."""
        import numpy as np
        from openai import OpenAIError

        from ragmemory.embedders.unit import unit

        if retries is None:
            retries = 0 if self._down else self.settings.retries
        client = self._connected().with_options(
            max_retries=retries, timeout=seconds or self.settings.timeout_seconds
        )
        try:
            answer = await client.embeddings.create(
                model=self.settings.model, input=list(inputs), encoding_format="float"
            )
        except OpenAIError as error:
            failure = unavailable(self.identity, redacted(self.base_url), error)
            if is_temporary(error):
                self._down, self._down_since = failure, time.monotonic()
            raise failure from error
        self._down = None
        return unit(np.array(self._vectors(answer, len(inputs)), np.float32))

    def _vectors(self, answer: object, count: int) -> list[list[float]]:
        """The vectors of `count` texts; the first ones set `dimensions`. Raises EmbedderUnavailable."""
        rows = vectors_in(answer)
        if rows is None:
            place = redacted(self.base_url)
            hint = advice(place, "Check embedder.base_url.")
            raise EmbedderUnavailable(self.identity, f"{place} sent no embeddings", hint)
        if any(isinstance(row[0], list) for row in rows if row):
            raise EmbedderUnavailable(self.identity, PER_TOKEN, POOLING_HINT)
        widths = {len(row) for row in rows} | ({self.dimensions} if self.dimensions else set())
        if len(rows) != count or len(widths) != 1 or 0 in widths:
            reason = f"it answered {count} texts with {len(rows)} vectors of {sorted(widths)} dimensions"
            raise EmbedderUnavailable(self.identity, reason, "Check embedder.model and embedder.base_url.")
        self.dimensions = widths.pop()
        return rows


def vectors_in(answer: object) -> list[list[Any]] | None:
    """The vectors of an answer in order; None if it is a web page, or has none."""
    data = getattr(answer, "data", None)
    if not isinstance(data, list) or not all(isinstance(item.embedding, list) for item in data):
        return None
    return [item.embedding for item in sorted(data, key=lambda item: item.index)]


def is_temporary(error: OpenAIError) -> bool:
    """Whether the failure is temporary."""
    import openai

    return isinstance(error, (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError))


def advice(base_url: str, otherwise: str) -> str:
    """Most servers have their API under /v1."""
    return otherwise if "/v1" in urlsplit(base_url).path else f"Did you mean {base_url.rstrip('/')}/v1?"


def unavailable(identity: str, base_url: str, error: OpenAIError) -> EmbedderUnavailable:
    """Map the client's errors."""
    import openai

    match error:
        case openai.APITimeoutError():
            return EmbedderUnavailable(
                identity, f"{base_url} did not answer in time", "Raise embedder.timeout_seconds."
            )
        case openai.APIConnectionError():
            return EmbedderUnavailable(identity, f"{base_url} cannot be reached", "Is the service running?")
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            hint = "Set OPENAI_API_KEY, or embedder.key_file."
            return EmbedderUnavailable(identity, f"{base_url} refused the key", hint)
        case openai.NotFoundError():
            hint = "Check embedder.model and embedder.base_url; Ollama needs `ollama pull` first."
            reason = f"{base_url} does not know the model"
            return EmbedderUnavailable(identity, reason, advice(base_url, hint))
        case openai.RateLimitError():
            return EmbedderUnavailable(
                identity, f"{base_url} limits requests, or the quota is used up", "Try again later."
            )
        case openai.APIStatusError(message=message) if "pooling" in message.lower():
            # llama.cpp, which sends one vector per token only outside of /v1.
            return EmbedderUnavailable(identity, f"it does no pooling: {redacted(message)}", POOLING_HINT)
        case openai.APIStatusError(status_code=status, message=message):
            kind = TextRefused if status in REFUSED else EmbedderUnavailable
            return kind(identity, f"{base_url} answered {status}: {redacted(message)}")
    return EmbedderUnavailable(identity, redacted(str(error)))
