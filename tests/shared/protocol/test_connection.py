"""Requests, answers, cancellations and batches of one connection, without any waiting."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from ragmcp.errors import InvalidRequest, MessageTooLarge, MethodNotFound, WireError
from ragmcp.protocol.connection import Answered, Cancelled, Connection, Event, Reply, Unusable
from ragmcp.protocol.jsonrpc import MAX_BATCH_MESSAGES, Notification, Request

LIMIT = 10_000


def server() -> Connection[str]:
    return Connection(LIMIT, refuses=True)


def client() -> Connection[str]:
    return Connection(LIMIT, refuses=False)


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def replies(events: list[Event[str]]) -> list[Any]:
    assert all(isinstance(event, Reply) for event in events), events
    return [json.loads(event.line) for event in events if isinstance(event, Reply)]


def test_a_request_is_handed_on_and_answered() -> None:
    connection = server()
    (request,) = connection.receive(line(id=1, method="m"))
    assert request == Request(1, "m")
    assert json.loads(connection.answer(1, {"a": 1})) == {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}


def test_a_request_can_be_refused() -> None:
    connection = server()
    connection.receive(line(id="x", method="m"))
    error = json.loads(connection.answer("x", MethodNotFound("m")))["error"]
    assert (error["code"], error["data"]["requestId"]) == (-32601, "x")


def test_a_result_without_json_form_is_refused_instead() -> None:
    connection = server()
    connection.receive(line(id=1, method="m"))
    assert json.loads(connection.answer(1, object()))["error"]["code"] == -32603


def test_an_id_still_in_progress_is_refused_and_the_first_request_goes_on() -> None:
    connection = server()
    first, second = connection.receive(line(id=1, method="a") + line(id=1, method="b"))
    assert first == Request(1, "a")
    assert isinstance(second, Reply)
    assert json.loads(second.line)["error"]["code"] == -32600
    assert connection.answer(1, {})
    assert connection.receive(line(id=1, method="c")) == [Request(1, "c")]


def test_the_ids_1_and_text_1_are_two() -> None:
    assert len(server().receive(line(id=1, method="a") + line(id="1", method="b"))) == 2


def test_a_cancellation_is_heard_for_requests_in_progress_only() -> None:
    connection = server()
    cancel = line(method="notifications/cancelled", params={"requestId": 1})
    assert connection.receive(cancel) == []
    connection.receive(line(id=1, method="m"))
    assert connection.receive(cancel) == [Cancelled(1)]
    assert connection.forget(1) == b""
    assert connection.receive(cancel) == []


def test_a_request_that_is_cancelled_twice_at_once_is_settled_once() -> None:
    connection = server()
    cancel = line(method="notifications/cancelled", params={"requestId": 1})
    events = connection.receive(line(id=1, method="m") + cancel + cancel)
    assert events == [Request(1, "m"), Cancelled(1), Cancelled(1)]
    assert [connection.forget(1), connection.forget(1)] == [b"", b""]


@pytest.mark.parametrize("params", [{}, {"requestId": None}, {"requestId": 1.5}, {"requestId": [1]}])
def test_a_malformed_cancellation_is_ignored(params: dict[str, Any]) -> None:
    connection = server()
    connection.receive(line(id=1, method="m"))
    assert connection.receive(line(method="notifications/cancelled", params=params)) == []


def test_a_notification_is_handed_on() -> None:
    (event,) = server().receive(line(method="notifications/initialized"))
    assert event == Notification("notifications/initialized")


def test_garbage_is_answered_by_a_server_and_the_next_line_is_read() -> None:
    connection = server()
    garbage, request = connection.receive(b"hello\n" + line(id=1, method="m"))
    assert isinstance(garbage, Reply)
    answer = json.loads(garbage.line)
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert request == Request(1, "m")


def test_garbage_is_never_answered_by_a_client() -> None:
    (event,) = client().receive(b"a stray print\n")
    assert isinstance(event, Unusable)


def test_a_line_over_the_limit_is_answered_with_its_id() -> None:
    (answer,) = replies(server().receive(line(id=9, method="m", params={"a": "x" * LIMIT})))
    assert answer["id"] == 9
    assert answer["error"]["data"]["errorCode"] == "MESSAGE_TOO_LARGE"
    assert answer["error"]["data"]["details"]["limit"] == LIMIT


def test_an_answer_over_the_limit_fails_the_request_it_answers() -> None:
    connection = client()
    id, _ = connection.ask("m", {}, "me")
    (event,) = connection.receive(line(id=id, result={"a": "x" * LIMIT}))
    assert isinstance(event, Answered)
    assert event.waiter == "me"
    assert isinstance(event.outcome, MessageTooLarge)


def test_a_request_of_ours_gets_its_answer_or_its_error() -> None:
    connection = client()
    first, asked = connection.ask("m", {"a": 1}, "one")
    second, _ = connection.ask("m", {}, "two")
    assert json.loads(asked) == {"jsonrpc": "2.0", "id": first, "method": "m", "params": {"a": 1}}
    events = connection.receive(
        line(id=second, error={"code": -1, "message": "no"}) + line(id=first, result={"b": 2})
    )
    two, one = events
    assert isinstance(one, Answered)
    assert isinstance(two, Answered)
    assert isinstance(one.outcome, Raw)
    assert json.loads(bytes(one.outcome)) == {"b": 2}
    assert isinstance(two.outcome, WireError)
    assert (two.waiter, two.outcome.code, two.outcome.data) == ("two", -1, None)


def test_a_malformed_answer_fails_the_request_it_names() -> None:
    connection = client()
    id, _ = connection.ask("m", {}, "me")
    (event,) = connection.receive(line(id=id, result={}, error={"code": 1, "message": "both"}))
    assert isinstance(event, Answered)
    assert isinstance(event.outcome, InvalidRequest)


MALFORMED = [
    {"error": {}},
    {"error": {"code": 1}},
    {"result": {}, "error": {"code": 1, "message": "both"}},
    {"result": {"a": "x" * LIMIT}},
]


@pytest.mark.parametrize("members", MALFORMED)
def test_a_server_answers_no_malformed_answer_under_an_id_that_may_be_its_peers_own(members: Any) -> None:
    connection = server()
    (stray,) = replies(connection.receive(line(id=77, **members)))
    assert (stray["id"], stray["error"]["code"], stray["error"]["data"]["requestId"]) == (None, -32600, None)


@pytest.mark.parametrize("members", MALFORMED)
def test_a_malformed_answer_fails_the_request_of_the_server_it_names(members: Any) -> None:
    connection = server()
    id, _ = connection.ask("sampling/createMessage", {}, "me")
    answered, refusal = connection.receive(line(id=id, **members))
    assert isinstance(answered, Answered)
    assert isinstance(answered.outcome, InvalidRequest | MessageTooLarge)
    assert isinstance(refusal, Reply)


def test_an_abandoned_request_is_cancelled_once_and_its_late_answer_ignored() -> None:
    connection = client()
    id, _ = connection.ask("m", {}, "me")
    assert json.loads(connection.abandon(id)) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": id},
    }
    assert connection.abandon(id) == b""
    assert connection.receive(line(id=id, result={})) == []


def test_closing_names_everybody_who_still_waits() -> None:
    connection = client()
    connection.ask("m", {}, "one")
    connection.ask("m", {}, "two")
    assert connection.close() == ["one", "two"]
    assert connection.close() == []


def batching() -> Connection[str]:
    connection = server()
    connection.batches = True
    return connection


def batch(*messages: dict[str, Any]) -> bytes:
    return json.dumps([{"jsonrpc": "2.0", **message} for message in messages]).encode() + b"\n"


def test_a_batch_is_refused_where_the_revision_has_none() -> None:
    (answer,) = replies(server().receive(batch({"id": 1, "method": "m"})))
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("line", [b'[{"jsonrpc":"2.0","method":"m"},{"jsonrpc"]', b"[1,", b"5 5"])
@pytest.mark.parametrize("batches", [False, True])
def test_a_line_that_is_not_json_is_a_parse_error_whatever_it_begins_with(line: bytes, batches: bool) -> None:
    connection = server()
    connection.batches = batches
    (answer,) = replies(connection.receive(line + b"\n"))
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)


def test_the_answers_of_a_batch_leave_together() -> None:
    connection = batching()
    events = connection.receive(batch({"id": 1, "method": "a"}, {"method": "n"}, {"id": 2, "method": "b"}))
    assert events == [Request(1, "a"), Notification("n"), Request(2, "b")]
    assert connection.answer(2, {}) == b""
    together = json.loads(connection.answer(1, MethodNotFound("a")))
    assert [(member["id"], "error" in member) for member in together] == [(2, False), (1, True)]


def test_what_is_wrong_in_a_batch_is_answered_within_it() -> None:
    connection = batching()
    assert connection.receive(b'[1,{"jsonrpc":"2.0","id":1,"method":"a"}]\n') == [Request(1, "a")]
    assert [member["id"] for member in json.loads(connection.answer(1, {}))] == [None, 1]
    ((first, second),) = replies(connection.receive(b"[1,2]\n"))
    assert first["error"]["code"] == second["error"]["code"] == -32600


def test_a_batch_of_too_many_messages_is_answered_by_one_object() -> None:
    line = batch(*[{"id": number, "method": "m"} for number in range(MAX_BATCH_MESSAGES + 1)])
    (answer,) = replies(batching().receive(line))
    assert (
        answer["error"]["message"] == f"Invalid request: a batch holds at most {MAX_BATCH_MESSAGES} messages."
    )
    assert len(batching().receive(batch(*json.loads(line)[1:]))) == MAX_BATCH_MESSAGES


def test_an_empty_batch_is_answered_by_one_object() -> None:
    (answer,) = replies(batching().receive(b"[]\n"))
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


def test_a_last_line_without_a_newline_is_heard() -> None:
    connection = server()
    assert connection.receive(b'{"jsonrpc":"2.0","id":1,"method":"m"}') == []
    assert connection.receive(b"\n") == [Request(1, "m")]
    assert connection.receive(b"\n") == []


def test_a_cancelled_member_does_not_hold_back_its_batch() -> None:
    connection = batching()
    connection.receive(batch({"id": 1, "method": "a"}, {"id": 2, "method": "b"}))
    assert connection.answer(1, {}) == b""
    assert [member["id"] for member in json.loads(connection.forget(2))] == [1]


def test_a_batch_of_notifications_alone_is_not_answered() -> None:
    assert batching().receive(batch({"method": "n"})) == [Notification("n")]


@given(st.binary(), st.booleans(), st.booleans())
def test_no_bytes_make_it_raise(data: bytes, refuses: bool, batches: bool) -> None:
    connection: Connection[str] = Connection(50, refuses=refuses)
    connection.batches = batches
    connection.receive(data + b"\n")


members = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.integers(0, 3) | st.text(max_size=2) | st.floats() | st.none(),
        "method": st.sampled_from(["a", "notifications/cancelled"]),
        "params": st.fixed_dictionaries({"requestId": st.integers(0, 3)}) | st.lists(st.none(), max_size=1),
        "result": st.just({}),
    },
)


# The first text in a fresh checkout takes seconds, in which hypothesis makes its table of all characters.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(members | st.lists(members) | st.binary(max_size=20), max_size=6),
    st.lists(st.integers(min_value=0), max_size=8),
)
def test_slicing_makes_no_difference(messages: list[Any], cuts: list[int]) -> None:
    data = b"".join(
        message + b"\n" if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        for message in messages
    )
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    whole, sliced = batching(), batching()
    events = [event for start, end in itertools.pairwise(places) for event in sliced.receive(data[start:end])]
    assert events == whole.receive(data)


def test_a_bounded_number_of_requests_is_in_progress() -> None:
    connection: Connection[str] = Connection(LIMIT, refuses=True, max_in_progress=2)
    lines = [b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % id for id in (1, 2, 3)]
    *taken, refused = connection.receive(b"".join(lines))
    assert [event.id for event in taken if isinstance(event, Request)] == [1, 2]
    assert isinstance(refused, Reply)
    assert b"2 requests are in progress already" in refused.line
    connection.answer(1, {})
    (event,) = connection.receive(lines[2])
    assert isinstance(event, Request)
