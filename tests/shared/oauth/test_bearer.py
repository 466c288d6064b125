"""Who may come in with a token."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import httpx2
import pytest

from ragmcp.http.access import Access, Guard
from ragmcp.http.exchange import Receive, Scope, Send, respond
from ragmcp.oauth.bearer import SharedToken, Unauthorized
from tests.support.http_server import served

TOKEN = "a-secret-nobody-guesses"


async def hello(_: Scope, __: Receive, send: Send) -> None:
    """What is behind the door."""
    await respond(send, 200, b'"hello"')


@asynccontextmanager
async def door() -> AsyncIterator[Callable[..., Awaitable[httpx2.Response]]]:
    """Knocks with an `Authorization`, or without one."""
    app = partial(Guard(Access(), authorize=SharedToken(TOKEN)).admit, hello)
    async with served(app) as url, httpx2.AsyncClient(timeout=10, trust_env=False) as http:

        async def knock(authorization: str | None = None) -> httpx2.Response:
            headers = {} if authorization is None else {"authorization": authorization}
            return await http.post(url, headers=headers)

        yield knock


async def test_the_token_opens_and_nothing_else_does(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with door() as knock:
        assert (await knock(f"Bearer {TOKEN}")).status_code == 200
        assert (await knock(f"bearer  {TOKEN}")).status_code == 200
        wrong = [f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer x", f"Bearer {TOKEN}x", ""]
        refused = [await knock(header) for header in wrong] + [await knock()]
    for response in refused:
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.json()["error"]["data"]["errorCode"] == "UNAUTHORIZED"
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(SharedToken(TOKEN))


def test_a_refusal_says_why() -> None:
    assert str(Unauthorized("none was sent")) == "This server requires its token: none was sent."


def test_an_empty_token_is_refused() -> None:
    """Any client could send it: it is also that of an `Authorization` header of another scheme."""
    with pytest.raises(ValueError, match="The token is empty"):
        SharedToken("")
