"""/notebook: another scope, other conversations and instructions, and back."""

from __future__ import annotations

from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from ragchat.notebooks.definitions import Notebook, folder_of, save
from ragchat.ui.slash.completer import SlashCompleter
from tests.client.ui.slash.test_table import open_room


async def test_a_notebook_has_conversations_of_its_own(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        chat = room.context.conversation
        for name in ("bees", "tea"):
            await room.context.memory.inject(f"The {name} are at 75 degrees.", {"uri": f"note:{name}"})
        assert "no notebooks yet" in await room.run("/notebook")
        save(folder_of(chat.settings), Notebook("hive", "note:bees", "Be [bold]brief[/bold].\u200b"))
        await room.say("At how many degrees is tea?")
        assert r"[bold]brief[/bold].\u200b" in await room.run("/notebook hive")
        assert "note:tea" not in await room.say("At how many degrees are the bees?")
        assert room.context.status.notebook == "hive"
        hive = chat.session.session_id
        assert hive in (shown := await room.run("/sessions"))
        assert "is tea" not in shown
        assert "hive*" in await room.run("/notebook")
        await room.run("/in note:tea")
        assert room.context.status.scope == "note:tea"
        await room.run("/in *")
        assert chat.scope.name == "note:bees"
        await room.run("/in note:tea")
        await room.run("/notebook hive")
        assert chat.scope.name == "note:bees"

        await room.run("/notebook -")
        await room.run("/in note:tea")
        await room.run("/notebook -")
        assert (chat.scope.name, room.context.status.notebook) == ("", "")
        assert "in hive" in await room.run("/sessions")
        assert "in the notebook hive" in await room.run(f"/resume {hive}")
        assert chat.scope.name == "note:bees"
        assert "\nDid you mean hive? /notebook lists them.\n" in await room.say("/notebook hove")
        completer = SlashCompleter(lambda: room.context)
        offered = completer.get_completions_async(Document("/notebook h"), CompleteEvent())
        assert [one.text async for one in offered] == ["hive"]
