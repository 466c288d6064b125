"""A turn as a stream of events, which goes on without its stream; more cards, /why, models, the scope.

Covers `streaming`.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ragchat.web import chats
from tests.client.web.test_completions import door
from tests.client.web.test_markup import elements, text_of
from tests.support.browser import serving
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program
from tests.support.webchat import ask, events, last_event, new_session, with_model

pytestmark = pytest.mark.full

TEA = "# Tea\n\nGreen tea is brewed at 75 degrees.\n"
COFFEE = "# Coffee\n\nCoffee is brewed at 93 degrees.\n"


@pytest.fixture
def program(program: Program) -> Program:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    program("inject", "-", "--uri", "coffee.md", stdin=COFFEE)
    return program


async def test_without_a_model_the_answer_is_cards_with_the_best_part_marked(program: Program) -> None:
    async with serving(program) as web:
        with web.signed_in() as client:
            session = new_session(client)
            turn = ask(client, session, "How hot is green tea?")
            assert turn["nodes"] == []
            card = turn["cards"][0]
            assert card["location"] == "tea.md:3"
            assert text_of(card["nodes"]) == "Green tea is brewed at 75 degrees."
            assert elements("mark", card["nodes"])
            assert turn["sources"][0]["document_id"]
            path = f"/api/sessions/{session}/turns/{turn['turn_id']}"
            why = client.get(f"{path}/why").json()
            assert ["Question", "How hot is green tea?"] in why["searched"]
            assert {one["used"] for one in why["candidates"]} == {True, False}
            assert 0 <= why["judgement"]["probability"] <= 1
            more = client.get(f"{path}/more").json()
            assert len(more["cards"]) >= len(turn["cards"])
            assert not more["more"]
            assert client.get(f"/api/sessions/{session}/turns/none/why").status_code == 409


async def test_a_model_s_answer_arrives_in_blocks_with_its_reasoning(program: Program) -> None:
    reply = Reply("Green tea takes 75 degrees [1].\n\nAnd *more*.", reasoning="Let me see.")
    with OpenAIServer([reply]) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                found = [*events(client, new_session(client), question="How hot is green tea?", last="")]
                assert "".join(one["text"] for one in found if one["type"] == "reasoning") == "Let me see."
                assert {"retrieving", "retrieved"} <= {one["type"] for one in found}
                turn = found[-1]["turn"]
                assert turn["nodes"] == [
                    ["p", {}, "Green tea takes 75 degrees ", ["cite", {"n": 1}], "."],
                    ["p", {}, "And ", ["em", {}, "more"], "."],
                ]
                assert turn["summary"].startswith("test-model · ")


async def test_an_answer_goes_on_when_its_stream_is_left_and_can_be_followed_again(program: Program) -> None:
    slow = Reply("One two three.", hold_after=2)
    with OpenAIServer([slow]) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                session = new_session(client)
                asked_until("blocks", client, session).close()
                assert client.get("/api/sessions").json()["sessions"][0]["title"] == "What is tea?"
                shown = client.get(f"/api/sessions/{session}").json()
                assert (shown["asked"], shown["turns"]) == ("What is tea?", [])
                following = events(client, session, "answer")
                found = [next(following)]
                slow.go.set()
                found += following
                assert {"retrieved", "blocks"} <= {one["type"] for one in found}
                shown = client.get(f"/api/sessions/{session}").json()
                assert (shown["asked"], shown["turns"]) == ("", [found[-1]["turn"]])
                assert not [*events(client, session, "answer")]


async def test_an_answer_that_fails_without_a_page_is_reported_once_to_the_next_page(
    program: Program,
) -> None:
    slow = Reply("One two three.", hold_after=2, break_after=2)
    with OpenAIServer([slow]) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                session = new_session(client)
                asked_until("blocks", client, session).close()
                slow.go.set()
                assert [*events(client, session, "answer")][-1]["error"]["code"] == "MODEL_STREAM_BROKEN"
                assert client.get(f"/api/sessions/{session}").status_code == 409


async def test_the_part_before_a_broken_stream_is_shown(program: Program) -> None:
    with OpenAIServer([Reply("One two three.", break_after=3)]) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                found = [*events(client, new_session(client), question="What is tea?", last="")]
                drawn = [one["nodes"] for one in found if one["type"] == "blocks"]
                assert (drawn[-1], found[-1]["type"]) == ([["p", {}, "One two"]], "error")


async def test_a_turn_that_is_stopped_is_kept_as_far_as_it_was_written(program: Program) -> None:
    slow = Reply("One two three.", hold_after=2)
    with OpenAIServer([slow, Reply("Done.")]) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                session = new_session(client)
                stream = asked_until("blocks", client, session)
                client.post(f"/api/sessions/{session}/stop", json={}).raise_for_status()
                turn = [*stream][-1]["turn"]
                assert turn["answer"].startswith("One")
                assert "The answer was stopped." in turn["notices"]
                assert client.get(f"/api/sessions/{session}").json()["turns"] == [turn]


async def test_a_turn_that_is_stopped_before_its_first_word_leaves_the_session_free(program: Program) -> None:
    slow = Reply("One two three.", hold_after=1)
    with OpenAIServer([slow, Reply("Done.")]) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                session = new_session(client)
                stream = asked_until("retrieved", client, session)
                assert slow.reached.wait(LONGEST_SECONDS)
                client.post(f"/api/sessions/{session}/stop", json={}).raise_for_status()
                assert [*stream][-1]["error"]["code"] == "STOPPED"
                assert ask(client, session, "And coffee?", last="")["answer"].startswith("Done.")
                assert client.get(f"/api/sessions/{session}").json()["turns"][0]["question"] == "And coffee?"


async def test_a_turn_is_stopped_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats, "BUSY_SECONDS", LONGEST_SECONDS)
    async with door(tmp_path) as opened, AsyncExitStack() as busy:
        session = (await opened.site.chats.new()).session.session_id
        await busy.enter_async_context(opened.site.chats.taking_turn(session))
        opened.client.headers.update(opened.browser)
        path, asked = f"/api/sessions/{session}", {"question": "Why is the sky blue?"}
        async with opened.client.stream("POST", f"{path}/ask", json=asked) as response:
            (await opened.client.post(f"{path}/stop", json={})).raise_for_status()
            await busy.aclose()
            lines = [json.loads(line) async for line in response.aiter_lines()]
        assert [one["error"]["code"] for one in lines] == ["STOPPED"]


async def test_a_second_question_at_once_is_refused_with_a_sentence(program: Program) -> None:
    slow = Reply("One two three.", hold_after=1)
    with OpenAIServer([slow]) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client, closing(another(client)) as other:
                session = new_session(client)
                stream = asked_until("retrieved", client, session)
                assert last_event(other, session, "And coffee?")["error"]["code"] == "SESSION_BUSY"
                slow.go.set()
                assert [*stream][-1]["type"] == "turn"


async def test_without_the_model_s_server_one_can_ask_offline(program: Program) -> None:
    with OpenAIServer([]) as model:
        program = with_model(program, model)
    async with serving(program) as web:
        with web.signed_in() as client:
            known = client.get("/api/models").json()
            assert known["choices"] == ["auto", "offline"]
            assert "cannot be reached" in known["failed"]
            session = new_session(client)
            failed = last_event(client, session, "How hot is green tea?")
            assert "/model offline" in failed["error"]["hint"]
            assert ask(client, session, "How hot is green tea?", model="offline")["cards"]


async def test_the_scope_and_the_model_are_those_of_the_request(program: Program) -> None:
    with OpenAIServer([Reply("Yes [1].")], models=("test-model", "other-model")) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                assert client.get("/api/models").json() == {
                    "choices": ["test-model", "other-model", "auto", "offline"],
                    "name": "test-model",
                    "failed": "",
                }
                assert client.get("/api/scope", params={"name": "tea.md"}).json() == {"name": "tea.md"}
                assert client.get("/api/scope", params={"name": "nothing.md"}).status_code == 409
                session = new_session(client)
                turn = ask(client, session, "How hot is coffee?", scope="tea.md", model="other-model")
                assert turn["model"] == "other-model"
                assert turn["sources"] == []
                turn = ask(client, session, "How hot is coffee?")
                assert turn["model"] == "test-model"
                assert turn["sources"][0]["uri"] == "coffee.md"
                failed = last_event(client, session, "How hot is coffee?", model="no-model")
                assert "no-model" in failed["error"]["message"]


async def test_a_retry_replaces_the_last_answer_even_after_a_question_that_failed(program: Program) -> None:
    replies = [Reply("First."), Reply(status=400), Reply("Second.")]
    with OpenAIServer(replies) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                session = new_session(client)
                ask(client, session, "What is tea?")
                assert last_event(client, session, "What is coffee?")["type"] == "error"
                again = last_event(client, session, kind="retry")["turn"]
                assert (again["question"], again["answer"].split(".")[0]) == ("What is tea?", "Second")
                assert len(client.get(f"/api/sessions/{session}").json()["turns"]) == 1


async def test_research_is_a_report_that_can_be_stored(program: Program) -> None:
    async with serving(program) as web:
        with web.signed_in() as client:
            session = new_session(client)
            turn = last_event(client, session, "How hot is green tea?", "research")["turn"]
            assert turn["is_report"]
            stored = client.post(f"/api/sessions/{session}/turns/{turn['turn_id']}/store", json={}).json()
            assert stored == {"uri": f"ragchat:report/{turn['turn_id']}", "error": None}


def asked_until(kind: str, client: httpx2.Client, session: str) -> Generator[dict[str, Any], None, None]:
    """Ask "What is tea?". Returns the events after the first one of a kind."""
    stream = events(client, session, question="What is tea?", last="")
    while next(stream)["type"] != kind:
        pass
    return stream


def another(client: httpx2.Client) -> httpx2.Client:
    """Another connection of the same browser."""
    return httpx2.Client(
        base_url=client.base_url, headers=client.headers, cookies=client.cookies, timeout=client.timeout
    )
