"""The object that every front end uses: on a real memory, a real store of sessions and a scripted model.

Covers `settings`.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest

from ragchat.app import App
from ragchat.errors import EmptyQuestion, NothingToRetry, UnknownSession
from ragchat.llm import tokens
from ragchat.llm.errors import ModelUnreachable, RateLimited, UnknownModel
from ragchat.memory.client import MemoryClient
from ragchat.types import OFFLINE, Delta, Event
from ragconfig.errors import SettingsError
from tests.support.memory import memory_in
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.ports import free_port
from tests.support.turns import ListMemory, hit, no_servers, notices, settings_in

SKY = hit("The sky is blue because of Rayleigh scattering.")


def app_in(folder: Path, memory: MemoryClient | None = None, **flags: object) -> App:
    settings = settings_in(folder, **flags)
    return App(settings, memory or ListMemory([SKY]), no_servers(settings), environ={})


async def test_a_question_is_answered_offline_from_a_real_memory(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory, app_in(tmp_path, memory) as app:
        text = "# Coffee\n\nThe machine is descaled with citric acid. Error E07 means the grinder is blocked."
        await memory.inject(text, {"uri": "file:///coffee.md"})
        answered = await app.ask("What does error E07 mean?")
    assert "the grinder is blocked" in answered.answer
    assert (answered.grounded, answered.model) == (True, OFFLINE)
    assert answered.citations[0].uri == "file:///coffee.md"
    assert answered.citations[0].start_line <= 3 <= answered.citations[0].end_line


async def test_what_a_real_memory_does_not_hold_is_not_answered(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory, app_in(tmp_path, memory) as app:
        assert "empty" in (await app.ask("Who directs the observatory?")).answer
        await memory.inject("Tea is brewed with boiling water.", {"uri": "note:tea"})
        answered = await app.ask("Which vaccines are recommended for ferrets?")
    assert not answered.grounded
    assert "Nothing in your documents" in answered.answer


async def test_a_turn_is_in_the_store_when_it_is_returned(tmp_path: Path) -> None:
    async with app_in(tmp_path) as app:
        answered = await app.ask("Why is the sky blue?")
        assert (await app.sessions.load(app.session.session_id)).turns == [answered]
        assert app.last_turn == answered


async def test_a_past_session_goes_on_where_it_was(tmp_path: Path) -> None:
    async with app_in(tmp_path) as app:
        first = await app.ask("Why is the sky blue?")
    memory = ListMemory([SKY])
    async with app_in(tmp_path, memory) as app:
        resumed = await app.resume()
        assert resumed.session_id == first.session_id
        await app.ask("and why?")
        assert memory.asked == ["and why? sky blue Notes"]
        assert len((await app.sessions.load(first.session_id[:6])).turns) == 2
        with pytest.raises(UnknownSession):
            await app.resume("nope")
        assert app.session is resumed


async def test_a_new_session_leaves_nothing_behind_until_it_has_a_turn(tmp_path: Path) -> None:
    async with app_in(tmp_path) as app:
        await app.ask("Why is the sky blue?")
        old = app.session.session_id
        assert app.new_session().session_id != old
        assert app.last_turn is None
        assert [info.session_id for info in await app.sessions.list()] == [old]


async def test_retry_takes_the_place_of_the_last_turn(tmp_path: Path) -> None:
    async with app_in(tmp_path) as app:
        with pytest.raises(NothingToRetry):
            await app.retry()
        first = await app.ask("Why is the sky blue?")
        again = await app.retry()
        assert again.question == first.question
        assert again.turn_id != first.turn_id
        assert app.session.turns == [again]
        assert (await app.sessions.load(again.session_id)).turns == [again]


async def test_an_empty_question_is_refused(tmp_path: Path) -> None:
    async with app_in(tmp_path) as app:
        with pytest.raises(EmptyQuestion):
            await app.ask(" \n")


async def test_the_model_is_found_when_it_is_needed(tmp_path: Path) -> None:
    with OpenAIServer([Reply("Scattering [1].")]) as server:
        async with app_in(tmp_path, model__name="auto", model__base_url=server.base_url) as app:
            assert app.model.name == "auto"
            await app.warm_up()
            assert app.model.name == "test-model"
            answered = await app.ask("Why is the sky blue?")
    assert (answered.model, answered.answer) == ("test-model", "Scattering [1].")


async def test_the_history_is_sent_along(tmp_path: Path) -> None:
    with OpenAIServer([Reply("One [1]."), Reply("Two.")]) as server:
        async with app_in(tmp_path, model__name="test-model", model__base_url=server.base_url) as app:
            await app.ask("Why is the sky blue?")
            await app.ask("Is that so everywhere?")
    sent = [(message["role"], message["content"]) for message in server.requests[1]["messages"]]
    assert sent[1:3] == [("user", "Why is the sky blue?"), ("assistant", "One.")]


async def test_an_unknown_model_is_an_error_with_near_names_at_the_first_question(tmp_path: Path) -> None:
    with OpenAIServer(models=["llama3.2"]) as server:
        async with app_in(tmp_path, model__name="lama3", model__base_url=server.base_url) as app:
            with pytest.raises(UnknownModel) as caught:
                await app.ask("Why?")
    assert "llama3.2" in caught.value.hint


async def test_a_model_that_fails_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    with OpenAIServer([Reply(status=429), Reply("Now.")]) as server:
        async with app_in(tmp_path, model__name="test-model", model__base_url=server.base_url) as app:
            with pytest.raises(RateLimited):
                await app.ask("Why?")
            assert app.session.turns == []
            assert (await app.retry()).answer == "Now."
            assert len(app.session.turns) == 1


async def test_a_model_that_cannot_be_reached_is_tried_again_with_the_next_question(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    async with app_in(tmp_path, model__name="auto", model__base_url=url) as app:
        with pytest.raises(ModelUnreachable):
            await app.warm_up()
        with OpenAIServer([Reply("Here now.")], port=port):
            assert (await app.ask("Why?")).answer == "Here now."


async def test_a_cancelled_turn_is_not_kept_and_the_next_one_works(tmp_path: Path) -> None:
    reply = Reply("a b c", hold_after=2)
    with OpenAIServer([reply, Reply("Next.")]) as server:
        async with app_in(tmp_path, model__name="test-model", model__base_url=server.base_url) as app:
            with anyio.fail_after(60):
                with anyio.CancelScope() as scope:

                    def stop(event: Event) -> None:
                        if isinstance(event, Delta):
                            scope.cancel()

                    await app.ask("Why?", stop)
            assert app.session.turns == []
            assert (await app.ask("Why?")).answer == "Next."


async def test_a_turn_that_cannot_be_saved_is_still_answered_and_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("this is not a database, not at all", encoding="utf-8")
    async with app_in(tmp_path, sessions__path=str(broken)) as app:
        events: list[Event] = []
        answered = await app.ask("Why is the sky blue?", events.append)
        assert "Rayleigh" in answered.answer
        assert "was not saved" in notices(events)[-1]


async def test_the_system_prompt_can_be_changed(tmp_path: Path) -> None:
    with OpenAIServer([Reply("Arr.")]) as server:
        async with app_in(tmp_path, model__name="test-model", model__base_url=server.base_url) as app:
            packaged = app.system_prompt
            app.system_prompt = "Talk like a pirate."
            await app.ask("Why?")
            assert app.system_prompt != packaged
    assert server.requests[0]["messages"][0] == {"role": "system", "content": "Talk like a pirate."}


async def test_the_context_fills_with_the_conversation_and_never_overflows(tmp_path: Path) -> None:
    async with app_in(tmp_path, model__context_tokens=4000, model__answer_tokens=500) as app:
        assert app.history_tokens == 0
        for _ in range(3):
            await app.ask("Why is the sky blue? " + "word " * 300)
        assert 0 < app.history_tokens <= app.context_tokens == 4000


async def test_the_prompt_fits_into_the_context_that_the_server_says_it_has(tmp_path: Path) -> None:
    fields = {"owned_by": "vllm", "max_model_len": 2048}
    with OpenAIServer([Reply("So.")], fields=fields) as server:
        async with app_in(tmp_path, model__name="test-model", model__base_url=server.base_url) as app:
            assert app.context_tokens == 16_384
            for _ in range(4):
                await app.ask("Why is the sky blue? " + "word " * 300)
            assert app.context_tokens == 2048
    assert all(tokens.prompt_at_most(one["messages"]) <= 2048 for one in server.requests)
    assert app.session.turns[-1].trace.dropped_turns > 0


async def test_starting_opens_no_file(tmp_path: Path) -> None:
    async with app_in(tmp_path):
        pass
    assert not (tmp_path / "data").exists()


async def test_sessions_of_two_apps_stand_side_by_side(tmp_path: Path) -> None:
    async with app_in(tmp_path) as one, app_in(tmp_path) as other:
        async with anyio.create_task_group() as group:
            group.start_soon(one.ask, "Why is the sky blue?")
            group.start_soon(other.ask, "Is the sky blue?")
        assert len(await one.sessions.list()) == 2
    with sqlite3.connect(one.sessions.path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


@pytest.mark.parametrize(("rewrite", "wordings"), [("never", []), ("when_weak", ["Scattering."])])
async def test_the_settings_decide_whether_a_model_is_asked_for_other_wordings(
    tmp_path: Path, rewrite: str, wordings: list[str]
) -> None:
    with OpenAIServer([Reply("Warm.")], rewriting=Reply("Scattering.")) as server:
        async with app_in(
            tmp_path,
            model__name="test-model",
            model__base_url=server.base_url,
            retrieval__rewrite=rewrite,
            retrieval__rewrite_seconds=30.0,
        ) as app:
            answered = await app.ask("Which warm paint do they mix in Zagreb?")
    assert len(server.requests) == 1
    assert len(server.rewritings) == len(wordings)
    assert answered.trace.wordings == wordings


async def test_a_wrong_way_to_rewrite_is_an_error_that_names_the_key(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"retrieval\.rewrite is not usable"):
        app_in(tmp_path, retrieval__rewrite="always")
