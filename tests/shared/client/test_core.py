"""What a modern server asks for in its results, and how the client asks again. Covers `core`."""

from __future__ import annotations

from typing import Any

import pytest

from ragmcp.client.core import MAX_ROUNDS
from ragmcp.client.handlers import Handlers
from ragmcp.errors import UnreadableAnswer
from ragmcp.protocol.schema.input import Elicit, ElicitResult
from tests.support.scripted import connected, success

NAME = {"method": "elicitation/create", "params": {"message": "Your name?", "requestedSchema": {}}}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John"},
        "age": {"type": "integer", "default": 30},
        "nick": {"type": "string"},
        "odd": 5,
    },
}


async def accept(_: Elicit) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


def required(message: dict[str, Any], **fields: Any) -> Any:
    return success(message, resultType="input_required", **fields)


def once(**fields: Any) -> Any:
    """Asks the first time, and is content the second."""

    def script(message: dict[str, Any]) -> list[Any]:
        rounds.append(message)
        return [required(message, **fields) if len(rounds) == 1 else success(message, content=[])]

    rounds: list[Any] = []
    return script


async def test_the_state_comes_back_as_it_was_with_the_answers_and_a_new_id() -> None:
    state = '{"nonce": "\\u00fc",  "x":1}'
    script = once(inputRequests={"name": NAME}, requestState=state)
    async with connected(script, handlers=Handlers(elicit=accept)) as (client, server):
        await client.call_tool("t", {"a": 1}, timeout=5)
    first, second = server.heard
    assert first["id"] != second["id"]
    assert second["params"]["requestState"] == state
    assert second["params"]["inputResponses"] == {"name": {"action": "accept", "content": {"name": "Ada"}}}
    for message in (first, second):
        assert (message["params"]["name"], message["params"]["arguments"]) == ("t", {"a": 1})
    assert first["params"]["_meta"] == second["params"]["_meta"]


async def test_no_state_comes_back_where_none_was_given() -> None:
    script = once(inputRequests={"name": NAME})
    async with connected(script, handlers=Handlers(elicit=accept)) as (client, server):
        await client.call_tool("t", timeout=5)
    assert "requestState" not in server.heard[1]["params"]


async def test_a_state_alone_only_asks_to_come_again() -> None:
    async with connected(once(requestState="later")) as (client, server):
        await client.call_tool("t", timeout=5)
    params = server.heard[1]["params"]
    assert (params["requestState"], "inputResponses" in params) == ("later", False)


async def test_a_field_that_the_user_left_out_is_left_out_whatever_its_default() -> None:
    form = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": FORM}}
    script = once(inputRequests={"form": form})
    async with connected(script, handlers=Handlers(elicit=accept)) as (client, server):
        await client.call_tool("t", timeout=5)
    answer = server.heard[1]["params"]["inputResponses"]["form"]
    assert answer == {"action": "accept", "content": {"name": "Ada"}}


async def test_a_form_that_was_not_accepted_has_no_content() -> None:
    async def decline(_: Elicit) -> ElicitResult:
        return ElicitResult(action="decline")

    form = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": FORM}}
    script = once(inputRequests={"form": form})
    async with connected(script, handlers=Handlers(elicit=decline)) as (client, server):
        await client.call_tool("t", timeout=5)
    assert server.heard[1]["params"]["inputResponses"]["form"] == {"action": "decline"}


async def test_a_server_that_never_has_enough_is_left() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        return [required(message, requestState="more")]

    async with connected(script) as (client, server):
        with pytest.raises(UnreadableAnswer, match=f"after {MAX_ROUNDS} rounds"):
            await client.call_tool("t", timeout=5)
    assert len(server.heard) == MAX_ROUNDS + 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"resultType": "task", "content": []}, "its resultType is 'task'"),
        ({"resultType": "hologram"}, "its resultType is 'hologram'"),
        ({"resultType": "input_required", "inputRequests": 5}, "object"),
        ({"resultType": "input_required", "inputRequests": {"a": NAME}}, "its input request is not allowed"),
        (
            {"resultType": "input_required", "inputRequests": {"a": {"method": "x"}}},
            "its input request is not allowed",
        ),
    ],
)
async def test_what_we_do_not_know_or_declare_is_an_error(fields: dict[str, Any], reason: str) -> None:
    async with connected(lambda message: [success(message, **fields)]) as (client, server):
        with pytest.raises(UnreadableAnswer, match=reason):
            await client.call_tool("t", timeout=5)
    assert len(server.heard) == 1


async def test_a_list_may_not_ask() -> None:
    async with connected(lambda message: [required(message, requestState="x")]) as (client, _):
        with pytest.raises(UnreadableAnswer, match="this method does not allow"):
            await client.list_tools()


async def test_a_result_without_a_type_is_complete() -> None:
    async with connected(lambda message: [success(message, content=[])]) as (client, server):
        await client.call_tool("t", timeout=5)
    assert len(server.heard) == 1


async def test_what_is_declared_stands_in_every_request() -> None:
    async with connected(
        lambda message: [success(message, content=[])], handlers=Handlers(elicit=accept)
    ) as (client, server):
        await client.call_tool("t", timeout=5)
    declared = server.heard[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert declared == {"elicitation": {"form": {}, "url": {}}}
