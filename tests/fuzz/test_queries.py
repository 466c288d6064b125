"""Hostile queries, filters and arguments of a real memory: an answer, or an error that names the field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from ragmcp.protocol.pagination import cursor_to
from ragmcp.server.core import Server
from ragmemory.errors import BadArgument
from ragmemory.mcp.toolsets import make_tools
from ragmemory.search.queries import parse
from ragmemory.service import MemoryService
from tests.fuzz.hostile import UNSHRUNK, few, json_values, numbers, processor_seconds, repeated, texts, words
from tests.support.memories import ORIGIN, service_for
from tests.support.raw_mcp import raw_client

# Seconds until something counts as hung: every call here takes milliseconds.
LONGEST_SECONDS = 20.0
PROCESSOR_SECONDS = 1.0
LONG = 100_000

KNOWN_KEYS = ["uri", "tags", "created_after", "created_before", "lang"]
queries = st.lists(words, max_size=12).map(" ".join) | st.text(max_size=40)
filters = st.dictionaries(
    st.sampled_from(KNOWN_KEYS) | words,
    json_values | st.lists(words, max_size=5) | st.text("*?[]^-a\\\x00", max_size=30),
    max_size=4,
)
metadata = st.dictionaries(
    st.sampled_from(["uri", "title", "tags", "created_at"]) | words,
    json_values
    | st.lists(words, max_size=3)
    | st.sampled_from(["2026-01-31", "0001-01-01", "9999-12-31T23:59+00:01"]),
    max_size=4,
)
# What a client may send for the arguments of each tool. reembed_memory is left out: it has none.
arguments: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "Inject": st.fixed_dictionaries(
        {"text": texts | json_values}, optional={"metadata": metadata | json_values}
    ),
    "Query": st.fixed_dictionaries(
        {"query": queries | json_values},
        optional={"top_k": numbers | json_values, "filter": filters | json_values, "min_score": json_values},
    ),
    "list_documents": st.fixed_dictionaries(
        {}, optional={"limit": numbers, "cursor": words | json_values, "filter": filters | json_values}
    ),
    "get_document": st.fixed_dictionaries(
        {"document": words | json_values},
        optional={"start_line": numbers, "end_line": numbers, "max_tokens": numbers, "cursor": words},
    ),
    "delete_document": st.fixed_dictionaries({"document": words | json_values}),
    "list_journal": st.fixed_dictionaries({}, optional={"limit": numbers | json_values}),
    "undo_writes": st.just({}),
}
# At the edge of what the schemas state, or beyond what SQLite holds.
EDGES: list[tuple[str, dict[str, Any]]] = [
    ("list_documents", {"cursor": cursor_to(2**63)}),
    ("list_documents", {"cursor": cursor_to(2**63 - 1)}),
    ("list_documents", {"limit": 10_000, "cursor": cursor_to(2**64)}),
    ("list_documents", {"filter": {"uri": "*a" * 30_000}}),
    ("list_documents", {"filter": {"uri": "[" * 60_000}}),
    ("list_documents", {"filter": {"uri": "\x00"}}),
    ("get_document", {"document": "x", "cursor": "9" * 18}),
    ("get_document", {"document": "x", "start_line": 2**53, "end_line": 2**53}),
    ("list_journal", {"limit": 2**63}),
    ("Query", {"query": "fox", "top_k": 2**63}),
    ("Query", {"query": "fox", "filter": {"uri": "*a" * 30_000}}),
    ("Query", {"query": "fox", "filter": {"tags": ["t"] * 900}}),
    ("Query", {"query": "fox", "filter": {"tags": [f"t{n}" for n in range(40_000)]}}),
    ("Query", {"query": "fox", "filter": {f"k{n}": n for n in range(1_500)}}),
    ("Query", {"query": "fox", "filter": {"k": 10**400}}),
    ("Query", {"query": "fox", "filter": {"created_after": "9999-12-31T23:59:59-23:59"}}),
    ("Query", {"query": '"' + "a " * 4_000 + '"'}),
    ("Query", {"query": " ".join(f"w{n}*" for n in range(2_000))}),
    ("get_document", {"document": "x" * 2_000_000}),
    ("Inject", {"text": "t", "metadata": {"uri": "a\x00b"}}),
    ("Inject", {"text": "t", "metadata": {"uri": "u" * 1_000_000}}),
    ("Inject", {"text": "t", "metadata": {"tags": ["t"] * 100_000}}),
    ("Inject", {"text": "t", "metadata": {"k": 10**400}}),
]


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def memory(portal: BlockingPortal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryService]:
    """A memory of three documents, open for the whole module: opening one takes longer than asking it."""
    with portal.wrap_async_context_manager(service_for(tmp_path_factory.mktemp("memory"))) as memory:
        for name in ("fox", "cat", "owl"):
            text = f"# The {name}\n\nThe quick {name} jumps over the lazy dog.\n"
            metadata = {"uri": f"file:///{name}.md", "tags": [name], "created_at": "2026-01-31", "lang": 1}
            portal.call(memory.writer.inject, text, metadata, ORIGIN)
        yield memory


def answered(portal: BlockingPortal, call: Callable[..., Any], *arguments: Any) -> Any:
    """The outcome, None for a BadArgument. Raises TimeoutError for what hangs."""

    async def within() -> Any:
        with anyio.fail_after(LONGEST_SECONDS):
            return await call(*arguments)

    try:
        return portal.call(within)
    except BadArgument:
        return None


@few(60)
@given(text=queries, top_k=st.integers(1, 100))
def test_any_query_is_answered(portal: BlockingPortal, memory: MemoryService, text: str, top_k: int) -> None:
    found = answered(portal, memory.search.query, text, top_k)
    assert found is not None
    assert [hit.rank for hit in found.hits] == list(range(1, len(found.hits) + 1))
    assert len(found.hits) <= top_k


@few(60)
@given(filter=filters)
def test_any_filter_is_answered_or_refused_by_name(
    portal: BlockingPortal, memory: MemoryService, filter: dict[str, Any]
) -> None:
    answered(portal, memory.search.query, "the quick fox", 8, filter)


@settings(few(15), phases=UNSHRUNK)
@given(text=repeated(LONG))
def test_a_long_query_takes_linear_time(portal: BlockingPortal, memory: MemoryService, text: str) -> None:
    with processor_seconds(PROCESSOR_SECONDS):
        parse(text)
    answered(portal, memory.search.query, text, 8)


def result_of(message: Any) -> Any:
    """The result of a tool, or the data of its error; it must be one that a client can understand."""
    result = message.get("result", {})
    data = message["error"]["data"] if "error" in message else result.get("structuredContent", {})
    if "error" in message or result.get("isError"):
        assert data["errorCode"] not in {"INTERNAL_ERROR", "MEMORY_UNUSABLE"}, message
    return data


@pytest.fixture(scope="module")
def ask(portal: BlockingPortal, memory: MemoryService) -> Iterator[Callable[[str, dict[str, Any]], Any]]:
    """What a client is answered that sends these arguments to this tool."""

    async def opened() -> MemoryService:
        return memory

    server = Server("ragmemory", "test", tools=make_tools(opened, ["memory", "documents", "history"]))
    with portal.wrap_async_context_manager(raw_client(server, "2026-07-28")) as client:

        async def asked(tool: str, arguments: dict[str, Any]) -> Any:
            with anyio.fail_after(LONGEST_SECONDS):
                return await client.request("tools/call", {"name": tool, "arguments": arguments})

        yield lambda tool, arguments: result_of(portal.call(asked, tool, arguments))


@few(80)
@given(data=st.data())
def test_any_arguments_are_answered_or_refused_by_name(
    ask: Callable[[str, dict[str, Any]], Any], data: st.DataObject
) -> None:
    tool = data.draw(st.sampled_from(sorted(arguments)))
    ask(tool, data.draw(arguments[tool]))


@pytest.mark.parametrize(("tool", "arguments"), EDGES, ids=lambda value: str(value)[:40])
def test_arguments_at_the_edge_are_answered_or_refused_by_name(
    ask: Callable[[str, dict[str, Any]], Any], tool: str, arguments: dict[str, Any]
) -> None:
    ask(tool, arguments)
