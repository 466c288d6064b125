"""Who may come in over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.http.access import LOCAL, Access, Authorize, Guard, HostNotAllowed, OriginNotAllowed
from ragmcp.http.errors import HttpError
from ragmcp.http.exchange import Receive, Scope, Send, client_address, respond
from ragmcp.oauth.bearer import SharedToken
from tests.support.http_server import served

NEEDS_TOKEN = SharedToken("a-secret-nobody-guesses")


async def hello(_: Scope, __: Receive, send: Send) -> None:
    """What is behind the door."""
    await respond(send, 200, b'"hello"')


class Door:
    """Knocks, with a Host of its own choice."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url

    async def knock(self, method: str = "POST", **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._http.request(method, self._url, headers=named)


@asynccontextmanager
async def door(authorize: Authorize | None = None, **rules: Any) -> AsyncIterator[Door]:
    app = partial(Guard(Access(**rules), authorize=authorize).admit, hello)
    async with served(app) as url, httpx2.AsyncClient(timeout=10, trust_env=False) as http:
        yield Door(http, url)


def error_of(response: httpx2.Response) -> Mapping[str, Any]:
    answer = response.json()
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] is None
    assert answer["error"]["data"].keys() >= {"errorCode", "details", "requestId"}
    error: Mapping[str, Any] = answer["error"]
    return error


async def test_a_refusal_is_logged_with_who_asked_for_what(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ragmcp")
    async with door(NEEDS_TOKEN) as entry:
        assert (await entry.knock()).status_code == 401
    [refusal] = [message for message in caplog.messages if message.startswith("Refused")]
    assert refusal.startswith("Refused 127.0.0.1 for '/': This server requires its token")


# What is written here and is not one of the forms above is foreign, however a program may read it.
FOREIGN_HOSTS = [
    "",
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil",
    "localhost:evil.com",
    "localhost:evil.com:80",
    "evil.com:80:localhost",
    "[::1].evil.com",
    "[::1]evil.com:80",
    "[::1]:evil.com",
    "evil.com@localhost",
    "localhost@evil.com",
    "http://localhost",
    "localhost/",
    "localhost/evil",
    "localhost?evil",
    "localhost#evil",
    "localhost, evil.com",
    "localhost evil.com",
    "localhost.",
    "localhost.:80",
    "localhost:",
    "localhost:0",
    "localhost:080",
    "localhost:65536",
    "localhost:99999999999999999999",
    "localhost:8o",
    "localhost:-1",
    "localhost:+1",
    "localhost:1_0",
    "localhost:80:80",
    "localhost:\xb2",
    "\xa0localhost",
    "[localhost]",
    "[127.0.0.1]",
    "::1",
    "::1:80",
    "[::1",
    "::1]",
    "[::2]",
    "[::1%lo]",
    "[::1%25lo]:80",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "127.1",
    "127.000.000.001",
    "127.0.0.1.",
    "127.0.0.2",
    "0.0.0.0",
    "0",
    "xn--localhost-",
    "l\xf6calhost",
    "localhost\x00",
    "*",
    "null",
    "[",
    ":",
    ":80",
]


async def status(**headers: str) -> int:
    """What is answered to a request with these headers, as they arrive from a parser that checks nothing."""
    codes: list[int] = []
    head = {"host": "localhost"} | headers
    written = [(name.encode(), value.encode("latin-1")) for name, value in head.items()]

    async def send(message: Any) -> None:
        codes.append(message.get("status", 0))

    async def receive() -> Any:
        raise AssertionError("nothing of it is read here")

    scope = {"type": "http", "method": "POST", "headers": written}
    await LOCAL.admit(hello, scope, receive, send)
    return codes[0]


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:1", "[::1]:8765", "[::1]", "LOCALHOST:80", "localhost:65535"]
)
async def test_loopback_names_are_allowed_with_any_port(host: str) -> None:
    async with door() as here:
        assert (await here.knock(host=host)).status_code == 200


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
async def test_a_foreign_host_is_refused(host: str) -> None:
    assert await status(host=host) == 403
    assert await status(origin=f"http://{host}") == 403


async def test_a_refused_host_is_named() -> None:
    async with door() as here:
        response = await here.knock(host="[::1].evil.com")
    assert response.status_code == 403
    assert error_of(response)["data"]["errorCode"] == "HOST_NOT_ALLOWED"
    assert "[::1].evil.com" in error_of(response)["message"]


PIECES = [
    *("localhost", "127.0.0.1", "[::1]", "::1", "evil.com", "http", "https"),
    *("://", ":", "/", "@", ".", "?", "#", "%", "[", "]", "\\", " ", "\t", ","),
    *("0", "1", "80", "65535", "65536", "0x7f.1", "2130706433", "null", "xn--"),
]
PORTS = {"", *(f":{port}" for port in range(1, 65_536))}


@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
async def test_no_other_host_than_a_known_name_with_a_port_is_allowed(text: str) -> None:
    host = text.strip(" \t")
    known = any(host.startswith(name) and host[len(name) :] in PORTS for name in PIECES[:3])
    assert (await status(host=text) == 200) is known
    assert (await status(origin=f"http://{text}") == 200) is (known and not text[:1].isspace())
    prefix = next((scheme for scheme in ("http://", "https://") if host.startswith(scheme)), "")
    assert prefix == "" or await status(host=text) == 403


async def test_names_that_were_configured_are_allowed_and_a_star_allows_all() -> None:
    async with door(allowed_hosts=frozenset({"memory.example"})) as here:
        assert (await here.knock(host="Memory.example:99")).status_code == 200
        assert (await here.knock(host="other.example")).status_code == 403
    async with door(allowed_hosts=frozenset({"fd00::7"})) as here:
        assert (await here.knock(host="[FD00::7]:99")).status_code == 200
        assert (await here.knock(host="[fd00::8]")).status_code == 403
    async with door(allowed_hosts=frozenset({"*"}), authorize=NEEDS_TOKEN) as here:
        assert (await here.knock(host="192.168.0.7:8765")).status_code == 401


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:9"])
async def test_pages_from_this_machine_are_allowed_and_may_read_the_answer(origin: str) -> None:
    async with door() as here:
        response = await here.knock(origin=origin)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == origin
    assert "mcp-session-id" in response.headers["access-control-expose-headers"]
    assert response.headers["vary"] == "origin"


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://evil.com@localhost",
        "http://localhost:evil.com",
        "http://localhost/",
        "http://localhost?a",
        "http://localhost http://evil.com",
        "//localhost",
        "localhost",
        "http:localhost",
        "http:/localhost",
        "http:///localhost",
        "null",
        "http://localhost.evil.example",
        "file://localhost",
        "chrome-extension://localhost",
        "http://[",
        "",
        "*",
    ],
)
async def test_a_foreign_origin_is_refused(origin: str) -> None:
    async with door() as here:
        response = await here.knock(origin=origin)
        preflight = await here.knock("OPTIONS", origin=origin, access_control_request_method="POST")
    for refused in (response, preflight):
        assert refused.status_code == 403
        assert error_of(refused)["data"]["errorCode"] == "ORIGIN_NOT_ALLOWED"
        assert "access-control-allow-origin" not in refused.headers


async def test_an_origin_that_was_configured_is_allowed() -> None:
    async with door(allowed_origins=frozenset({"https://app.example"})) as here:
        assert (await here.knock(origin="https://app.example")).status_code == 200
        assert (await here.knock(origin="https://app.example.evil")).status_code == 403


async def test_a_preflight_of_an_allowed_page_needs_no_token() -> None:
    wanted = "authorization,mcp-param-region"
    async with door(authorize=NEEDS_TOKEN) as here:
        response = await here.knock(
            "OPTIONS",
            origin="http://localhost:3000",
            access_control_request_method="POST",
            access_control_request_headers=wanted,
        )
        assert response.status_code == 204
        assert response.headers["access-control-allow-headers"] == wanted
        assert "DELETE" in response.headers["access-control-allow-methods"]
        assert (await here.knock("OPTIONS", origin="http://localhost:3000")).status_code == 401


async def test_a_header_that_decides_must_not_be_there_twice() -> None:
    async with served(partial(LOCAL.admit, hello)) as url, httpx2.AsyncClient(trust_env=False) as http:
        twice = [("origin", "http://evil.example"), ("origin", "http://localhost")]
        response = await http.post(url, headers=twice)
    assert response.status_code == 400
    assert error_of(response)["code"] == -32020


@pytest.mark.parametrize(
    ("address", "counted_as"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
        ("::1", "::1"),
        ("a name", "a name"),
    ],
)
def test_a_network_of_ipv6_is_counted_as_one_address(address: str, counted_as: str) -> None:
    assert client_address({"client": (address, 1)}) == counted_as
    assert client_address({"client": None}) == client_address({}) == ""


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (HostNotAllowed("evil.example"), "The host 'evil.example' is not allowed."),
        (
            OriginNotAllowed("https://evil.example"),
            "Pages from 'https://evil.example' may not use this server.",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_refusal_says_why(error: HttpError, sentence: str) -> None:
    assert str(error) == sentence
