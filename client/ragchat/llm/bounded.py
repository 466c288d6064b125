"""Limits the memory that the responses of a model's server can take. Loads httpx2."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from urllib.parse import urlsplit

import anyio
import httpx2

from ragchat.llm.errors import LimitReached, ModelUnreachable
from ragmcp.http.reach import is_loopback

# Bytes between two checkpoints, at which signals are handled and the screen is drawn.
PIECE = 16_384
# Bytes that are kept of the end: more than "[DONE]" and an empty line.
TAIL = 16
_EVENT_ENDS = (b"\n\n", b"\n\r\n", b"\r\r")


def bounded_client(model: str, url: str, most: int) -> httpx2.AsyncClient:
    """A client for the server of `model` at `url`. Reading more than `most` bytes raises LimitReached.

    The limit is for decompressed bytes: of each event of an event stream, or of the whole body. Raises
    ModelUnreachable if `url` is no URL.
    """
    import openai

    try:
        parts = urlsplit(url)
        local = is_loopback(parts.hostname or "")
    except ValueError as error:
        raise ModelUnreachable(url, str(error)) from None
    # Loading certificates takes 35 ms. A server elsewhere may redirect to HTTPS.
    needs_certificates = not local or parts.scheme == "https"
    return openai.DefaultAsyncHttpxClient(
        trust_env=not local,  # a proxy cannot reach a server on this machine
        verify=needs_certificates or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        event_hooks={"response": [partial(_bound, model, most)]},
    )


def is_done(response: httpx2.Response) -> bool:
    """Whether the event stream has ended with the mark of OpenAI's protocol."""
    return isinstance(response.stream, _Bounded) and response.stream.tail.rstrip().endswith(b"[DONE]")


async def _bound(model: str, most: int, response: httpx2.Response) -> None:
    response.stream = _Bounded(response, LimitReached(model, f"model.message_bytes = {most}"), most)
    # `_Bounded` decompresses: httpx2 would buffer a whole line before it could be counted.
    response.headers.pop("content-encoding", None)


class _Bounded(httpx2.AsyncByteStream):
    """The decompressed body of a response, in small pieces."""

    def __init__(self, response: httpx2.Response, error: LimitReached, most: int) -> None:
        self._stream = response.stream
        self._body = httpx2.Response(response.status_code, headers=response.headers, stream=response.stream)
        self._has_events = response.headers.get("content-type", "").startswith("text/event-stream")
        self._error, self._most = error, most
        self.tail = b""
        """The end of the event stream, as far as it was read."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body.is_stream_consumed:  # to drain what follows the last event
            assert isinstance(self._stream, httpx2.AsyncByteStream)
            async for data in self._stream:
                yield data
            return
        size = 0
        async with aclosing(self._body.aiter_bytes()) as parts:
            async for data in parts:
                for start in range(0, len(data), PIECE):
                    piece = data[start : start + PIECE]
                    size += len(piece)
                    if self._has_events:
                        joined = self.tail + piece
                        ends = [joined.rfind(mark) + len(mark) for mark in _EVENT_ENDS if mark in joined]
                        size = min([size, *(len(joined) - end for end in ends)])
                        self.tail = joined[-TAIL:]
                    if size > self._most:
                        raise self._error
                    yield piece
                    await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await self._body.aclose()
