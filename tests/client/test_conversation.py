"""The object that every front end uses: on a real memory, a real store of sessions and a scripted model.

Covers `settings` and `answer`.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from unittest.mock import AsyncMock

import anyio
import pytest

from ragchat.conversation import Conversation
from ragchat.errors import (
    EmptyQuestion,
    NoSession,
    NothingToRetry,
    SessionsUnavailable,
    SeveralDocumentsMatch,
    UnknownSession,
)
from ragchat.llm import tokens
from ragchat.llm.errors import ModelUnreachable, RateLimited, UnknownModel
from ragchat.llm.types import OFFLINE
from ragchat.memory.client import MemoryClient
from ragchat.notebooks.definitions import Notebook, folder_of
from ragchat.notebooks.definitions import load as load_notebook
from ragchat.notebooks.definitions import save as save_notebook
from ragchat.offline.answer import NO_MODEL
from ragchat.sessions.store import SessionStore
from ragchat.turn.events import Delta, Event
from ragconfig.errors import SettingsError
from ragconfig.settings import load_settings
from tests.support.memory import memory_in
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.ports import free_port
from tests.support.turns import ListMemory, hit, no_servers, notices, settings_in

SKY = hit("The sky is blue because of Rayleigh scattering.")


def conversation_in(folder: Path, memory: MemoryClient | None = None, **flags: object) -> Conversation:
    settings = settings_in(folder, **flags)
    return Conversation(settings, memory or ListMemory([SKY]), no_servers(settings), environ={})


async def test_a_question_is_answered_offline_from_a_real_memory(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory, conversation_in(tmp_path, memory) as conversation:
        text = "# Coffee\n\nThe machine is descaled with citric acid. Error E07 means the grinder is blocked."
        await memory.inject(text, {"uri": "file:///coffee.md"})
        answered = await conversation.ask("What does error E07 mean?")
    assert "the grinder is blocked" in answered.answer.text
    assert (answered.answer.grounded, answered.answer.model) == (True, OFFLINE)
    assert answered.answer.citations[0].uri == "file:///coffee.md"
    assert answered.answer.citations[0].start_line <= 3 <= answered.answer.citations[0].end_line


async def test_what_a_real_memory_does_not_hold_is_not_answered(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory, conversation_in(tmp_path, memory) as conversation:
        assert "empty" in (await conversation.ask("Who directs the observatory?")).answer.text
        await memory.inject("Tea is brewed with boiling water.", {"uri": "note:tea"})
        answered = await conversation.ask("Which vaccines are recommended for ferrets?")
    assert not answered.answer.grounded
    assert "Nothing in your documents" in answered.answer.text


async def test_a_model_that_nobody_chose_is_named_once(tmp_path: Path) -> None:
    events: list[Event] = []
    with OpenAIServer(models=["bge-m3", "llama3.2", "mistral"]) as server:
        async with conversation_in(
            tmp_path, model__name="auto", model__base_url=server.base_url
        ) as conversation:
            await conversation.ask("Why is the sky blue?", events.append)
            assert notices(events)[0].startswith(
                "llama3.2 answers, the first of 2 chat models of the server."
            )
            events.clear()
            await conversation.ask("Why is the sky blue?", events.append)
            await conversation.model.select("mistral")
            await conversation.ask("Why is the sky blue?", events.append)
    assert not [notice for notice in notices(events) if "chat models" in notice]


async def test_a_turn_is_in_the_store_when_it_is_returned(tmp_path: Path) -> None:
    async with conversation_in(tmp_path) as conversation:
        answered = await conversation.ask("Why is the sky blue?")
        assert (await conversation.sessions.load(conversation.session.session_id)).turns == [answered]
        assert conversation.last_turn == answered


async def test_of_the_saved_turns_only_the_last_keeps_its_passages_in_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(conversation: Conversation) -> list[bool]:
        return [bool(turn.answer.candidates) for turn in conversation.session.turns]

    async with conversation_in(tmp_path) as conversation:
        first = await conversation.ask("Why is the sky blue?")
        with monkeypatch.context() as patched:
            patched.setattr(SessionStore, "save_turn", AsyncMock(side_effect=SessionsUnavailable("", "")))
            await conversation.ask("Why is the sky blue, again?")
        last = await conversation.ask("What scatters in the sky?")
        assert kept(conversation) == [False, True, True]
        saved = await conversation.sessions.load(first.session_id)
        assert saved.turns == [first, last]
        await conversation.resume(first.session_id)
        assert kept(conversation) == [False, True]


async def test_a_past_session_goes_on_where_it_was(tmp_path: Path) -> None:
    async with conversation_in(tmp_path) as conversation:
        first = await conversation.ask("Why is the sky blue?")
    memory = ListMemory([SKY])
    async with conversation_in(tmp_path, memory) as conversation:
        resumed = await conversation.resume()
        assert resumed.session_id == first.session_id
        await conversation.ask("and why?")
        assert memory.asked == ["and why? sky blue Notes"]
        assert len((await conversation.sessions.load(first.session_id[:6])).turns) == 2
        with pytest.raises(UnknownSession):
            await conversation.resume("nope")
        assert conversation.session is resumed


async def test_a_new_session_leaves_nothing_behind_until_it_has_a_turn(tmp_path: Path) -> None:
    async with conversation_in(tmp_path) as conversation:
        await conversation.ask("Why is the sky blue?")
        old = conversation.session.session_id
        assert conversation.new_session().session_id != old
        assert conversation.last_turn is None
        assert [info.session_id for info in await conversation.sessions.list()] == [old]


async def test_retry_takes_the_place_of_the_last_turn(tmp_path: Path) -> None:
    async with conversation_in(tmp_path) as conversation:
        with pytest.raises(NothingToRetry):
            await conversation.retry()
        first = await conversation.ask("Why is the sky blue?")
        again = await conversation.retry()
        assert again.question == first.question
        assert again.turn_id != first.turn_id
        assert conversation.session.turns == [again]
        assert (await conversation.sessions.load(again.session_id)).turns == [again]


async def test_retry_keeps_a_report(tmp_path: Path) -> None:
    async with conversation_in(tmp_path) as conversation:
        report = await conversation.research("Why is the sky blue?")
        answered = await conversation.retry()
        session = await conversation.sessions.load(answered.session_id)
    assert [turn.turn_id for turn in session.turns] == [report.turn.turn_id, answered.turn_id]


async def test_an_empty_question_is_refused(tmp_path: Path) -> None:
    async with conversation_in(tmp_path) as conversation:
        with pytest.raises(EmptyQuestion):
            await conversation.ask(" \n")


async def test_the_model_is_found_when_it_is_needed(tmp_path: Path) -> None:
    with OpenAIServer([Reply("Scattering [1].")]) as server:
        async with conversation_in(
            tmp_path, model__name="auto", model__base_url=server.base_url
        ) as conversation:
            assert conversation.model.name == "auto"
            await conversation.warm_up()
            assert conversation.model.name == "test-model"
            answered = await conversation.ask("Why is the sky blue?")
    assert (answered.answer.model, answered.answer.text) == ("test-model", "Scattering [1].")


async def test_the_history_is_sent_along(tmp_path: Path) -> None:
    with OpenAIServer([Reply("One [1]."), Reply("Two.")]) as server:
        async with conversation_in(
            tmp_path, model__name="test-model", model__base_url=server.base_url
        ) as conversation:
            await conversation.ask("Why is the sky blue?")
            await conversation.ask("Is that so everywhere?")
    sent = [(message["role"], message["content"]) for message in server.requests[1]["messages"]]
    assert sent[1:3] == [("user", "Why is the sky blue?"), ("assistant", "One.")]


async def test_an_unknown_model_is_an_error_with_near_names_at_the_first_question(tmp_path: Path) -> None:
    with OpenAIServer(models=["llama3.2"]) as server:
        async with conversation_in(
            tmp_path, model__name="lama3", model__base_url=server.base_url
        ) as conversation:
            with pytest.raises(UnknownModel) as caught:
                await conversation.ask("Why?")
    assert "llama3.2" in caught.value.hint


async def test_a_model_that_fails_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    with OpenAIServer([Reply(status=429), Reply("Now.")]) as server:
        async with conversation_in(
            tmp_path, model__name="test-model", model__base_url=server.base_url
        ) as conversation:
            with pytest.raises(RateLimited):
                await conversation.ask("Why?")
            assert conversation.session.turns == []
            assert (await conversation.retry()).answer.text == "Now."
            assert len(conversation.session.turns) == 1


async def test_a_model_that_cannot_be_reached_is_tried_again_with_the_next_question(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    async with conversation_in(tmp_path, model__name="auto", model__base_url=url) as conversation:
        with pytest.raises(ModelUnreachable):
            await conversation.warm_up()
        with OpenAIServer([Reply("Here now.")], port=port):
            assert (await conversation.ask("Why?")).answer.text == "Here now."


async def test_a_cancelled_turn_is_not_kept_and_the_next_one_works(tmp_path: Path) -> None:
    reply = Reply("a b c", hold_after=2)
    with OpenAIServer([reply, Reply("Next.")]) as server:
        async with conversation_in(
            tmp_path, model__name="test-model", model__base_url=server.base_url
        ) as conversation:
            with anyio.fail_after(60):
                with anyio.CancelScope() as scope:

                    def stop(event: Event) -> None:
                        if isinstance(event, Delta):
                            scope.cancel()

                    await conversation.ask("Why?", stop)
            assert conversation.session.turns == []
            assert (await conversation.ask("Why?")).answer.text == "Next."


async def test_a_turn_that_cannot_be_saved_is_still_answered_and_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("this is not a database, not at all", encoding="utf-8")
    async with conversation_in(tmp_path, sessions__path=str(broken)) as conversation:
        events: list[Event] = []
        answered = await conversation.ask("Why is the sky blue?", events.append)
        assert "Rayleigh" in answered.answer.text
        assert "was not saved" in notices(events)[-1]


async def test_the_system_prompt_can_be_changed(tmp_path: Path) -> None:
    with OpenAIServer([Reply("Arr.")]) as server:
        async with conversation_in(
            tmp_path, model__name="test-model", model__base_url=server.base_url
        ) as conversation:
            packaged = conversation.system_prompt
            conversation.system_prompt = "Talk like a pirate."
            await conversation.ask("Why?")
            assert conversation.system_prompt != packaged
    assert server.requests[0]["messages"][0] == {"role": "system", "content": "Talk like a pirate."}


async def test_a_notebook_brings_its_instructions_scope_and_model(tmp_path: Path) -> None:
    with OpenAIServer([Reply("Yes."), Reply("No.")]) as server:
        flags = {"model__base_url": server.base_url}
        settings = settings_in(tmp_path, model__name="test-model", **flags)
        thesis = save_notebook(
            folder_of(settings), Notebook("thesis", "note:bees", "Be {brief}.", "test-model")
        )
        async with memory_in(tmp_path) as memory:
            await memory.inject("The bees are blue.", {"uri": "note:bees"})
            notebook = load_notebook(folder_of(settings), thesis.stem)
            async with Conversation(settings, memory, no_servers(settings), {}, notebook=notebook) as chat:
                assert chat.scope.name == "note:bees"
                await chat.ask("Are the bees blue?")
                inside = chat.session
                packaged = chat.system_prompt
                await chat.use_notebook(None)
                chat.new_session()
                await chat.ask("Are the bees blue?")
            async with Conversation(settings, memory, no_servers(settings), {}) as chat:
                await chat.resume(inside.session_id)
                assert chat.notebook == notebook
                save_notebook(folder_of(settings), Notebook("thesis", "*"))
                with pytest.raises(NoSession):
                    await chat.resume()
    first, second = (request["messages"][0]["content"] for request in server.requests)
    assert first.startswith(packaged)
    assert first.endswith("Be {brief}.")
    assert second == packaged


async def test_the_conversations_of_a_notebook_whose_file_is_gone_are_ordinary_ones(tmp_path: Path) -> None:
    async with conversation_in(tmp_path) as chat:
        file = save_notebook(folder_of(chat.settings), Notebook("thesis"))
        await chat.use_notebook(Notebook("thesis"))
        saved = chat.new_session()
        await chat.ask("Why is the sky blue?")
        unsaved = chat.new_session()
        file.unlink()
        await chat.use_notebook_of(unsaved)
        assert (chat.notebook, unsaved.notebook) == (None, "")
        assert [info.notebook for info in await chat.sessions.list()] == [""]
        await chat.use_notebook(Notebook("thesis"))
        chat.new_session()
        later = (await chat.ask("Why is the sky blue?")).session_id
        for session_id in (saved.session_id, later):
            assert (await chat.resume(session_id)).notebook == ""
            assert chat.notebook is None
        for expected in (["The notebook thesis is gone: all documents are asked."], []):
            events: list[Event] = []
            await chat.ask("Why is the sky blue?", events.append)
            assert [notice for notice in notices(events) if notice != NO_MODEL] == expected


async def test_a_notebook_that_cannot_be_used_changes_neither_the_scope_nor_the_model(tmp_path: Path) -> None:
    environ = {
        "RAGCHAT_HOME": str(tmp_path),
        "RAGCHAT_MODEL_NAME": "mine",
        "RAGCHAT_MODEL_BASE_URL": f"http://127.0.0.1:{free_port()}/v1",
    }
    settings = load_settings(None, {"model.retries": 0}, environ, tmp_path)
    async with (
        memory_in(tmp_path) as memory,
        Conversation(settings, memory, no_servers(settings), environ={}) as chat,
    ):
        for text in ("Green tea.", "Black tea."):
            await memory.inject(text, {"title": "Tea"})
        await memory.inject("Bees.", {"uri": "note:bees"})
        await chat.scope.narrow("note:bees")
        for notebook, error in (
            (Notebook("ambiguous", "tea", model=OFFLINE), SeveralDocumentsMatch),
            (Notebook("unreachable", model="other"), ModelUnreachable),
        ):
            with pytest.raises(error):
                await chat.use_notebook(notebook)
            assert (chat.model.selected, chat.scope.name, chat.scope.whole) == ("mine", "note:bees", "")
            assert chat.scope.searched is chat.scope


async def test_a_model_of_the_command_line_wins_over_that_of_a_notebook(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, model__name=OFFLINE)
    notebook = Notebook("thesis", model="hosted")
    async with Conversation(settings, ListMemory(), no_servers(settings), {}, notebook=notebook) as chat:
        assert (chat.model.selected, chat.configured_model) == (OFFLINE, OFFLINE)


async def test_the_context_fills_with_the_conversation_and_never_overflows(tmp_path: Path) -> None:
    async with conversation_in(
        tmp_path, model__context_tokens=4000, model__answer_tokens=500
    ) as conversation:
        assert conversation.history_tokens == 0
        for _ in range(3):
            await conversation.ask("Why is the sky blue? " + "word " * 300)
        assert 0 < conversation.history_tokens <= conversation.context_tokens == 4000


async def test_the_prompt_fits_into_the_context_that_the_server_says_it_has(tmp_path: Path) -> None:
    fields = {"owned_by": "vllm", "max_model_len": 2048}
    with OpenAIServer([Reply("So.")], fields=fields) as server:
        async with conversation_in(
            tmp_path, model__name="test-model", model__base_url=server.base_url
        ) as conversation:
            assert conversation.context_tokens == 16_384
            for _ in range(4):
                await conversation.ask("Why is the sky blue? " + "word " * 300)
            assert conversation.context_tokens == 2048
    assert all(tokens.prompt_at_most(one["messages"]) <= 2048 for one in server.requests)
    assert conversation.session.turns[-1].answer.dropped_turns > 0


async def test_at_most_a_quarter_of_a_small_context_is_kept_for_the_answer(tmp_path: Path) -> None:
    with OpenAIServer([Reply("So.")]) as server:
        async with conversation_in(
            tmp_path,
            model__name="test-model",
            model__base_url=server.base_url,
            model__context_tokens=3000,
        ) as conversation:
            assert conversation.limits.budget.answer == 750
            assert (await conversation.ask("Why is the sky blue?")).answer.text.startswith("So.")


async def test_starting_opens_no_file(tmp_path: Path) -> None:
    async with conversation_in(tmp_path):
        pass
    assert not (tmp_path / "data").exists()


async def test_sessions_of_two_conversations_stand_side_by_side(tmp_path: Path) -> None:
    async with conversation_in(tmp_path) as one, conversation_in(tmp_path) as other:
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
        async with conversation_in(
            tmp_path,
            model__name="test-model",
            model__base_url=server.base_url,
            retrieval__rewrite=rewrite,
            retrieval__rewrite_seconds=30.0,
        ) as conversation:
            answered = await conversation.ask("Which warm paint do they mix in Zagreb?")
    assert len(server.requests) == 1
    assert len(server.rewritings) == len(wordings)
    assert answered.answer.wordings == wordings


async def test_a_wrong_way_to_rewrite_is_an_error_that_names_the_key(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"retrieval\.rewrite is not usable"):
        conversation_in(tmp_path, retrieval__rewrite="always")
