"""Which session makes room for a new one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from ragmcp.http.errors import TooManyOpen
from ragmcp.legacy.session_table import SessionTable


class Fake(Struct):
    id: str
    client: str = "a"
    used: bool = False
    busy: bool = False


def table(limit: int, *sessions: Fake) -> SessionTable[Fake]:
    full: SessionTable[Fake] = SessionTable(limit)
    for session in sessions:
        full.put(session)
    return full


def test_nothing_goes_while_there_is_room() -> None:
    assert table(2, Fake("1")).to_evict("a") is None


def test_the_oldest_session_that_was_never_used_goes_first() -> None:
    one, two, three = Fake("1", used=True), Fake("2"), Fake("3")
    assert table(3, one, two, three).to_evict("a") is two


def test_a_session_that_is_answered_just_now_does_not_go() -> None:
    one, two = Fake("1", busy=True), Fake("2")
    assert table(2, one, two).to_evict("a") is two


def test_a_used_session_does_not_go_for_a_new_one_of_the_same_address() -> None:
    full = table(2, Fake("1", used=True), Fake("2", used=True))
    with pytest.raises(TooManyOpen):
        full.to_evict("a")


def test_a_flood_takes_the_sessions_of_the_address_it_comes_from() -> None:
    honest = Fake("1", client="b")
    flood = [Fake(f"flood {number}") for number in range(3)]
    assert table(4, honest, *flood).to_evict("a") is flood[0]


def test_an_address_with_few_sessions_gets_one_from_an_address_with_many() -> None:
    many = [Fake(str(number), used=True) for number in range(3)]
    full = table(3, *many)
    assert full.to_evict("b") is many[0]
    full.put(many[0])
    assert full.to_evict("b") is many[1]


def test_addresses_with_as_many_sessions_take_nothing_from_each_other() -> None:
    full = table(4, *(Fake(f"{client}{number}", client, True) for client in "ab" for number in range(2)))
    for client in "ab":
        with pytest.raises(TooManyOpen):
            full.to_evict(client)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["begin", "use", "end"])), max_size=60))
def test_the_table_is_bounded_and_no_flood_ends_a_used_session_of_a_smaller_address(
    steps: list[tuple[str, str]],
) -> None:
    full = table(4)
    for number, (client, step) in enumerate(steps):
        own = [session for session in full if session.client == client]
        if step == "use" and own:
            own[0].used = True
            full.put(own[0])
        elif step == "end" and own:
            assert full.remove(own[0])
            assert not full.remove(own[0])
        elif step == "begin":
            before = [*full]
            try:
                gone = full.to_evict(client)
            except TooManyOpen:
                assert all(session.used for session in before)
                continue
            if gone is not None:
                assert not gone.used or sum(one.client == gone.client for one in before) > len(own) + 1
                full.remove(gone)
            full.put(Fake(str(number), client))
        assert len(full) == len([*full]) <= 4
        assert all(full.get(session.id) is session for session in full)
