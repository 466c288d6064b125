"""What a server asks of its client, in both eras: requests of its own, or a result that wants answers."""

from __future__ import annotations

import base64
import json
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.errors import MissingCapability, ToolError
from ragmcp.protocol.schema.content import ResourceContents
from ragmcp.protocol.schema.input import Elicit, InputRequest, ListRoots, Sample
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.input_required import STATE_SECONDS, StateSigner
from ragmcp.server.tools import tool
from tests.shared.server.test_resources import Shelf
from tests.support.prompts import prompt
from tests.support.raw_mcp import RawClient, raw_client
from tests.support.schemas import MODERN

EVERYTHING: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTION = {"role": "user", "content": {"type": "text", "text": "Who?"}}

ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}
SAID = {"role": "assistant", "content": {"type": "text", "text": "Grace"}, "model": "m"}
ROOTS = {"roots": [{"uri": "file:///work", "name": "work"}]}

runs: list[str] = []


@tool()
async def greet(call: Call, greeting: str = "Hello", loud: bool = False) -> str:
    """Asks the user's name."""
    runs.append("greet")
    answer = (await call.ask(name=Elicit(message="Your name?", requested_schema=NAME)))["name"]
    text = f"{greeting} {answer.content['name']}" if answer.action == "accept" else answer.action
    return text.upper() if loud else text


@tool()
async def everything(call: Call) -> str:
    """Asks the user, the model and the host at once."""
    answers = await call.ask(
        user=Elicit(message="Your name?", requested_schema=NAME),
        model=Sample(messages=[QUESTION], max_tokens=5),
        host=ListRoots(),
    )
    texts = (answers["user"].content["name"], answers["model"].content["text"], answers["host"].roots[0].uri)
    return " ".join(texts)


@tool()
async def three_rounds(call: Call) -> str:
    """Asks three times, and remembers."""
    names = []
    for key in ("one", "two", "three"):
        answer = (await call.ask(**{key: Elicit(message=f"Name {key}?", requested_schema=NAME)}))[key]
        names.append(answer.content["name"])
    return " ".join(names)


@tool()
async def busy(call: Call) -> str:
    """Asks while it does something else."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep_forever)
        answer = (await call.ask(name=Elicit(message="Your name?", requested_schema=NAME)))["name"]
        raise ToolError("NOBODY", f"There is no {answer.content['name']}.")
    return ""


@tool()
async def visit(call: Call) -> str:
    """Sends the user somewhere."""
    asked = Elicit(message="Pay", mode="url", url="https://example.org/pay", elicitation_id="1")
    return str((await call.ask(paid=asked))["paid"].action)


@tool()
async def with_tools(call: Call) -> str:
    """Asks the model, which may use tools."""
    schema = {"type": "object"}
    asked = Sample(messages=[QUESTION], max_tokens=5, tools=[{"name": "look", "inputSchema": schema}])
    return str((await call.ask(said=asked))["said"].model)


@prompt()
async def about(call: Call) -> str:
    """Asks what it is about."""
    answer = (await call.ask(name=Elicit(message="About whom?", requested_schema=NAME)))["name"]
    return f"Tell me about {answer.content['name']}."


class Guarded(Shelf):
    """Asks before it shows."""

    async def read(self, call: Call, uri: str) -> list[ResourceContents]:
        await call.ask(name=Elicit(message="Who reads?", requested_schema=NAME))
        return await super().read(call, uri)


def server() -> Server:
    tools = [greet, everything, three_rounds, busy, visit, with_tools]
    return Server("curious", "1", tools, prompts=[about], resources=Guarded())


async def call(client: RawClient, name: str, arguments: Any = None, **params: Any) -> Any:
    return await client.request("tools/call", {"name": name, "arguments": arguments or {}} | params)


async def answered(client: RawClient, name: str, *answers: dict[str, Any]) -> Any:
    """The end of a call whose rounds get these answers."""
    result = (await call(client, name))["result"]
    for answer in answers:
        assert result["resultType"] == "input_required"
        again = {"inputResponses": answer, "requestState": result["requestState"]}
        result = (await call(client, name, **again))["result"]
    return result


# Modern


async def test_a_call_pauses_for_an_answer_and_goes_on_with_it() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        paused = (await call(client, "greet"))["result"]
        assert paused["resultType"] == "input_required"
        assert paused["inputRequests"] == {
            "name": {
                "method": "elicitation/create",
                "params": {"message": "Your name?", "requestedSchema": NAME},
            }
        }
        assert "content" not in paused
        done = await answered(client, "greet", {"name": ACCEPTED})
        assert (done["resultType"], done["content"][0]["text"]) == ("complete", "Hello Ada")


async def test_a_tool_may_ask_and_fail_within_a_task_group() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        done = await answered(client, "busy", {"name": ACCEPTED})
        assert (done["isError"], done["content"][0]["text"]) == (True, "There is no Ada.")
    async with raw_client(server(), MODERN) as client:
        assert (await call(client, "busy"))["error"]["code"] == MissingCapability.rpc_code


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_may_say_no(action: str) -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        done = await answered(client, "greet", {"name": {"action": action}})
        assert done["content"][0]["text"] == action


async def test_several_things_are_asked_at_once() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        done = await answered(client, "everything", {"user": ACCEPTED, "model": SAID, "host": ROOTS})
        assert done["content"][0]["text"] == "Ada Grace file:///work"


async def test_what_is_still_missing_is_asked_again_and_what_was_answered_is_kept() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        first = (await call(client, "everything"))["result"]
        again = {"inputResponses": {"model": SAID, "stranger": 5}, "requestState": first["requestState"]}
        second = (await call(client, "everything", **again))["result"]
        assert set(second["inputRequests"]) == {"user", "host"}
        assert second["requestState"] != first["requestState"]
        again = {"inputResponses": {"user": ACCEPTED, "host": ROOTS}, "requestState": second["requestState"]}
        third = (await call(client, "everything", **again))["result"]
        assert third["content"][0]["text"] == "Ada Grace file:///work"


async def test_each_round_remembers_the_ones_before() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        rounds = [{key: {"action": "accept", "content": {"name": key}}} for key in ("one", "two", "three")]
        assert (await answered(client, "three_rounds", *rounds))["content"][0]["text"] == "one two three"


async def test_the_server_keeps_nothing_between_rounds() -> None:
    state = None
    shared = server()
    async with raw_client(shared, MODERN, **EVERYTHING) as client:
        state = (await call(client, "greet"))["result"]["requestState"]
    async with raw_client(shared, MODERN, **EVERYTHING) as client:
        done = await call(client, "greet", inputResponses={"name": ACCEPTED}, requestState=state)
        assert done["result"]["content"][0]["text"] == "Hello Ada"


async def test_answers_may_come_unasked() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        done = await call(client, "greet", inputResponses={"name": ACCEPTED, "other": ACCEPTED})
        assert done["result"]["content"][0]["text"] == "Hello Ada"


async def test_prompts_and_resources_may_ask_too() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        cases: list[tuple[str, dict[str, Any]]] = [
            ("prompts/get", {"name": "about"}),
            ("resources/read", {"uri": "test://book/1"}),
        ]
        for method, params in cases:
            paused = (await client.request(method, params))["result"]
            assert paused["resultType"] == "input_required"
            assert "ttlMs" not in paused
            params |= {"inputResponses": {"name": ACCEPTED}, "requestState": paused["requestState"]}
            assert (await client.request(method, params))["result"]["resultType"] == "complete"


async def test_a_state_is_good_for_its_own_request_only() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        state = (await call(client, "greet"))["result"]["requestState"]
        for name, arguments in (("three_rounds", {}), ("greet", {"greeting": "Bye"})):
            error = (await call(client, name, arguments, requestState=state))["error"]
            assert (error["code"], error["data"]["details"]["path"]) == (-32602, "$.requestState")
        prompt = {"name": "about", "requestState": state, "inputResponses": {"name": ACCEPTED}}
        assert (await client.request("prompts/get", prompt))["error"]["code"] == -32602


async def test_the_same_arguments_may_be_written_otherwise() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        first = {"greeting": "Héllo", "loud": False}
        state = (await call(client, "greet", first))["result"]["requestState"]
        again = client.message(
            "tools/call",
            {"name": "greet", "requestState": state, "inputResponses": {"name": ACCEPTED}},
        )
        arguments = b'{ "loud":false,  "greeting": "H\\u00e9llo"}'
        body = json.dumps(again).encode()
        done = await client.ask(
            body.replace(b'"name": "greet"', b'"name": "greet", "arguments": ' + arguments)
        )
        assert done["result"]["content"][0]["text"] == "Héllo Ada"


@pytest.mark.parametrize(
    "arguments", [b'{"greeting": "\xff"}', b'{"greeting": ' + b"[" * 5000 + b"]" * 5000 + b"}"]
)
async def test_unreadable_arguments_are_refused_with_a_state_too(arguments: bytes) -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        state = (await call(client, "greet"))["result"]["requestState"]
        again = client.message("tools/call", {"name": "greet", "requestState": state})
        body = json.dumps(again).encode()
        refused = await client.ask(
            body.replace(b'"name": "greet"', b'"name": "greet", "arguments": ' + arguments)
        )
        assert refused["error"]["code"] in (-32602, -32700)


async def test_a_state_of_others_is_refused_before_anything_runs() -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        state = (await call(client, "greet"))["result"]["requestState"]
        runs.clear()
        for other in (state + "-TAMPERED", state[:-5], "x", "", "é"):
            error = (await call(client, "greet", requestState=other))["error"]
            assert (error["code"], error["data"]["details"]["path"]) == (-32602, "$.requestState")
        assert runs == []


async def test_a_state_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        state = (await call(client, "greet"))["result"]["requestState"]
        with monkeypatch.context() as later:
            later.setattr("ragmcp.server.input_required.time.time", lambda: 2**33 + STATE_SECONDS)
            error = (await call(client, "greet", requestState=state))["error"]
        assert (error["code"], error["message"]) == (-32602, error["message"])
        assert "expired" in error["message"]


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        (5, "$.inputResponses.name"),
        (None, "$.inputResponses.name"),
        ({}, "$.inputResponses.name.action"),
        ({"action": "maybe"}, "$.inputResponses.name.action"),
        ({"action": "accept", "content": [1]}, "$.inputResponses.name.content"),
    ],
)
async def test_an_unusable_answer_is_named_by_its_path(answer: Any, path: str) -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        error = (await call(client, "greet", inputResponses={"name": answer}))["error"]
        assert (error["code"], error["data"]["details"]["path"]) == (-32602, path)


@pytest.mark.parametrize("answers", [None, 5, []])
async def test_answers_are_an_object(answers: Any) -> None:
    async with raw_client(server(), MODERN, **EVERYTHING) as client:
        error = (await call(client, "greet", inputResponses=answers))["error"]
        assert (error["code"], error["data"]["details"]["path"]) == (-32602, "$.inputResponses")


# Capabilities

CASES = [
    ("greet", {}, {"elicitation": {"form": {}}}),
    ("greet", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ("visit", {"elicitation": {}}, {"elicitation": {"url": {}}}),
    ("everything", {"elicitation": {}, "roots": {}}, {"sampling": {}}),
    ("everything", {"elicitation": {}, "sampling": {}}, {"roots": {}}),
    ("with_tools", {"sampling": {}}, {"sampling": {"tools": {}}}),
]


@pytest.mark.parametrize(("name", "declared", "missing"), CASES)
async def test_only_what_the_client_can_give_is_asked(name: str, declared: Any, missing: Any) -> None:
    async with raw_client(server(), MODERN, **declared) as client:
        error = (await call(client, name))["error"]
        assert (error["code"], error["data"]["requiredCapabilities"]) == (-32021, missing)


@pytest.mark.parametrize("declared", [{"elicitation": {}}, {"elicitation": {"form": {}}}])
async def test_a_client_that_says_no_more_has_forms(declared: Any) -> None:
    async with raw_client(server(), MODERN, **declared) as client:
        assert (await call(client, "greet"))["result"]["resultType"] == "input_required"


async def test_a_user_can_be_sent_to_a_url() -> None:
    async with raw_client(server(), MODERN, elicitation={"url": {}}) as client:
        done = await answered(client, "visit", {"paid": {"action": "accept"}})
        assert done["content"][0]["text"] == "accept"


# Legacy

WITH_ELICITATION = ["2025-11-25", "2025-06-18"]
LEGACY = [*WITH_ELICITATION, "2025-03-26", "2024-11-05"]


async def reply(client: RawClient, request: Any, result: Any) -> Any:
    """Answer the server's request; the next message."""
    return await client.ask({"jsonrpc": "2.0", "id": request["id"], "result": result})


@pytest.mark.parametrize("revision", WITH_ELICITATION)
async def test_a_legacy_client_is_sent_requests_one_after_the_other(revision: str) -> None:
    async with raw_client(server(), revision, **EVERYTHING) as client:
        request = await call(client, "everything")
        assert (request["method"], request["params"]["requestedSchema"]) == ("elicitation/create", NAME)
        request = await reply(client, request, ACCEPTED)
        assert (request["method"], request["params"]["maxTokens"]) == ("sampling/createMessage", 5)
        request = await reply(client, request, SAID)
        assert request["method"] == "roots/list"
        done = await reply(client, request, ROOTS)
        assert done["result"]["content"][0]["text"] == "Ada Grace file:///work"


@pytest.mark.parametrize("revision", LEGACY)
async def test_other_calls_go_on_while_the_user_thinks(revision: str) -> None:
    async with raw_client(server(), revision, **EVERYTHING) as client:
        request = await client.request("tools/call", {"name": "greet"}, id="slow")
        assert request["method"] == "elicitation/create"
        assert (await client.request("ping", id="ping"))["result"] == {}
        assert (await reply(client, request, ACCEPTED))["id"] == "slow"


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_handler_runs_once_in_the_legacy_era(revision: str) -> None:
    async with raw_client(server(), revision, **EVERYTHING) as client:
        runs.clear()
        await reply(client, await call(client, "greet"), ACCEPTED)
        assert runs == ["greet"]


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_legacy_client_that_cannot_is_not_asked(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        error = (await call(client, "greet"))["error"]
        assert error["data"]["errorCode"] == "INVALID_REQUEST"
        assert "elicitation.form" in error["message"]


@pytest.mark.parametrize("revision", LEGACY)
async def test_an_error_of_the_client_fails_the_tool(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async with raw_client(server(), revision, **EVERYTHING) as client:
        request = await call(client, "greet")
        failed = await client.ask(
            {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -1, "message": "The user has left."}}
        )
        assert failed["result"]["isError"]
    assert "The user has left." in caplog.text


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_legacy_answer_that_is_none_is_refused(revision: str) -> None:
    async with raw_client(server(), revision, **EVERYTHING) as client:
        error = (await reply(client, await call(client, "greet"), {"action": "maybe"}))["error"]
        assert "elicitation/create" in error["message"]
        assert "$.action" in error["message"]


async def test_a_cancelled_call_takes_its_question_back() -> None:
    async with raw_client(server(), "2025-11-25", **EVERYTHING) as client:
        request = await client.request("tools/call", {"name": "greet"}, id="slow")
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}
        taken_back = await client.ask(cancelled)
        assert (taken_back["method"], taken_back["params"]["requestId"]) == (
            "notifications/cancelled",
            request["id"],
        )


def test_requests_are_written_as_the_schema_names_them() -> None:
    asked: InputRequest = Elicit(message="m", requested_schema=NAME)
    assert json.loads(msgspec.json.encode(asked)) == {"message": "m", "requestedSchema": NAME}
    assert json.loads(msgspec.json.encode(ListRoots())) == {}


# Signed state


@given(st.binary(max_size=200))
def test_a_signed_payload_comes_back(payload: bytes) -> None:
    signer = StateSigner()
    assert signer.verify(signer.sign(payload)) == payload


@given(st.data())
def test_not_one_character_may_differ(data: st.DataObject) -> None:
    signer = StateSigner()
    token = signer.sign(data.draw(st.binary(max_size=50)))
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda character: character != token[place]))
    with pytest.raises(ValueError, match=r".+"):
        signer.verify(token[:place] + other + token[place + 1 :])


@given(st.text(max_size=100))
def test_a_text_that_was_never_signed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        StateSigner().verify(text)


def test_another_spelling_of_the_same_bytes_is_refused() -> None:
    signer = StateSigner()
    token = signer.sign(b"")  # 32 bytes: the last character before the padding has two bits to spare.
    other = token[:-2] + chr(ord(token[-2]) + 1) + "="
    assert base64.urlsafe_b64decode(other) == base64.urlsafe_b64decode(token)
    for spelling in (other, token + "\n", token + "=", " " + token, token + "-TAMPERED"):
        with pytest.raises(ValueError, match=r".+"):
            signer.verify(spelling)


def test_every_process_has_a_key_of_its_own() -> None:
    with pytest.raises(ValueError, match="signature is wrong"):
        StateSigner().verify(StateSigner().sign(b"payload"))


def test_nothing_can_be_cut_off_or_put_on() -> None:
    signer = StateSigner()
    raw = base64.urlsafe_b64decode(signer.sign(b"payload"))
    for other in (raw[:-1], raw + b"x", raw[:31], b""):
        with pytest.raises(ValueError, match="signature is wrong"):
            signer.verify(base64.urlsafe_b64encode(other).decode())
