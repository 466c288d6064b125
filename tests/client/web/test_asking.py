"""Tools and servers that ask the user of the page, by real servers and a scripted model."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import pytest
from msgspec import UNSET

from ragchat.servers.permissions import Permissions
from ragchat.web.asking import PageUser
from ragchat.web.dialogs import Dialogs
from ragmcp.errors import InputDeclined
from ragmcp.protocol.schema.input import Elicit, Sample
from tests.support.browser import serving
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import Program
from tests.support.servers import GOOD, write
from tests.support.webchat import events, new_session, with_model


def answers(
    client: httpx2.Client, question: str, reply: dict[str, dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The questions of a turn, each answered by its kind, and the last event."""
    asked, event = [], {}
    for event in events(client, new_session(client), question=question, last=""):
        if event["type"] == "dialog":
            asked.append(event)
            client.post(f"/api/dialogs/{event['id']}", json=reply[event["kind"]]).raise_for_status()
    return asked, event


@pytest.mark.full
async def test_a_tool_is_approved_with_other_arguments(program: Program) -> None:
    write(program.home, mine=GOOD)
    calls = [Reply(tool_calls=[("mine__Echo", {"text": "hidden\u200b"})]), Reply("Done.")]
    with OpenAIServer(calls) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                reply = {"decision": "once", "arguments": '{"text": "mine"}'}
                asked, last = answers(client, "Echo it.", {"approval": reply})
                assert last["type"] == "turn", last
                [question] = asked
                assert (question["tool"], question["server"]) == ("mine__Echo", "mine")
                assert "hidden\\u200b" in question["arguments"]
                assert model.requests[-1]["messages"][-1]["content"].startswith("mine")


@pytest.mark.full
async def test_a_form_is_checked_before_it_is_sent(program: Program) -> None:
    write(program.home, mine=GOOD)
    calls = [Reply(tool_calls=[("mine__Ask", {})]), Reply("Done.")]
    with OpenAIServer(calls) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                session = new_session(client)
                for event in events(client, session, question="Ask me.", last=""):
                    if event["type"] != "dialog":
                        continue
                    path = f"/api/dialogs/{event['id']}"
                    if event["kind"] == "approval":
                        client.post(path, json={"decision": "once"}).raise_for_status()
                        continue
                    assert event["message"] == "What is your name?"
                    assert [(one["name"], one["required"]) for one in event["fields"]] == [("name", True)]
                    refused = client.post(path, json={"action": "accept", "values": {"name": " "}})
                    assert refused.json()["error"]["message"] == "name: It must be filled in."
                    sent = client.post(path, json={"action": "accept", "values": {"name": "Ada"}})
                    sent.raise_for_status()
                result = model.requests[-1]["messages"][-1]["content"]
                assert result.startswith("accept: Ada")


@pytest.mark.full
async def test_a_server_uses_the_model_only_with_consent_and_its_reply_is_shown(program: Program) -> None:
    write(program.home, mine=GOOD)
    calls = [Reply(tool_calls=[("mine__Think", {})]), Reply("It is four."), Reply("Done.")]
    with OpenAIServer(calls) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                once = {"decision": "once"}
                replies = {"approval": once, "sampling": once, "reply": once}
                asked, _ = answers(client, "Think.", replies)
                assert [one["kind"] for one in asked] == ["approval", "sampling", "reply"]
                assert asked[1]["messages"] == [["user", "What is two and two?"]]
                assert asked[2]["text"] == "It is four."
                assert "It is four." in model.requests[-1]["messages"][-1]["content"]


@pytest.mark.full
async def test_a_tool_that_is_not_allowed_is_not_called(program: Program) -> None:
    write(program.home, mine=GOOD)
    calls = [Reply(tool_calls=[("mine__Echo", {"text": "x"})]), Reply("Done.")]
    with OpenAIServer(calls) as model:
        async with serving(with_model(program, model)) as web:
            with web.signed_in() as client:
                answers(client, "Echo it.", {"approval": {"decision": "no"}})
                assert not model.requests[-1]["messages"][-1]["content"].startswith("x")


async def test_without_a_running_turn_every_request_is_declined(tmp_path: Any) -> None:
    user = PageUser(Dialogs(), Permissions(tmp_path))
    form = Elicit(message="Who?", requested_schema={"properties": {}})
    page = Elicit(message="Log in.", mode="url", url="https://example.org/", elicitation_id=UNSET)
    assert (await user.elicit("mine", form)).action == "decline"
    assert (await user.elicit("mine", page)).action == "decline"
    assert not await user.visit("mine", page, anyio.Event())
    with pytest.raises(InputDeclined):
        await user.sample("mine", Sample(messages=[], max_tokens=1))
