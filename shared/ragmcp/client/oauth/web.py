"""Requests to authorization servers: only over HTTPS or on this machine, bounded, without redirects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from ragmcp.client.oauth.errors import AuthorizationFailed
from ragmcp.http.client import is_loopback
from ragmcp.protocol.decoding import DECODE_ERRORS

T = TypeVar("T")

# A larger answer is not one of those that are read here.
LARGEST_BYTES = 2**20
SECONDS = 30.0


class Answer(NamedTuple):
    """A response that was read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Web:
    """The connections of one login."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def document(self, url: str, type: type[T]) -> T | None:
        """The JSON document at `url`; None if there is none of this type. Raises AuthorizationFailed."""
        answer = await self._send("GET", url)
        if answer.status != 200:
            return None
        try:
            return msgspec.json.decode(answer.body, type=type)
        except DECODE_ERRORS:
            return None

    async def post(
        self,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to a form or a JSON document. Raises AuthorizationFailed."""
        return await self._send("POST", url, data=form, json=json, headers=headers)

    async def _send(self, verb: str, url: str, **content: Any) -> Answer:
        check_secure(url)
        try:
            request = self._client.build_request(verb, url, **content)
            response = await self._client.send(request, stream=True)
            try:
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > LARGEST_BYTES:
                        raise AuthorizationFailed(url, f"its answer is longer than {LARGEST_BYTES:,} bytes")
                return Answer(response.status_code, response.headers, bytes(body))
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise AuthorizationFailed(
                url, f"it cannot be reached ({error or type(error).__name__})"
            ) from None


@asynccontextmanager
async def open_web() -> AsyncIterator[Web]:
    """Connections for one login."""
    # Redirects are not followed: they could lead to another server.
    async with httpx2.AsyncClient(timeout=SECONDS, headers={"accept": "application/json"}) as client:
        yield Web(client)


def check_secure(url: str) -> None:
    """Raises AuthorizationFailed unless codes and tokens may be sent there: HTTPS, or this machine."""
    parts = urlsplit(url)
    if url and parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise AuthorizationFailed(url, "it is not an HTTPS address")
