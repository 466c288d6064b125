"""The toolset `search`. Covers `ragmemory.mcp.toolsets.search`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from ragmcp.client.features import Client
from ragmcp.protocol.pagination import cursor_to
from ragmemory.limits import RESULT_BYTES
from tests.support.memory import memory_server
from tests.support.processes import attempt, called

# One chunk each.
PARTS = [
    f"## Part {number}\n\nThe word of this part is tea{number}. {'Filler. ' * 150}\n\n"
    for number in range(60)
]
CHUNK = {
    *("chunk_id", "document_id", "uri", "title", "heading"),
    *("start_line", "end_line", "text", "context"),
}
Call = Callable[..., Awaitable[Any]]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with memory_server(tmp_path, "memory,search") as client:
        yield client


@pytest.fixture
async def call(client: Client) -> Call:
    """Calls a tool that must not fail, and checks its result against the tool's own schema."""
    schemas = {tool.name: msgspec.to_builtins(tool)["outputSchema"] for tool in await client.list_tools()}

    async def checked(name: str, **arguments: Any) -> Any:
        result = await called(client, name, **arguments)
        jsonschema.validate(result, schemas[name])
        return result

    metadata = {"uri": "file:///tea.md", "tags": ["drinks"], "own": 1}
    await checked("Inject", text="".join(PARTS), metadata=metadata)
    return checked


async def found(call: Call, number: int) -> Any:
    """The hit of one part."""
    return (await call("semantic_search", query=f"tea{number}", limit=1))["hits"][0]


async def test_every_tool_only_reads_and_describes_itself(client: Client) -> None:
    tools = {tool.name: msgspec.to_builtins(tool) for tool in await client.list_tools()}
    names = ["semantic_search", "get_source_by_id", "get_metadata_by_id", "get_neighbours", "compare_texts"]
    assert list(tools)[2:] == names
    for name in names:
        hints = tools[name]["annotations"]
        assert (hints["readOnlyHint"], hints["idempotentHint"], hints["destructiveHint"]) == (
            True,
            True,
            False,
        )
        assert tools[name]["outputSchema"]["type"] == "object"
    assert tools["semantic_search"]["inputSchema"]["required"] == ["query"]
    assert tools["get_neighbours"]["inputSchema"]["properties"]["before"]["maximum"] == 50


async def test_a_search_has_pages_within_the_budget(call: Call) -> None:
    page = await call("semantic_search", query="the word of the part", limit=60)
    hits, pages = page["hits"], 1
    assert page["hits"][0].keys() == CHUNK | {"rank", "score"}
    while cursor := page.get("next_cursor"):
        assert len(msgspec.json.encode(page["hits"])) <= RESULT_BYTES * 1.1
        page = await call("semantic_search", query="the word of the part", limit=60, cursor=cursor)
        hits, pages = hits + page["hits"], pages + 1
    assert pages > 1
    assert [hit["rank"] for hit in hits] == list(range(1, 61))
    assert len({hit["chunk_id"] for hit in hits}) == 60


async def test_a_search_is_filtered_and_says_what_is_missing(call: Call) -> None:
    page = await call("semantic_search", query="tea7 zebra", limit=3, filter={"tags": ["drinks"]})
    assert "tea7" in page["hits"][0]["text"]
    assert page["missing"] == ["zebra"]
    assert "next_cursor" not in page
    assert (await call("semantic_search", query="tea7", filter={"tags": ["food"]}))["hits"] == []


async def test_a_passage_is_cited_and_described_by_its_id(call: Call) -> None:
    hit = await found(call, 17)
    source = await call("get_source_by_id", chunk_id=hit["chunk_id"])
    assert source == {name: hit[name] for name in CHUNK} | {
        "resource": f"ragchat://document/{hit['document_id']}"
    }
    assert (source["heading"], source["start_line"]) == ("Part 17", 17 * 4 + 1)
    document = await call("get_metadata_by_id", chunk_id=hit["chunk_id"])
    assert (document["uri"], document["metadata"]["own"], document["chunks"]) == ("file:///tea.md", 1, 60)


async def test_neighbours_are_the_text_around_a_passage(call: Call) -> None:
    hit = await found(call, 30)

    async def around(number: int, **arguments: int) -> list[str]:
        chunk_id = (await found(call, number))["chunk_id"]
        return [
            one["heading"]
            for one in (await call("get_neighbours", chunk_id=chunk_id, **arguments))["passages"]
        ]

    assert await around(30) == [f"Part {number}" for number in range(28, 33)]
    assert await around(0, after=1) == ["Part 0", "Part 1"]
    assert await around(59, before=1, after=9) == ["Part 58", "Part 59"]
    page = await call("get_neighbours", chunk_id=hit["chunk_id"], before=50, after=50)
    passages = page["passages"]
    while cursor := page.get("next_cursor"):
        page = await call("get_neighbours", chunk_id=hit["chunk_id"], before=50, after=50, cursor=cursor)
        passages += page["passages"]
    assert "".join(one["text"] for one in passages) == "".join(PARTS)


async def test_neighbours_are_of_the_same_document(call: Call) -> None:
    await call("Inject", text="Coffee is a document of one chunk.")
    hit = (await call("semantic_search", query="coffee", limit=1))["hits"][0]
    page = await call("get_neighbours", chunk_id=hit["chunk_id"])
    assert [one["text"] for one in page["passages"]] == ["Coffee is a document of one chunk."]


async def test_a_chunk_of_a_changed_document_is_no_longer_found(client: Client, call: Call) -> None:
    hit = await found(call, 1)
    await call("Inject", text="Another text.", metadata={"uri": "file:///tea.md"})
    for tool in ("get_source_by_id", "get_metadata_by_id", "get_neighbours"):
        failed = await attempt(client, tool, chunk_id=hit["chunk_id"])
        assert failed.is_error
        assert failed.structured(dict)["errorCode"] == "RESOURCE_NOT_FOUND"
        assert "Search again" in failed.text


async def test_a_bad_argument_is_named(client: Client, call: Call) -> None:
    assert call is not None
    bad: list[tuple[str, dict[str, Any], str]] = [
        ("semantic_search", {"query": ""}, "$.query"),
        ("semantic_search", {"query": "x", "limit": 101}, "$.limit"),
        ("semantic_search", {"query": "x", "cursor": "x"}, "$.cursor"),
        ("semantic_search", {"query": "x", "cursor": cursor_to(1000)}, "$.cursor"),
        ("semantic_search", {"query": "x", "filter": {"uri": 1}}, "$.filter.uri"),
        ("get_source_by_id", {"chunk_id": "1"}, "$.chunk_id"),
        ("get_metadata_by_id", {"chunk_id": 2**64}, "$.chunk_id"),
        ("get_neighbours", {"chunk_id": 1, "before": 51}, "$.before"),
        ("get_neighbours", {"chunk_id": 1, "cursor": "MA=="}, "$.cursor"),
    ]
    for tool, arguments, path in bad:
        failed = await attempt(client, tool, **arguments)
        assert failed.is_error, (tool, arguments)
        assert failed.structured(dict)["errorCode"] == "INVALID_PARAMS", (tool, arguments)
        assert path in failed.text, (tool, arguments)
