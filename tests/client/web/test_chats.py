"""The open conversations of the page: a bounded number of them, one turn at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragchat.conversation import Conversation
from ragchat.errors import UnknownSession
from ragchat.web import chats
from ragchat.web.chats import MAX_IDLE, Chats
from ragchat.web.errors import Busy, Outdated
from tests.support.turns import ListMemory, hit, no_servers, settings_in


@pytest.fixture
async def open_chats(tmp_path: Path) -> AsyncIterator[Chats]:
    settings = settings_in(tmp_path)
    memory = ListMemory([hit("Green tea is brewed at 75 degrees.")])
    async with Chats(lambda: Conversation(settings, memory, no_servers(settings))) as found:
        yield found


async def test_a_session_that_is_closed_goes_on_where_it_was(open_chats: Chats) -> None:
    first = (await open_chats.new()).session.session_id
    async with open_chats.taking_turn(first, "") as chat:
        turn = await chat.ask("How hot is green tea?")
    for _ in range(MAX_IDLE):
        await open_chats.new()
    async with open_chats.taking_turn(first, turn.turn_id) as again:
        assert again is not chat
        assert again.last_turn == turn


async def test_a_second_turn_at_once_is_refused(open_chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats, "BUSY_SECONDS", 0)
    session_id = (await open_chats.new()).session.session_id
    async with open_chats.taking_turn(session_id):
        with pytest.raises(Busy):
            async with open_chats.taking_turn(session_id):
                pass
        with pytest.raises(Busy):
            await open_chats.forget(session_id)
    await open_chats.forget(session_id)
    with pytest.raises(UnknownSession):
        async with open_chats.taking_turn(session_id):
            pass


async def test_a_session_is_asked_by_its_whole_id_alone(open_chats: Chats) -> None:
    session_id = (await open_chats.new()).session.session_id
    async with open_chats.taking_turn(session_id) as chat:
        await chat.ask("How hot is green tea?")
    with pytest.raises(UnknownSession):
        async with open_chats.taking_turn(session_id[:-1]):
            pass


async def test_a_page_that_shows_an_older_turn_is_outdated(open_chats: Chats) -> None:
    session_id = (await open_chats.new()).session.session_id
    async with open_chats.taking_turn(session_id, "") as chat:
        await chat.ask("How hot is green tea?")
    with pytest.raises(Outdated):
        async with open_chats.taking_turn(session_id, ""):
            pass
