"""Correct and faulty MCP messages, as strategies for hypothesis."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st

T = TypeVar("T")

IS_SHORT = settings.get_current_profile_name() != "long"
# For tests that speak to a program: an example takes some 40 ms.
FEW = settings(max_examples=40 if IS_SHORT else settings().max_examples)

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
CALLS: dict[str, dict[str, Any]] = {
    "Inject": {
        "text": "# Foxes\n\nFoxes jump over dogs.",
        "metadata": {
            "uri": "fox",
            "title": "Fox",
            "tags": ["a"],
            "created_at": "2026-01-01T00:00:00Z",
            "n": 1,
        },
    },
    "Query": {"query": "foxes", "top_k": 3, "min_score": 0.1, "filter": {"tags": "a", "uri": "f*", "n": 1}},
    "list_documents": {"limit": 2, "sort": "title", "filter": {"uri": "*"}},
    "get_document": {"document": "fox", "start_line": 1, "max_tokens": 10},
    "delete_document": {"document": "fox"},
    "list_journal": {"limit": 5},
    "undo_writes": {},
    "get_memory_stats": {},
}
PARAMS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "clientInfo": {"name": "fuzz", "version": "1"},
        "capabilities": {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}},
    },
    "ping": {},
    "server/discover": {},
    "tools/list": {"cursor": "0"},
    "resources/list": {"cursor": "0"},
    "resources/templates/list": {},
    "resources/read": {"uri": "ragchat://document/x"},
    "resources/subscribe": {"uri": "ragchat://document/x"},
    "resources/unsubscribe": {"uri": "ragchat://document/x"},
    "prompts/list": {},
    "prompts/get": {"name": "x", "arguments": {"a": "b"}},
    "completion/complete": {
        "ref": {"type": "ref/resource", "uri": "ragchat://document/{id}"},
        "argument": {"name": "id", "value": ""},
        "context": {"arguments": {"a": "b"}},
    },
    "logging/setLevel": {"level": "error"},
    "subscriptions/listen": {
        "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["memory://x"], "taskIds": ["x"]}
    },
    "tasks/get": {"taskId": "x"},
    "tasks/cancel": {"taskId": "x"},
    "tasks/update": {"taskId": "x", "inputResponses": {"a": {}}},
    "notifications/initialized": {},
    "notifications/cancelled": {"requestId": 1, "reason": "none"},
    "notifications/progress": {"progressToken": 1, "progress": 0.5},
    "notifications/unknown": {},
    "unknown/method": {},
}

# Values that programs get wrong: limits of number types, invalid text, Python's own names.
NUMBERS = [0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400, 1e308, -0.0, 1e-320]
TEXTS = [
    *("", " ", "\0", "a\0b", "\ud800", "a\udfff\ud800b", "\ufeff", "\u2028", "😀" * 50, "é" * 2_000),
    *("x" * 100_000, "*" * 60_000, "%s%n", "'; DROP TABLE documents; --", "__class__", "../../etc/passwd"),
    *('"', '"a" AND', "NEAR(", "fox*", "\\", "2026-07-28", "NaN", "ragchat://document/%00", "file:///etc"),
]


def one_of(values: Sequence[T]) -> st.SearchStrategy[T]:
    """As `sampled_from`, which would show all of `values` where a test fails: some are very long."""
    return st.integers(0, len(values) - 1).map(lambda index: values[index])


scalars = (
    st.sampled_from([None, True, False])
    | one_of(NUMBERS)
    | one_of(TEXTS)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=20)
)
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
    max_leaves=10,
) | st.sampled_from([["x"] * 900, {str(n): n for n in range(900)}]).map(lambda value: _copied(value))


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _containers(inner)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _edges(value: Any) -> st.SearchStrategy[Any]:
    """Values of the same type at the edge of what is valid."""
    if isinstance(value, str):
        return one_of(TEXTS)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return one_of(NUMBERS)
    return json_values


@st.composite
def messages(draw: st.DrawFn, *, modern: bool | None = None) -> Any:
    """A message with up to three faults: a value of another type, one that is missing, one too many."""
    if draw(st.booleans()):
        method = "tools/call"
        tool = draw(st.sampled_from([*CALLS]))
        params = {"name": tool, "arguments": _copied(CALLS[tool])}
    else:
        method = draw(st.sampled_from([*PARAMS]))
        params = _copied(PARAMS[method])
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if not method.startswith("notifications/"):
        message["id"] = draw(st.integers(0, 10**6) | st.sampled_from(["", "a", "1"]))
    if draw(st.booleans()) if modern is None else modern:
        params["_meta"] = _copied(META)
    for _ in range(draw(st.integers(0, 3))):
        of = params.get("arguments") if method == "tools/call" and draw(st.booleans()) else message
        container = draw(one_of([*_containers(of)]) if isinstance(of, dict) else st.just(message))
        keys = [*container] if isinstance(container, dict) else [*range(len(container))]
        match draw(st.sampled_from(["change", "change", "change", "remove", "add"])):
            case "change" if keys:
                key = draw(st.sampled_from(keys))
                container[key] = draw(_edges(container[key]) | json_values)
            case "remove" if keys:
                del container[draw(st.sampled_from(keys))]
            case "add" if isinstance(container, dict):
                container[draw(st.text(max_size=9))] = draw(json_values)
    return message


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (key,)
        yield from ((key, *path) for path in _paths(inner))


def edge_messages(short_step: int, *, modern: bool) -> Iterator[Any]:
    """Every field of every request without a value, and with each of `NUMBERS`, `TEXTS` and some others.

    In a short run only every `short_step`-th of them; in a long one all, in another order each time.
    """
    if IS_SHORT:
        return itertools.islice(_edge_messages(modern=modern), 0, None, short_step)
    edges = [*_edge_messages(modern=modern)]
    random.shuffle(edges)
    return iter(edges)


def _edge_messages(*, modern: bool) -> Iterator[Any]:
    values: list[Any] = [None, True, [], {}, [[]], [None], {"a": {}}, ["x"] * 900, *NUMBERS, *TEXTS]
    ids = itertools.count()
    templates = [*PARAMS.items()]
    templates += [("tools/call", {"name": tool, "arguments": given}) for tool, given in CALLS.items()]
    for method, params in templates:
        whole = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
        for *way, last in _paths(whole):
            for value in (*values, _Missing):
                message = _copied(whole) | {"id": next(ids)}
                container = message
                for key in way:
                    container = container[key]
                if value is _Missing:
                    del container[last]
                else:
                    container[last] = value
                if modern and isinstance(message.get("params"), dict):
                    message["params"]["_meta"] = META
                yield message


class _Missing:
    """Stands for no value at all."""


def encoded(value: Any) -> bytes:
    """As JSON; lone surrogates become escapes, which are JSON all the same."""
    return json.dumps(value).encode()


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A message with some bytes of it replaced, removed or inserted."""
    line = bytearray(encoded(draw(messages())))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(line)))
        line[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    return bytes(line)


def _deep(depth: int) -> Iterator[bytes]:
    yield b"[" * depth
    yield b"[" * depth + b"]" * depth
    yield b'{"a":' * depth + b"1" + b"}" * depth
    for field in (b"params", b"id", b"result"):
        request = b'{"jsonrpc":"2.0","id":1,"method":"ping","%b":%b}'
        yield request % (field, b"[" * depth + b"]" * depth)
    call = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Inject","arguments":%b,"_meta":%b}}'
    )
    nested = b'{"text":"x","metadata":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    yield call % (nested, encoded(META))


# Whole bodies that no mutation of a message produces.
ODD_BODIES = [
    *(
        b"",
        b" ",
        b"\t\r",
        b"null",
        b"0",
        b'""',
        b"[]",
        b"[[]]",
        b"[1,2]",
        b"{}",
        b"\xff\xfe",
        b"\0",
        b"\xef\xbb\xbf{}",
    ),
    *(b"1" * 10_000, b"-", b"1e999999", b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}'),
    *(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % (b"9" * size) for size in (20, 400, 5_000)),
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\udc00","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":null,"error":{}}',
    *(body for depth in (100, 1_100, 100_000) for body in _deep(depth)),
]
bodies = (
    messages().map(encoded)
    | messages().map(encoded)
    | st.lists(messages(), max_size=4).map(encoded)
    | json_values.map(encoded)
    | damaged()
    | one_of(ODD_BODIES)
    | st.binary(max_size=200)
    | messages().map(lambda message: encoded(message).decode().encode("utf-16"))
)


@st.composite
def pieces(draw: st.DrawFn, of: st.SearchStrategy[bytes]) -> list[bytes]:
    """Bytes cut at any place, as a pipe or a network cuts them."""
    data = draw(of)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=3)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def check_answer(text: bytes) -> None:
    """Raises AssertionError for an answer that reports a fault of the server or its disk."""
    for word in (b"INTERNAL_ERROR", b"MEMORY_UNUSABLE", b"Traceback"):
        assert word not in text, text[:2_000]
