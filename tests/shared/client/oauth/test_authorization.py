"""Tokens that are got, kept, renewed and given up, with real servers (`web`, `store`, `registration`).

What the official suite checks of the protocol itself is not repeated here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from msgspec.structs import replace

from ragmcp.client.client import Client
from ragmcp.client.oauth.authorization import OAuth
from ragmcp.client.oauth.errors import AuthorizationFailed
from ragmcp.client.oauth.grants import ClientCredentials, Login
from ragmcp.client.oauth.registration import Identity
from ragmcp.client.oauth.store import Registration, RunStore
from ragmcp.http.connect import open_http
from tests.support.authorization_server import Agreeing, Protected, protected
from tests.support.processes import LONGEST_SECONDS

US = Identity(name="tests")


@asynccontextmanager
async def connected(server: Protected, store: RunStore, identity: Identity = US) -> AsyncIterator[Client]:
    url = f"{server.url}/mcp"
    authorization = OAuth(url, Login(identity, Agreeing()), store)
    async with open_http(
        url, client_name="tests", client_version="0", message_bytes=2**20, authorization=authorization
    ) as client:
        yield client


async def echo(client: Client) -> str:
    return (await client.call_tool("Echo", {"text": "hello"}, timeout=LONGEST_SECONDS)).text


async def test_a_login_serves_every_later_connection() -> None:
    store = RunStore()
    async with protected() as server:
        for _ in range(2):
            async with connected(server, store) as client:
                assert await echo(client) == "hello"
        assert (server.count["/authorize"], server.count["/register"]) == (1, 1)


async def test_an_expired_token_is_refreshed_before_it_is_sent() -> None:
    store = RunStore()
    async with protected() as server:
        server.expires_in = 1
        async with connected(server, store) as client:
            server.count.clear()
            assert await echo(client) == "hello"
        assert server.count["refresh_token"] == 1
        assert server.count["/authorize"] == 0
        assert server.count["/mcp"] == 1


async def test_requests_at_the_same_time_renew_a_revoked_token_once() -> None:
    async with protected() as server, connected(server, RunStore()) as client:
        server.revoke()
        server.count.clear()
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(echo, client)
        assert (server.count["refresh_token"], server.count["/authorize"]) == (1, 0)


async def test_the_user_logs_in_again_once_the_refresh_token_is_refused_too() -> None:
    async with protected() as server, connected(server, RunStore()) as client:
        server.revoke(refresh_tokens=True)
        assert await echo(client) == "hello"
        assert server.count["/authorize"] == 2
        assert server.count["/register"] == 1


async def test_a_registration_of_one_server_never_reaches_another() -> None:
    identity = Identity(name="tests", registered=Registration("ours"), registered_at="https://other.org")
    async with protected() as server:
        with pytest.raises(AuthorizationFailed, match="the client id that you gave"):
            async with connected(server, RunStore(), identity):
                pass


async def test_a_secret_is_in_no_repr() -> None:
    store = RunStore()
    async with protected() as server, connected(server, store):
        grant = store.grant(f"{server.url}/mcp")
        assert grant is not None
        assert grant.access_token not in repr(grant)
        assert not replace(grant, expires_at=None).is_expired


async def test_credentials_of_our_own_need_no_login() -> None:
    async with protected() as server:
        url = f"{server.url}/mcp"
        authorization = OAuth(url, ClientCredentials(Registration("us", "secret")))
        async with open_http(
            url, client_name="tests", client_version="0", message_bytes=2**20, authorization=authorization
        ) as client:
            assert await echo(client) == "hello"
        assert (server.count["client_credentials"], server.count["/authorize"]) == (1, 0)
