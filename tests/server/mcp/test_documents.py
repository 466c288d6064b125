"""The toolsets `documents` and `history`. Covers `ragmemory.mcp.toolsets.documents`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragmcp.client.features import Client
from ragmemory.limits import RESULT_BYTES
from tests.support.memory import memory_server
from tests.support.processes import attempt, called

TEA = "# Tea\n\nSteep green tea for two minutes.\n\n## Milk\n\nNone in green tea.\n"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with memory_server(tmp_path, "memory,documents") as client:
        yield client


async def listed(client: Client, **arguments: Any) -> list[str]:
    """The titles of all pages."""
    titles, cursor = [], ""
    while True:
        page = await called(client, "list_documents", **arguments, cursor=cursor)
        titles += [document["title"] for document in page["documents"]]
        if "next_cursor" not in page:
            return titles
        cursor = page["next_cursor"]


async def test_documents_are_listed_in_pages_filtered_and_sorted(client: Client) -> None:
    for title, length in (("B", 30), ("C", 10), ("A", 20)):
        metadata = {"uri": f"note:{length}", "title": title, "tags": ["even" if length == 20 else "odd"]}
        await called(client, "Inject", text="x" * length, metadata=metadata)
    assert await listed(client) == ["C", "A", "B"]
    for limit in (1, 2):
        assert await listed(client, limit=limit, sort="title") == ["A", "B", "C"]
    assert await listed(client, max_tokens=1, sort="title", descending=True) == ["C", "B", "A"]
    assert await listed(client, sort="characters", descending=True) == ["B", "A", "C"]
    assert await listed(client, sort="updated_at") == ["B", "C", "A"]
    assert await listed(client, filter={"tags": ["odd"]}) == ["C", "B"]
    assert (await called(client, "list_documents", limit=1))["total"] == 3


async def test_the_folders_of_the_uris_are_listed_one_level_at_a_time(client: Client) -> None:
    uris = ("note:1", "file:///home/a/x.md", "file:///home/a/b/c/y.md", "file:///home/a/b/c/z.md")
    for uri in (*uris, "file:///home/a0.md", "file:///home/d%20e/z.md", "https://example.org/tea/1"):
        await called(client, "Inject", text=f"Text of {uri}.", metadata={"uri": uri})
    root = await called(client, "list_folders")
    assert root == {
        "folders": [
            {"uri": "file:///home/", "documents": 5},
            {"uri": "https://example.org/tea/", "documents": 1},
        ],
        "documents": 1,
    }
    home = await called(client, "list_folders", place="file:///home/")
    assert [(folder["uri"], folder["documents"]) for folder in home["folders"]] == [
        ("file:///home/a/", 3),
        ("file:///home/d%20e/", 1),
    ]
    assert home["documents"] == 1
    # A folder that holds nothing but one folder is left out.
    inner = await called(client, "list_folders", place="file:///home/a/")
    assert inner == {"folders": [{"uri": "file:///home/a/b/c/", "documents": 2}], "documents": 1}
    assert await called(client, "list_folders", place="file:///none/") == {"folders": [], "documents": 0}
    first = await called(client, "list_folders", max_tokens=1)
    assert (len(first["folders"]), "next_cursor" in first) == (1, True)


async def test_a_long_list_keeps_to_the_budget_by_itself(client: Client) -> None:
    for number in range(8):
        metadata = {"uri": f"note:{number}", "title": str(number), "more": "x" * 10_000}
        await called(client, "Inject", text="tea", metadata=metadata)
    page = await called(client, "list_documents")
    assert len(page["documents"]) == 3
    assert len(msgspec.json.encode(page["documents"])) < RESULT_BYTES
    assert await listed(client) == [str(number) for number in range(8)]


async def test_a_document_is_returned_whole_in_lines_or_in_parts(client: Client) -> None:
    injected = await called(client, "Inject", text=TEA, metadata={"uri": "note:tea", "own": 1})
    whole = await called(client, "get_document", document=injected["document_id"])
    assert (whole["text"], whole["title"], whole["metadata"]["own"]) == (TEA, "Tea", 1)
    assert (whole["start_line"], whole["end_line"], "next_cursor" in whole) == (1, 7, False)
    milk = await called(client, "get_document", document="note:tea", start_line=5, end_line=6)
    assert (milk["text"], milk["start_line"], milk["end_line"]) == ("## Milk\n\n", 5, 6)

    await called(client, "Inject", text=TEA * 400, metadata={"uri": "note:tea"})
    part = await called(client, "get_document", document="note:tea")
    assert len(part["text"]) <= RESULT_BYTES
    text = part["text"]
    while cursor := part.get("next_cursor"):
        part = await called(client, "get_document", document="note:tea", cursor=cursor)
        text += part["text"]
    assert text == TEA * 400
    assert len((await called(client, "get_document", document="note:tea", max_tokens=500))["text"]) <= 2000


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"start_line": 8}, "$.start_line"),
        ({"start_line": 3, "end_line": 2}, "$.end_line"),
        ({"cursor": "999"}, "$.cursor"),
        ({"cursor": "x"}, "$.cursor"),
    ],
)
async def test_lines_and_cursors_that_a_document_does_not_have_are_refused(
    client: Client, arguments: dict[str, Any], path: str
) -> None:
    await called(client, "Inject", text=TEA, metadata={"uri": "note:tea"})
    refused = await attempt(client, "get_document", document="note:tea", **arguments)
    assert refused.structured(dict)["errorCode"] == "INVALID_PARAMS"
    assert path in refused.text


async def test_documents_are_found_each_once_with_their_best_passage(client: Client) -> None:
    filler = "".join(f"## Tea {n}\n\n{'Tea is steeped in a pot. ' * 30}\n\n" for n in range(30))
    for uri, text in (("note:pots", filler), ("note:tea", TEA), ("note:lawn", "The lawn is mowed.")):
        await called(client, "Inject", text=text, metadata={"uri": uri})
    found = await called(client, "search_documents", query="green tea minutes", n_results=2)
    assert [document["uri"] for document in found["documents"]] == ["note:tea", "note:pots"]
    assert [document["rank"] for document in found["documents"]] == [1, 2]
    best = found["documents"][0]["passage"]
    assert "two minutes" in best["text"]
    assert best["location"].startswith("note:tea")
    assert len((await called(client, "search_documents", query="tea", n_results=1))["documents"]) == 1


async def test_no_documents_are_found_in_an_empty_memory(client: Client) -> None:
    found = await called(client, "search_documents", query="tea")
    assert (found["documents"], found["empty"]) == ([], True)


async def test_an_ingested_document_has_its_source_for_a_uri(client: Client) -> None:
    given = {"title": "Green tea", "content": TEA, "source_url": "https://example.org/tea"}
    stored = await called(client, "ingest_document", **given)
    assert (stored["uri"], stored["status"]) == ("https://example.org/tea", "added")
    assert (await called(client, "ingest_document", **given))["status"] == "unchanged"
    document = await called(client, "get_document", document="https://example.org/tea")
    assert (document["title"], document["text"]) == ("Green tea", TEA)
    untitled = await called(client, "ingest_document", content="# Mate\n\nFrom a gourd.")
    assert untitled["uri"].startswith("sha256:")
    assert (await called(client, "get_document", document=untitled["uri"]))["title"] == "Mate"


async def test_headings_are_listed_with_the_lines_of_their_sections(client: Client) -> None:
    text = "# Tea\n\nSteep it.\n\nMilk\n----\n\nNone.\n\n## Water ##\n\nHot.\n"
    await called(client, "Inject", text=text, metadata={"uri": "note:tea"})
    listed = (await called(client, "list_headings", document="note:tea"))["headings"]
    assert [(one["label"], one["level"], one["title"]) for one in listed] == [
        ("1", 1, "Tea"),
        ("1.1", 2, "Milk"),
        ("1.2", 2, "Water"),
    ]
    lines = {key: listed[1][key] for key in ("start_line", "end_line")}
    section = await called(client, "get_document", document="note:tea", **lines)
    assert section["text"].strip() == "Milk\n----\n\nNone."
    first = await called(client, "list_headings", document="note:tea", max_tokens=1)
    assert (len(first["headings"]), "next_cursor" in first) == (1, True)


async def test_the_journal_and_the_text_of_versions_have_pages(tmp_path: Path) -> None:
    async with memory_server(tmp_path, "memory,history") as client:
        for number in range(5):
            await called(client, "Inject", text=f"{TEA}{number}\n" * 30, metadata={"uri": "note:tea"})
        seen, cursor = [], ""
        while True:
            page = await called(client, "list_journal", limit=3, max_tokens=100, cursor=cursor)
            seen += [entry["seq"] for entry in page["entries"]]
            if "next_cursor" not in page:
                break
            cursor = page["next_cursor"]
        assert seen == [5, 4, 3, 2, 1]
        for tool, name in (("get_version", "text"), ("diff_versions", "diff")):
            whole = await called(client, tool, document="note:tea", max_tokens=1_000_000)
            part = await called(client, tool, document="note:tea", max_tokens=100)
            text = part[name]
            while "next_cursor" in part:
                cursor = part["next_cursor"]
                part = await called(client, tool, document="note:tea", max_tokens=100, cursor=cursor)
                text += part[name]
            assert text == whole[name]
            assert len(text) > 400
        first = await called(client, "list_versions", document="note:tea", max_tokens=1)
        assert [version["number"] for version in first["versions"]] == [5]
