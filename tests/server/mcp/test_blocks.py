"""The toolset `blocks` and the resources of blocks.

Covers `ragmemory.mcp.toolsets.blocks` and `ragmemory.mcp.toolsets.paging`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ragmcp.client.features import Client
from ragmcp.errors import WireError
from ragmcp.protocol.schema.completion import TemplateReference
from ragmcp.protocol.schema.subscriptions import Filter, resource_updated
from ragmemory.limits import RESULT_BYTES
from ragmemory.mcp.toolsets.blocks import MAX_TEXT_CHARACTERS
from tests.support.http_memory import MODERN
from tests.support.memory import memory_server
from tests.support.processes import attempt, called
from tests.support.stdio_memory import stdio_memory

TEXT = "# Tea\n\nSteep it for two minutes.\n\n- green\n- black\n\n## Milk\n\nNone.\n"
TEMPLATE = TemplateReference(uri="ragchat://document/{id}/block/{block_id}")
TOOLSETS = "memory,documents,blocks,history"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with memory_server(tmp_path, TOOLSETS, [tmp_path]) as client:
        await called(client, "Inject", text=TEXT, metadata={"uri": "note:tea"})
        yield client


async def blocks(client: Client, **arguments: Any) -> dict[str, Any]:
    """The listed blocks by label."""
    found = await called(client, "search_blocks", **({"document": "note:tea"} | arguments))
    return {block["label"]: block for block in found["blocks"]}


async def test_a_document_is_edited_block_by_block(client: Client) -> None:
    version = (await blocks(client))["1"]["version"]
    inserted = await called(
        client, "insert_block", document="note:tea", version=version, content="white", block="1.b.1"
    )
    assert [block["label"] for block in inserted["blocks"]] == ["1.b.2"]
    updated = await called(
        client, "update_block", document="note:tea", version=inserted["version"], block="1.1", content="Sugar"
    )
    deleted = await called(
        client, "delete_block", document="note:tea", version=updated["version"], block="#2"
    )
    text = (await called(client, "get_document", document="note:tea"))["text"]
    assert text == "# Tea\n\n- green\n- white\n- black\n\n## Sugar\n\nNone.\n"
    assert len(deleted["removed"]) == 1
    await called(client, "undo_writes")
    assert "Steep it" in (await called(client, "get_document", document="note:tea"))["text"]


async def test_a_stale_edit_names_both_versions(client: Client) -> None:
    edit = {"document": "note:tea", "version": 1, "block": "1.a", "content": "Other."}
    await called(client, "update_block", **edit)
    stale = await attempt(client, "update_block", **edit)
    error = stale.structured(dict)
    assert (stale.is_error, error["errorCode"]) == (True, "STALE_VERSION")
    assert (error["details"]["version"], error["details"]["current"]) == (1, 2)


async def test_what_cannot_be_done_is_an_error(client: Client) -> None:
    impossible: list[tuple[str, dict[str, Any], str]] = [
        ("search_blocks", {}, "INVALID_PARAMS"),
        ("search_blocks", {"query": "tea", "below": "1"}, "INVALID_PARAMS"),
        ("search_blocks", {"document": "note:none"}, "RESOURCE_NOT_FOUND"),
        ("search_blocks", {"document": "note:tea", "below": "7.z"}, "RESOURCE_NOT_FOUND"),
        ("search_blocks", {"document": "note:tea", "kind": "page"}, "INVALID_PARAMS"),
        ("search_blocks", {"document": "note:tea", "cursor": "forged"}, "INVALID_PARAMS"),
        ("search_content", {"query": "..."}, "INVALID_PARAMS"),
        ("search_content", {"query": "tea", "cursor": "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"}, "INVALID_PARAMS"),
        ("create_document", {"title": " ", "content": "x"}, "INVALID_PARAMS"),
        ("create_document", {"title": "t", "content": "x", "uri": "note:tea"}, "DOCUMENT_EXISTS"),
        ("delete_block", {"document": "note:tea", "version": 1, "block": "none"}, "RESOURCE_NOT_FOUND"),
        (
            "delete_block",
            {"document": "note:tea", "version": 1, "block": "1.a", "write_back": True},
            "NOT_WRITTEN_BACK",
        ),
    ]
    for tool, arguments, code in impossible:
        failed = await attempt(client, tool, **arguments)
        assert (failed.is_error, failed.structured(dict)["errorCode"]) == (True, code), (tool, arguments)


async def test_blocks_are_found_by_meaning_and_by_words(client: Client) -> None:
    assert "1.a" in await blocks(client, query="How long does it steep?", document="")
    found = await called(client, "search_content", query="two minutes")
    assert [block["label"] for block in found["blocks"]] == ["1.a"]
    assert "next_cursor" not in found


async def test_results_stay_within_the_budget_and_the_cursor_has_the_rest(client: Client) -> None:
    long = "word " * MAX_TEXT_CHARACTERS
    text = "\n\n".join(f"Word {number}. {'word ' * 300}" for number in range(60)) + f"\n\n{long}"
    await called(client, "Inject", text=text, metadata={"uri": "note:long"})
    for tool, arguments in (
        ("search_blocks", {"document": "note:long"}),
        ("search_content", {"query": "word", "document": "note:long"}),
    ):
        seen, cursor, pages = [], "", 0
        while pages == 0 or cursor:
            page = await called(client, tool, **arguments, cursor=cursor)
            pages += 1
            seen += [block["number"] for block in page["blocks"]]
            assert sum(len(str(block)) for block in page["blocks"]) < RESULT_BYTES * 1.2
            last = page["blocks"][-1]
            cursor = page.get("next_cursor", "")
        assert seen == list(range(1, 62))
        assert pages > 2
        assert (last["is_cut"], len(last["text"])) == (True, MAX_TEXT_CHARACTERS)
        [contents] = await client.read_resource(last["resource"])
        assert contents.text == long.strip()


async def test_an_edit_reaches_the_file(client: Client, tmp_path: Path) -> None:
    created = await attempt(
        client, "create_document", title="Plan", content="# Plan\n\nDo it.", uri=(tmp_path / "p.md").as_uri()
    )
    document = created.structured(dict)
    edit = {"document": document["uri"], "version": document["version"], "block": "1.a", "content": "Did it."}
    refused = await attempt(client, "update_block", **edit, write_back=True)
    assert refused.structured(dict)["errorCode"] == "NOT_WRITTEN_BACK"
    (tmp_path / "p.md").write_text("# Plan\n\nDo it.", encoding="utf-8")
    written = await called(client, "update_block", **edit, write_back=True)
    assert written["file"] == str(tmp_path / "p.md")
    assert (tmp_path / "p.md").read_text(encoding="utf-8") == "# Plan\n\nDid it."


async def test_a_block_is_a_resource(client: Client) -> None:
    listed = await blocks(client)
    [contents] = await client.read_resource(listed["1.1"]["resource"])
    assert (contents.uri, contents.mime_type) == (listed["1.1"]["resource"], "text/markdown")
    assert contents.text == "## Milk\n\nNone."
    assert TEMPLATE.uri in [template.uri_template for template in await client.list_resource_templates()]


async def test_block_ids_are_completed_for_a_document(client: Client) -> None:
    listed = await blocks(client)
    id = listed["1"]["document_id"]
    found = await client.complete(TEMPLATE, "block_id", "", {"id": id})
    assert found.values == [block["block_id"] for block in listed.values()]
    first = listed["1.a"]["block_id"]
    assert (await client.complete(TEMPLATE, "block_id", first[:6], {"id": id})).values == [first]
    assert (await client.complete(TEMPLATE, "block_id", first[:6])).values == []
    assert (await client.complete(TEMPLATE, "id", id[:6])).values == [id]
    with pytest.raises(WireError):
        await client.complete(TEMPLATE, "label", "")


async def test_no_other_name_of_a_block_is_a_resource(client: Client) -> None:
    document = (await blocks(client))["1"]["document_id"]
    for end in ("", "1.a", "#2", "000000000000", "../1"):
        with pytest.raises(WireError) as caught:
            await client.read_resource(f"ragchat://document/{document}/block/{end}")
        assert (caught.value.code, caught.value.error_code) == (-32602, "RESOURCE_NOT_FOUND"), end


@pytest.mark.parametrize(("revision", "code"), [(MODERN, -32602), ("2025-11-25", -32002)])
def test_a_block_that_is_gone_is_not_found_as_the_revision_prescribes(
    tmp_path: Path, revision: str, code: int
) -> None:
    with stdio_memory(tmp_path, "--toolsets", TOOLSETS, revision=revision) as host:
        document = host.call("Inject", text=TEXT)["structuredContent"]["document_id"]
        uri = f"ragchat://document/{document}/block/000000000000"
        assert host.request("resources/read", uri=uri)["error"]["code"] == code


async def test_a_change_of_a_block_is_announced_to_its_subscribers_alone(client: Client) -> None:
    listed = await blocks(client)
    watched = listed["1.1.a"]["resource"]
    async with client.subscribe(Filter(resource_subscriptions=[watched])) as news:
        edit = await called(
            client, "update_block", document="note:tea", version=1, block="1.a", content="Other words."
        )
        await called(
            client,
            "update_block",
            document="note:tea",
            version=edit["version"],
            block="1.1.a",
            content="Some.",
        )
        assert await anext(news) == resource_updated(watched)
        await called(client, "Inject", text=TEXT.replace("None", "Nothing"), metadata={"uri": "note:tea"})
        assert await anext(news) == resource_updated(watched)
        [contents] = await client.read_resource(watched)
        assert contents.text == "Nothing."


async def test_a_change_by_another_process_is_announced_for_every_block(
    client: Client, tmp_path: Path
) -> None:
    watched = (await blocks(client))["1.1.a"]["resource"]
    async with (
        client.subscribe(Filter(resource_subscriptions=[watched])) as news,
        memory_server(tmp_path, TOOLSETS) as other,
    ):
        await called(other, "Inject", text=TEXT + "More.\n", metadata={"uri": "note:tea"})
        assert await anext(news) == resource_updated(watched)
