"""Requests to authorization servers: HTTPS or loopback only, bounded, without redirects.

`ragmcp.http.reach` decides which addresses are allowed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import httpx2
import msgspec

from ragmcp.http.reach import WITHOUT_PROXY, Reach, guard, is_loopback
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.protocol.decoding import DECODE_ERRORS

T = TypeVar("T")

# The maximum size of a response.
MAX_ANSWER_BYTES = 2**20
SECONDS = 30.0


class Answer(NamedTuple):
    """A response with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Web:
    """The connections of one login; all methods raise AuthorizationFailed, AddressRefused."""

    def __init__(self, client: httpx2.AsyncClient, reach: Reach) -> None:
        self._client = client
        self.reach = reach

    async def check(self, url: str) -> None:
        """Raises unless codes and tokens may be sent to `url`; "" is allowed."""
        check_secure(url)
        if url:
            await self.reach.check(url)

    async def document(self, url: str, type: type[T]) -> T | None:
        """The JSON document at `url`; None if there is none, or it has another type."""
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
        """The response to a form or a JSON document."""
        return await self._send("POST", url, data=form, json=json, headers=headers)

    async def _send(self, verb: str, url: str, **content: Any) -> Answer:
        await self.check(url)
        try:
            request = self._client.build_request(verb, url, **content)
            response = await self._client.send(request, stream=True)
            try:
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_ANSWER_BYTES:
                        raise AuthorizationFailed(
                            url, f"its answer is longer than {MAX_ANSWER_BYTES:,} bytes"
                        )
                return Answer(response.status_code, response.headers, bytes(body))
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise AuthorizationFailed(
                url, f"it cannot be reached ({error or type(error).__name__})"
            ) from None


@asynccontextmanager
async def open_web(reach: Reach) -> AsyncIterator[Web]:
    """Connections for one login at the server of `reach`. Redirects could lead elsewhere: not followed."""
    client = httpx2.AsyncClient(
        timeout=SECONDS, headers={"accept": "application/json"}, mounts=dict.fromkeys(WITHOUT_PROXY)
    )
    guard(client, reach)
    async with client:
        yield Web(client, reach)


def check_secure(url: str) -> None:
    """Raises AuthorizationFailed unless codes and tokens may be sent to `url`: HTTPS, or loopback."""
    try:
        target = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise AuthorizationFailed(url, f"it is not a valid address ({error})") from None
    is_secure = target.scheme == "https" or (target.scheme == "http" and is_loopback(target.host))
    if url and not (is_secure and target.host):
        raise AuthorizationFailed(url, "it is not an HTTPS address")
