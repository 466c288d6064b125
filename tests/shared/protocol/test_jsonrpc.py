"""JSON-RPC: strict about what is a message, calm about what is none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.errors import InvalidParams, InvalidRequest, NotEncodable, NotJson
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.jsonrpc import (
    BOM,
    Failure,
    Notification,
    Request,
    Success,
    Unreadable,
    parse,
)
from ragmcp.protocol.schema.base import ErrorObject

# From Python 3.12 on, only the stack limits how deep is decoded.
DEPTH = 1_000_000


def reason(line: bytes) -> tuple[object, type[Exception]]:
    message = parse(line)
    assert isinstance(message, Unreadable), message
    return message.id, type(message.error)


def test_the_four_kinds_of_message_are_told_apart() -> None:
    request = parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}')
    assert isinstance(request, Request)
    assert (request.id, request.method, bytes(request.params)) == (1, "m", b'{"a":1}')
    notification = parse(b'{"jsonrpc":"2.0","method":"m"}')
    assert isinstance(notification, Notification)
    assert bytes(notification.params) == b"{}"
    success = parse(b'{"jsonrpc":"2.0","id":"x","result":{}}')
    assert isinstance(success, Success)
    assert success.id == "x"
    failure = parse(b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}')
    assert failure == Failure(1, ErrorObject(-1, "no", [1]))


def test_an_error_about_an_unreadable_message_may_have_the_id_null() -> None:
    line = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}'
    assert parse(line) == Failure(None, ErrorObject(-32700, "no"))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"m"',
        b'{"jsonrpc":"2.0","id":1,"method":"m"}}',
        b"{'jsonrpc':'2.0'}",
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":"\xff","method":"m"}',
        b'\xff\xfe{\x00"\x00',
    ],
)
def test_what_is_not_json_is_a_parse_error_without_an_id(line: bytes) -> None:
    assert reason(line) == (None, NotJson)


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b"1", None),
        (b'"text"', None),
        (b"null", None),
        (b"{}", None),
        (b'{"jsonrpc":"2.0"}', None),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', 1),
        (b'{"id":1,"method":"m"}', 1),
        (b'{"jsonrpc":2.0,"id":1,"method":"m"}', 1),
        (b'{"jsonrpc":"2.0","id":1}', 1),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', 1),
        (b'{"jsonrpc":"2.0","method":"m","params":[1]}', None),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"error":"no"}', 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":1e2,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":9223372036854775808,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"m"}', None),
    ],
)
def test_json_of_the_wrong_shape_is_an_invalid_request_with_the_id_if_it_is_one(
    line: bytes, id: object
) -> None:
    assert reason(line) == (id, InvalidRequest)


@pytest.mark.parametrize("params", [b"[1]", b'"p"', b"1"])
def test_params_that_are_no_object_are_invalid_params(params: bytes) -> None:
    assert reason(b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + params + b"}") == (1, InvalidParams)


def test_null_stands_for_no_params() -> None:
    assert parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":null}') == Request(1, "m")


@pytest.mark.parametrize("id", [0, -1, 2**63 - 1, -(2**63), "", "ü", "a" * 1000])
def test_any_string_and_any_64_bit_integer_is_an_id(id: int | str) -> None:
    line = msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": "m"})
    assert parse(line) == Request(id, "m")


@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_is_answered_with_the_id(closed: bool) -> None:
    deep = b"[" * DEPTH + b"]" * DEPTH * closed
    assert reason(b'{"jsonrpc":"2.0","id":5,"method":"m","params":{"a":' + deep + b"}}") == (5, NotJson)
    assert reason(b"{}" + deep) == (None, NotJson)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"m","params":{"a":"\\ud800"},"id":"q"}',
        b'{"jsonrpc":"2.0","method":"m","id":"q","params":{"a":"\\ud800","b":"\\\\ud800"}}',
        b'{"params":{"b":"\\\\\\ud800 \\n\\ud800\\ud800"},"id":"q","method":"m\\\\","jsonrpc":"2.0"}',
        b'{"params":{"b":"\\udfff\xed\xa0\x80"},"id":"q","jsonrpc":"2.0","method":"m"}',
    ],
)
def test_a_lone_surrogate_is_answered_with_the_id(line: bytes) -> None:
    message = parse(line)
    assert isinstance(message, Unreadable)
    assert message.id == "q"
    assert str(message.error) == "The message is not valid JSON: a string holds a lone surrogate."


def test_what_is_not_utf_8_is_answered_with_the_id() -> None:
    assert reason(b'{"jsonrpc":"2.0","method":"\xff","id":"q","params":{}}') == ("q", NotJson)
    message = parse(b'{"jsonrpc":"2.0","method":"\xff","id":"q"}')
    assert isinstance(message, Unreadable)
    assert str(message.error) == "The message is not valid JSON: it is not UTF-8."
    assert reason(b'{"jsonrpc":"2.0","method":"m","id":"\xff","params":{}}') == (None, NotJson)


def test_an_id_with_a_lone_surrogate_is_no_id() -> None:
    message = parse(b'{"jsonrpc":"2.0","params":{"a":"?"},"id":"\\ud800","method":"m"}')
    assert isinstance(message, Unreadable)
    assert message.id is None


@pytest.mark.parametrize(
    ("head", "tail", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","par', b'xxx"}}', 7),
        (b'{"id": "a-b" , "jsonrpc"', b'xxx"}}', "a-b"),
        (b'{"method":"tools/call","params":{"id":1', b'"}},"jsonrpc":"2.0","id":3}', 3),
        (b'{"method":"tools/call","params":{"id":1', b'"}},"id":3,"jsonrpc":"2.0"}\r', 3),
        (b'{"method":"tools/call","id":12,"params":{', b'"}}', 12),
        (b'{"method":"tools/call","params":{"id":1', b'"id":3}}}', None),
        (b'{"params":"', b'x\\"id":3}', None),
        (b"xxx", b"xxx", None),
        (b'{"id":1.5,', b"}", None),
    ],
)
def test_the_id_of_a_line_known_by_its_ends_is_found_only_where_it_must_be_the_id(
    head: bytes, tail: bytes, id: object
) -> None:
    assert jsonrpc.salvaged(head, tail, NotJson("it is too deep")).id == id


@pytest.mark.parametrize(
    ("line", "response"),
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{}}', True),
        (b'{"jsonrpc":"2.0","id":1,"error":"no"}', True),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}', True),
        (b'{"jsonrpc":"2.0","id":1.5,"result":{}}', True),
        (b'{"id":1,"result":{}}', True),
        (b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * DEPTH, True),
        (b'{ "error" : {"message":"\\ud800"}, "id": 1}', True),
        (b'{"jsonrpc":"2.0","id":1}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":7,"result":{}}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"result":' + b"[" * DEPTH, False),
        (b'{"id":1,"method":"m","params":{"error":0}}', False),
    ],
)
def test_what_was_to_be_a_response_is_told_from_what_was_to_be_a_request(line: bytes, response: bool) -> None:
    message = parse(line)
    assert isinstance(message, Unreadable)
    assert message.response is response


def test_the_members_of_a_batch_are_judged_one_by_one() -> None:
    messages = jsonrpc.parse_batch(b'[{"jsonrpc":"2.0","id":1,"method":"m"}, 1]')
    assert isinstance(messages, list)
    good, bad = messages
    assert good == Request(1, "m")
    assert isinstance(bad, Unreadable)


@pytest.mark.parametrize("line", [b"[]", b"[1", b"[" * DEPTH])
def test_a_batch_that_is_none_is_one_error(line: bytes) -> None:
    assert jsonrpc.is_batch(line)
    assert isinstance(jsonrpc.parse_batch(line), Unreadable)


@given(st.binary())
def test_no_bytes_make_it_raise(line: bytes) -> None:
    parse(line)
    jsonrpc.parse_batch(line)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | json_values,
            "id": json_values,
            "method": st.text() | json_values,
            "params": json_values,
            "result": json_values,
            "error": st.fixed_dictionaries({"code": st.integers(), "message": st.text()}) | json_values,
        },
    )
)
def test_no_json_makes_it_raise(message: dict[str, Any]) -> None:
    import json

    parse(json.dumps(message).encode())


@given(st.integers(-(2**63), 2**63 - 1) | st.text(), st.text(), st.dictionaries(st.text(), st.integers(0, 9)))
def test_what_is_encoded_is_parsed_back(id: int | str, method: str, params: dict[str, int]) -> None:
    try:
        line = jsonrpc.encode_request(id, method, params)
    except NotEncodable:  # A lone surrogate.
        return
    assert b"\n" not in line
    request = parse(line)
    assert isinstance(request, Request)
    assert (request.id, request.method, msgspec.json.decode(request.params)) == (id, method, params)


def test_what_json_cannot_hold_is_refused_with_its_reason() -> None:
    with pytest.raises(NotEncodable, match="surrogates not allowed"):
        jsonrpc.encode_request(1, "m", {"a": "\ud800"})
    assert b"The result cannot be written as JSON" in jsonrpc.encode_answer(1, object())
    assert b"cannot be written" in jsonrpc.encode_failure(1, ErrorObject(1, "no", object()))


def test_a_member_that_is_no_unicode_is_wrong_alone() -> None:
    messages = jsonrpc.parse_batch(b'[{"jsonrpc":"2.0","id":1,"method":"m"}, "\xff"]')
    assert isinstance(messages, list)
    assert [type(message) for message in messages] == [Request, Unreadable]


def test_a_byte_order_mark_before_a_message_is_overlooked() -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert parse(BOM + ping) == parse(ping)
    assert isinstance(parse(BOM * 100_000), Unreadable)
