"""Who may come in over HTTP."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.transports.access import Access, Buckets, guarded
from ragmcp.transports.exchange import Receive, Scope, Send, respond
from tests.support.http_server import served

TOKEN = "a-secret-nobody-guesses"


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
async def door(now: list[float] | None = None, **rules: Any) -> AsyncIterator[Door]:
    clock = time.monotonic if now is None else lambda: now[0]
    app = guarded(hello, Access(**rules), clock)
    async with served(app) as url, httpx2.AsyncClient(timeout=10, trust_env=False) as http:
        yield Door(http, url)


def error_of(response: httpx2.Response) -> Mapping[str, Any]:
    answer = response.json()
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] is None
    assert answer["error"]["data"].keys() >= {"errorCode", "details", "requestId"}
    error: Mapping[str, Any] = answer["error"]
    return error


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8765", "LOCALHOST:80", "localhost."])
async def test_loopback_names_are_allowed_with_any_port(host: str) -> None:
    async with door() as here:
        assert (await here.knock(host=host)).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "[::2]", "[", ":"]
)
async def test_a_foreign_host_is_refused(host: str) -> None:
    async with door() as here:
        response = await here.knock(host=host)
    assert response.status_code == 403
    assert error_of(response)["data"]["errorCode"] == "HOST_NOT_ALLOWED"


async def test_names_that_were_configured_are_allowed_and_a_star_allows_all() -> None:
    async with door(allowed_hosts=frozenset({"memory.example"})) as here:
        assert (await here.knock(host="Memory.example:99")).status_code == 200
        assert (await here.knock(host="other.example")).status_code == 403
    async with door(allowed_hosts=frozenset({"*"}), token=TOKEN) as here:
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
    ["http://evil.example", "null", "http://localhost.evil.example", "file://localhost", "http://[", "", "*"],
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
    async with door(token=TOKEN) as here:
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


async def test_the_token_opens_and_nothing_else_does(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with door(token=TOKEN) as here:
        assert (await here.knock(authorization=f"Bearer {TOKEN}")).status_code == 200
        assert (await here.knock(authorization=f"bearer  {TOKEN}")).status_code == 200
        wrong = [f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer x", f"Bearer {TOKEN}x", ""]
        refused = [await here.knock(authorization=header) for header in wrong] + [await here.knock()]
    for response in refused:
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert error_of(response)["data"]["errorCode"] == "UNAUTHORIZED"
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(Access(token=TOKEN))


async def test_a_header_that_decides_must_not_be_there_twice() -> None:
    async with served(guarded(hello, Access())) as url, httpx2.AsyncClient(trust_env=False) as http:
        twice = [("origin", "http://evil.example"), ("origin", "http://localhost")]
        response = await http.post(url, headers=twice)
    assert response.status_code == 400
    assert error_of(response)["code"] == -32020


async def test_too_many_requests_are_told_when_to_come_back() -> None:
    now = [100.0]
    async with door(now, requests_per_second=0.5, burst=2) as here:
        assert [(await here.knock()).status_code for _ in range(3)] == [200, 200, 429]
        refused = await here.knock()
        assert refused.headers["retry-after"] == "2"
        assert error_of(refused)["data"]["errorCode"] == "RATE_LIMITED"
        assert (await here.knock(origin="http://evil.example")).status_code == 403
        now[0] += 2
        assert [(await here.knock()).status_code for _ in range(2)] == [200, 429]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 10)), max_size=60),
    st.floats(0.1, 10),
    st.integers(1, 5),
)
def test_no_address_gets_more_than_its_burst_and_rate(
    requests: list[tuple[str, float]], rate: float, burst: int
) -> None:
    buckets, now, admitted = Buckets(rate, burst), 0.0, dict.fromkeys("abc", 0)
    for address, pause in requests:
        now += pause
        wait = buckets.wait(address, now)
        admitted[address] += not wait
        assert wait >= 0
        assert wait <= 1 / rate
    assert all(count <= burst + now * rate + 1e-6 for count in admitted.values())


def test_the_table_of_addresses_is_bounded() -> None:
    buckets = Buckets(1, 1, most=3)
    for number in range(100):
        assert not buckets.wait(str(number), 0)
    assert len(buckets) == 3
    assert buckets.wait("99", 0)
    assert not buckets.wait("0", 0)
