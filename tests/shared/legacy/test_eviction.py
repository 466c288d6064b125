"""Which session makes room for a new one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.http.dispatch import Dispatcher
from ragmcp.http.errors import TooManyOpen
from ragmcp.http.exchange import Exchange
from ragmcp.legacy.http_session import HttpSession
from ragmcp.legacy.sessions import to_evict
from ragmcp.server.core import Server
from tests.shared.raw_asgi import asgi_scope, body_then_silence
from tests.support.http_server import limits

pytestmark = pytest.mark.anyio

LIMITS = limits()
DISPATCHER = Dispatcher(Server("s", "1", []), LIMITS, lambda _: None)


async def send(_: object) -> None: ...


def session(client: str = "a", *, used: bool = False, busy: bool = False, used_at: float = 0) -> HttpSession:
    exchange = Exchange(asgi_scope("GET", {}), body_then_silence(), send, LIMITS, set())
    exchange.client = client
    made = HttpSession(DISPATCHER, exchange, lambda: 0)
    made.used, made.used_at = used, used_at
    if busy:
        made.exchanges.add(exchange)
    return made


async def test_the_oldest_session_that_was_never_used_goes_first() -> None:
    one, two, three = session(used=True), session(used_at=2), session(used_at=1)
    assert to_evict([one, two, three], "a") is three


async def test_a_session_that_is_answered_just_now_does_not_go() -> None:
    one, two = session(busy=True), session()
    assert to_evict([one, two], "a") is two


async def test_a_used_session_does_not_go_for_a_new_one_of_the_same_address() -> None:
    with pytest.raises(TooManyOpen):
        to_evict([session(used=True), session(used=True)], "a")


async def test_a_flood_takes_the_sessions_of_the_address_it_comes_from() -> None:
    flood = [session(used_at=1 + number) for number in range(3)]
    assert to_evict([session("b"), *flood], "a") is flood[0]


async def test_an_address_with_few_sessions_gets_one_from_an_address_with_many() -> None:
    many = [session(used=True, used_at=number) for number in range(3)]
    assert to_evict(many, "b") is many[0]
    many[0].used_at = 3
    assert to_evict(many, "b") is many[1]


async def test_addresses_with_as_many_sessions_take_nothing_from_each_other() -> None:
    full = [session(client, used=True) for client in "ab" for _ in range(2)]
    for client in "ab":
        with pytest.raises(TooManyOpen):
            to_evict(full, client)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=8), st.sampled_from("abc")
)
async def test_no_flood_ends_a_used_session_of_an_address_that_has_no_more(
    others: list[tuple[str, bool]], client: str
) -> None:
    full = [session(address, used=used) for address, used in others]
    own = sum(address == client for address, _ in others)
    try:
        gone = to_evict(full, client)
    except TooManyOpen:
        assert all(one.used for one in full)
    else:
        assert not gone.used or sum(one.client == gone.client for one in full) > own + 1
