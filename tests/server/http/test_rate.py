"""How many requests one address may send."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.http.access import Access, Guard
from ragmcp.http.exchange import Receive, Scope, Send, respond
from ragmcp.oauth.bearer import SharedToken
from ragmemory.http.rate import RateLimit, RateLimited
from tests.support.http_server import served


async def hello(_: Scope, __: Receive, send: Send) -> None:
    """What is behind the door."""
    await respond(send, 200, b'"hello"')


@asynccontextmanager
async def door(limit: RateLimit) -> AsyncIterator[Callable[..., Awaitable[httpx2.Response]]]:
    """Knocks with headers."""
    app = partial(Guard(Access(), authorize=limit).admit, hello)
    async with served(app) as url, httpx2.AsyncClient(timeout=10, trust_env=False) as http:

        async def knock(**headers: str) -> httpx2.Response:
            return await http.post(url, headers=headers)

        yield knock


async def test_too_many_requests_are_told_when_to_come_back() -> None:
    now = [100.0]
    async with door(RateLimit(0.5, 2, clock=lambda: now[0])) as knock:
        assert [(await knock()).status_code for _ in range(3)] == [200, 200, 429]
        refused = await knock()
        assert refused.headers["retry-after"] == "2"
        assert refused.json()["error"]["data"]["errorCode"] == "RATE_LIMITED"
        assert (await knock(origin="http://evil.example")).status_code == 403
        now[0] += 2
        assert [(await knock()).status_code for _ in range(2)] == [200, 429]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 10)), max_size=60),
    st.floats(0.1, 10),
    st.integers(1, 5),
)
def test_no_address_gets_more_than_its_burst_and_rate(
    requests: list[tuple[str, float]], rate: float, burst: int
) -> None:
    now, admitted = 0.0, dict.fromkeys("abc", 0)
    limit = RateLimit(rate, burst, clock=lambda: now)
    for address, pause in requests:
        now += pause
        wait = limit.wait(address)
        admitted[address] += not wait
        assert wait >= 0
        assert wait <= 1 / rate
    assert all(count <= burst + now * rate + 1e-6 for count in admitted.values())


def test_the_table_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragmemory.http.rate.MAX_ADDRESSES", 3)
    limit = RateLimit(1, 1, clock=lambda: 0.0)
    for number in range(100):
        assert not limit.wait(str(number))
    assert [bool(limit.wait(address)) for address in ("97", "98", "99", "0")] == [True, True, True, False]


async def test_guesses_of_a_token_are_counted() -> None:
    async with door(RateLimit(0.1, 2, SharedToken("a-secret"))) as knock:
        guesses = [(await knock(authorization=f"Bearer {guess}")).status_code for guess in "abc"]
        assert guesses == [401, 401, 429]
        assert (await knock(authorization="Bearer a-secret")).status_code == 429


async def test_a_rate_of_zero_is_no_limit() -> None:
    async with door(RateLimit(0, 1)) as knock:
        assert [(await knock()).status_code for _ in range(5)] == [200] * 5


async def test_a_page_that_may_come_in_can_read_that_it_sends_too_much() -> None:
    async with door(RateLimit(0.1, 1)) as knock:
        await knock()
        refused = await knock(origin="http://localhost:3000")
    assert refused.status_code == 429
    assert refused.headers["access-control-allow-origin"] == "http://localhost:3000"


def test_a_refusal_says_why() -> None:
    assert str(RateLimited(3)) == "Too many requests; try again in 3 s."
