"""Tokens that are got, kept, renewed and given up, with real servers (`web`, `store`, `registration`).

What the official suite checks of the protocol itself is not repeated here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from ragmcp.client.features import Client
from ragmcp.http.connect import open_http
from ragmcp.http.reach import AddressRefused
from ragmcp.oauth.authorization import OAuth
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.grants import Login
from ragmcp.oauth.registration import Identity
from ragmcp.oauth.store import Registration, RunStore
from tests.support.authorization_server import Agreeing, Protected, protected
from tests.support.http_script import Said, Scripted
from tests.support.http_server import served
from tests.support.internet import PRIVATE, PUBLIC, Internet
from tests.support.oauth_grants import ClientCredentials
from tests.support.processes import LONGEST_SECONDS

US = Identity(name="tests")


@asynccontextmanager
async def connected(
    server: Protected, store: RunStore, identity: Identity = US, user_agent: Agreeing | None = None
) -> AsyncIterator[Client]:
    url = f"{server.url}/mcp"
    authorization = OAuth(url, Login(identity, user_agent or Agreeing()), store)
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


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    found = Internet(monkeypatch)
    found.names |= {"mcp.example": [[PUBLIC]], "lan.example": [["127.0.0.1"]]}
    found.ours = {PUBLIC, PRIVATE}
    return found


@pytest.fixture
def certificate(internet: Internet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return internet.certify(monkeypatch, tmp_path)


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "mcp.example.org", "localhost"])
async def test_metadata_is_fetched_from_the_server_itself_only(host: str) -> None:
    async with protected() as server, served(script := Scripted(lambda _: Said(body={}))) as other:
        server.place = f"{other.replace('127.0.0.1', host)}/admin?delete=all".replace("http:", "https:")
        with pytest.raises(AuthorizationFailed, match=f"its metadata is at another server, https://{host}"):
            async with connected(server, RunStore()):
                pass
    assert script.heard == []


@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/admin",
        "http://localhost:{port}/admin",
        "https://lan.example:{port}/admin",
        "https://10.0.0.1/admin",
        "https://[::ffff:192.168.0.1]/admin",
        "https://169.254.169.254/latest",
    ],
)
async def test_a_remote_server_leads_to_no_endpoint_in_the_private_network(
    internet: Internet, certificate: Path, endpoint: str, url: str
) -> None:
    async with (
        protected("mcp.example", certificate) as server,
        served(script := Scripted(lambda _: Said(body={}))) as other,
    ):
        server.metadata[endpoint] = url.format(port=other.rpartition(":")[2])
        with pytest.raises(AddressRefused, match=r"The server at https://mcp\.example:.* leads to"):
            async with connected(server, RunStore()):
                pass
        assert server.count["/register"] == server.count["/authorize"] == 0
    assert (script.heard, {*internet.connected}) == ([], {PUBLIC})


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:1", "https://lan.example", "https://10.0.0.1/realm"])
async def test_a_remote_server_leads_to_no_authorization_server_in_the_private_network(
    internet: Internet, certificate: Path, issuer: str
) -> None:
    async with protected("mcp.example", certificate) as server:
        server.issuer = issuer
        with pytest.raises(AddressRefused):
            async with connected(server, RunStore()):
                pass
    assert {*internet.connected} == {PUBLIC}


async def test_a_token_endpoint_whose_name_changes_after_the_login_gets_no_code(
    internet: Internet, certificate: Path
) -> None:
    internet.names["token.example"] = [
        [PUBLIC],
        [PUBLIC],
        ["127.0.0.1"],
    ]  # as it is described, posted to, connected to
    async with (
        protected("mcp.example", certificate) as server,
        served(script := Scripted(lambda _: Said(body={})), certificate=certificate) as other,
    ):
        server.metadata["token_endpoint"] = f"{other.replace('127.0.0.1', 'token.example')}/token"
        with pytest.raises(AddressRefused, match=r"token\.example:\d+ \(127\.0\.0\.1\)"):
            async with connected(server, RunStore()):
                pass
        assert server.count["/authorize"] == 1
    assert script.heard == []


@pytest.mark.parametrize("address", [PUBLIC, PRIVATE])
async def test_a_server_and_its_own_authorization_server_are_used_wherever_they_are(
    internet: Internet, certificate: Path, address: str
) -> None:
    """A public one, and one in the user's network."""
    internet.names["mcp.example"] = [[address]]
    async with protected("mcp.example", certificate) as server, connected(server, RunStore()) as client:
        assert await echo(client) == "hello"
    assert {*internet.connected} == {address}


@pytest.mark.parametrize(
    "url", ["http://[", "https://[@a.org/", "https://a.org:x/", "https://a\nb/", "https://"]
)
@pytest.mark.parametrize("where", ["place", "issuer", "resource", "token_endpoint"])
async def test_what_is_no_address_ends_the_login_with_a_sentence(where: str, url: str) -> None:
    async with protected() as server:
        if where == "token_endpoint":
            server.metadata[where] = url
        else:
            setattr(server, where, url.replace("\n", "\t"))
        with pytest.raises(AuthorizationFailed):
            async with connected(server, RunStore()):
                pass


async def test_the_browser_is_led_to_the_host_that_was_checked() -> None:
    """Browsers read a backslash as a slash, so they would open another host."""
    async with protected() as server:
        port = server.url.rpartition(":")[2]
        server.metadata["authorization_endpoint"] = f"http://10.0.0.1\\@127.0.0.1:{port}/authorize"
        browser = Agreeing()
        async with connected(server, RunStore(), user_agent=browser) as client:
            await echo(client)
    assert browser.visited[0].startswith(f"http://10.0.0.1%5C@127.0.0.1:{port}/authorize?")
