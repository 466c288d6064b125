"""One turn asked again with other models and settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragchat.conversation import Conversation, SaveMode
from ragchat.errors import UnknownTurn
from ragchat.evaluation.replaying import ask_again, replayed
from ragchat.settings import ModelSettings
from ragchat.turn.events import ignore
from ragconfig.errors import SettingsError
from tests.support.memory import memory_of
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.turns import no_servers, settings_in


async def test_two_models_are_compared_with_the_answer_then(tmp_path: Path) -> None:
    replies = [Reply("At 75 degrees [1].", prompt_tokens=1_000), Reply("At 80 degrees [1].")]
    prices = {"one": {"in": 2.0, "out": 0}}
    async with memory_of(tmp_path, {"tea.md": "# Tea\n\nGreen tea is steeped at 75 degrees.\n"}) as memory:
        with OpenAIServer(replies, models=["one", "two"]) as server:
            settings = settings_in(
                tmp_path, model__name="one", model__base_url=server.base_url, model__prices=prices
            )
            async with Conversation(settings, memory, no_servers(settings), environ={}) as chat:
                table = settings.table("model", ModelSettings).prices
                then = await chat.ask("How is green tea steeped?")
                await chat.ask("And black tea?")
                chat.save_mode = SaveMode.NOTHING
                session = await chat.sessions.load_until(then.turn_id[:6])
                again = replayed(await ask_again(chat, session, "two", ignore), table, then)
                offline = replayed(await ask_again(chat, session, "offline", ignore), table, then)
                assert [turn.turn_id for turn in session.turns] == [then.turn_id]
                assert (await chat.sessions.load_until("")).turns[-1].question == "And black tea?"
                with pytest.raises(UnknownTurn):
                    await chat.sessions.load_until("zz")
    before = replayed(then, table)
    assert (before.cost, before.prompt_tokens) == (0.002, 1_000)
    assert (again.model, again.cost) == ("two", None)
    assert (again.facts_gone, again.facts_new, again.citations_gone) == (["75 degrees"], ["80 degrees"], [])
    assert (offline.model, offline.facts_gone) == ("offline", [])
    assert offline.citations != before.citations  # one line of the passage
    assert (offline.citations_gone, offline.citations_new) == ([], [])


def test_a_price_that_is_none_is_refused(tmp_path: Path) -> None:
    for prices in ({"one": {"in": -1, "out": 1}}, {"one": 3}, {"one": {"in": 1}}):
        with pytest.raises(SettingsError):
            settings_in(tmp_path, model__prices=prices).table("model", ModelSettings)
