"""Past answers whose documents have changed since."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ragchat.conversation import Conversation
from ragchat.evaluation.stale import Staleness, stale_turns
from ragchat.grounding.types import Citation
from tests.support.memory import memory_of
from tests.support.turns import hit, no_servers, settings_in, turn

TEA = "# Tea\n\nGreen tea is steeped at 75 degrees.\n"


async def test_an_answer_is_stale_once_what_it_quotes_has_changed(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with (
        memory_of(tmp_path, {"tea.md": TEA}) as memory,
        Conversation(settings, memory, no_servers(settings), environ={}) as chat,
    ):
        asked = await chat.ask("How is green tea steeped?")

        async def changed() -> list[str]:
            places = [one.places async for one in stale_turns(chat.sessions, memory)]
            assert places in ([], [["/notes/tea.md:3"]])
            return places[0] if places else []

        assert await changed() == []
        await memory.inject(TEA + "\nBlack tea is not.\n", {"uri": "file:///notes/tea.md"})
        assert await changed() == []
        await memory.inject(TEA.replace("75", "80"), {"uri": "file:///notes/tea.md"})
        assert await changed() == ["/notes/tea.md:3"]
        await memory.forget("file:///notes/tea.md")
        assert await changed() == ["/notes/tea.md:3"]
        with closing(sqlite3.connect(chat.sessions.path)) as db, db:
            db.execute(
                "INSERT INTO sessions SELECT 'damaged', title, created_at, updated_at, 0, '' FROM sessions"
            )
            db.execute("INSERT INTO turns (turn_id, session_id, record) VALUES ('damaged', 'damaged', x'00')")
        assert await changed() == ["/notes/tea.md:3"]
        elsewhere = turn("Why?", cited=[Citation.of(1, hit("The sky is blue."), "The sky is blue.")])
        assert await Staleness(memory).places(elsewhere) == []
        assert asked.answer.grounded
