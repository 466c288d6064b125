"""Typed calls to memory: their results, and how errors of the server and the protocol are mapped.

Covers `answers` and `types`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from ragchat.errors import MemoryRefused, MemoryTimedOut, MemoryUnavailable, RagChatError
from ragchat.memory.client import MemoryClient
from ragcommon.contract.search import QueryResult
from ragmcp.errors import (
    ConnectionClosed,
    NotEncodable,
    RagMcpError,
    RequestTimedOut,
    ServerNotStarted,
    WireError,
)
from ragmcp.protocol.schema.content import TextContent
from ragmcp.protocol.schema.tools import ToolCallResult
from tests.support.memory import memory_in


class Failing:
    """A connection on which every request comes to the same end."""

    def __init__(self, end: Callable[[], Any]) -> None:
        self.end = end

    async def ask(self, *_: object, **__: object) -> Any:
        return self.end()


def failing(error: RagMcpError) -> Failing:
    def end() -> ToolCallResult:
        raise error

    return Failing(end)


async def test_a_document_goes_in_is_found_shown_and_taken_out_again(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory:
        injected = await memory.inject(
            "The capital of France is Paris.", {"uri": "note:1", "title": "France"}
        )
        assert (injected.uri, injected.status, injected.chunks) == ("note:1", "added", 1)
        [hit] = (await memory.query("capital of France", 3)).hits
        assert (hit.rank, hit.uri, hit.title, hit.start_line) == (1, "note:1", "France", 1)
        assert (await memory.documents(filter={"uri": "note:*"})).total == 1
        assert (await memory.show(injected.document_id)).text == "The capital of France is Paris."
        assert (await memory.stats()).documents == 1
        seen: list[tuple[float, float | None]] = []
        assert (await memory.reembed(lambda done, total, _: seen.append((done, total)))).chunks == 1
        assert seen == [(1, 1)]
        assert (await memory.forget("note:1")).chunks == 1
        assert (await memory.undo()).entry.uri == "note:1"
        assert [entry.action for entry in await memory.journal()][-1] == "added"
        assert {tool.name for tool in await memory.tools()} >= {"Inject", "Query"}


async def test_a_document_can_be_named_by_its_files_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with memory_in(tmp_path) as memory:
        await memory.inject("text", {"uri": (tmp_path / "a b.md").as_uri()})
        assert (await memory.show("a b.md")).text == "text"
        await memory.forget("a b.md")
        with pytest.raises(MemoryRefused, match=r"There is no document a b\.md in memory\."):
            await memory.forget("a b.md")
        with pytest.raises(MemoryRefused, match="There is no document ~nobody-has-this-name/x in memory"):
            await memory.show("~nobody-has-this-name/x")


async def test_an_empty_memory_says_so_with_its_answer(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory:
        assert await memory.query("anything") == QueryResult([], empty=True)
        await memory.inject("Tea is hot.", {"uri": "note:1"})
        assert not (await memory.query("anything")).empty


async def test_a_tool_that_a_model_calls_answers_with_text_and_passages(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory:
        await memory.inject("Tea is hot.", {"uri": "note:1"})
        found = await memory.call("Query", {"query": "tea"})
        assert (found.ok, [hit.text for hit in found.hits]) == (True, ["Tea is hot."])
        assert "> Tea is hot." in found.text
        await memory.inject("def brew(): ...", {"uri": "file:///tea.py"})
        [hit] = (await memory.call("search_code", {"query": "brew"})).hits
        assert (await memory.show(hit.document_id)).uri == hit.uri == "file:///tea.py"
        assert (await memory.call("get_memory_stats", {})).hits == []
        failed = await memory.call("get_document", {"document": "none"})
        assert (failed.ok, failed.hits) == (False, [])
        assert failed.text == (
            "There is no document none in memory.\n"
            "`ragchat memory ls` and the tool list_documents list the documents."
        )


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda memory: memory.undo(), "NOTHING_TO_UNDO"),
        (lambda memory: memory.show("none"), "RESOURCE_NOT_FOUND"),
        (lambda memory: memory.query("x", 0), "INVALID_PARAMS"),
        (lambda memory: memory.query("x\udc80"), "INTERNAL_ERROR"),
    ],
)
async def test_what_memory_refuses_keeps_its_word(
    tmp_path: Path, ask: Callable[[MemoryClient], Awaitable[Any]], word: str
) -> None:
    async with memory_in(tmp_path) as memory:
        with pytest.raises(MemoryRefused) as caught:
            await ask(memory)
    assert caught.value.word == word
    assert str(caught.value).endswith(".")


async def test_a_bad_argument_is_the_same_error_as_a_result_and_as_a_protocol_error() -> None:
    sentence, data = "Invalid parameter $.top_k: expected `int` >= 1.", {"errorCode": "INVALID_PARAMS"}
    result = ToolCallResult(
        content=[TextContent(text=sentence)], structured_content=Raw(json.dumps(data)), is_error=True
    )
    for server in (Failing(lambda: result), failing(WireError(-32602, sentence, data))):
        with pytest.raises(MemoryRefused) as caught:
            await MemoryClient(server).query("x", 0)
        assert (caught.value.word, str(caught.value)) == ("INVALID_PARAMS", sentence)


async def test_an_argument_that_a_server_does_not_know_means_that_it_is_older() -> None:
    sentence, data = "Invalid parameter $.filter: unknown field.", {"errorCode": "INVALID_PARAMS"}
    result = ToolCallResult(
        content=[TextContent(text=sentence)], structured_content=Raw(json.dumps(data)), is_error=True
    )
    for server in (Failing(lambda: result), failing(WireError(-32602, sentence, data))):
        with pytest.raises(MemoryRefused) as caught:
            await MemoryClient(server).documents(1, {"uri": "*"})
        assert str(caught.value) == sentence
        assert caught.value.hint == "That server is older than this program: update ragchat where it runs."


@pytest.mark.parametrize(
    ("error", "mapped", "sentence"),
    [
        (WireError(-32601, "No.", {"errorCode": "METHOD_NOT_FOUND"}), MemoryRefused, "No."),
        (NotEncodable("The text", "lone surrogate"), MemoryRefused, "The text cannot be written as JSON"),
        (RequestTimedOut("tools/call", 3.0), MemoryTimedOut, "Memory did not answer Query within 3 s."),
        (
            ConnectionClosed("Query", "the disk is full"),
            MemoryUnavailable,
            "Memory is not available: the disk is full.",
        ),
        (
            ServerNotStarted(["x"], "no such file"),
            MemoryUnavailable,
            "Memory is not available: no such file.",
        ),
    ],
)
async def test_every_error_of_the_wire_becomes_one_of_ours(
    error: RagMcpError, mapped: type[RagChatError], sentence: str
) -> None:
    memory = MemoryClient(failing(error))
    with pytest.raises(mapped) as caught:
        await memory.query("x")
    assert str(caught.value).startswith(sentence)


async def test_what_to_do_is_apart_from_what_went_wrong(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory:
        with pytest.raises(MemoryRefused) as caught:
            await memory.show("none")
    assert str(caught.value) == "There is no document none in memory."
    assert caught.value.hint == "`ragchat memory ls` and the tool list_documents list the documents."


async def test_an_answer_of_another_shape_is_an_unusable_memory() -> None:
    memory = MemoryClient(Failing(lambda: ToolCallResult(content=[], structured_content=Raw(b'{"hits": 3}'))))
    with pytest.raises(MemoryUnavailable, match="its answer to Query is not usable"):
        await memory.query("x")
