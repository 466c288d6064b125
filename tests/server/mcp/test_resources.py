from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragmcp.client.features import Client
from ragmcp.errors import WireError
from ragmcp.protocol.pagination import PAGE_ITEMS, cursor_to
from ragmcp.protocol.schema.base import ListParams
from ragmcp.protocol.schema.completion import PromptReference, TemplateReference
from ragmcp.protocol.schema.resources import ListResourcesResult
from ragmcp.protocol.schema.subscriptions import Change, Filter, list_changed, resource_updated
from tests.support.memory import memory_server
from tests.support.processes import called

TEMPLATE = TemplateReference(uri="ragchat://document/{id}")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with memory_server(tmp_path) as client:
        yield client


async def injected(client: Client, uri: str, text: str = "# Fox\n\nFoxes jump.") -> str:
    """The resource of a new document."""
    document = await called(client, "Inject", text=text, metadata={"uri": uri})
    return f"ragchat://document/{document['document_id']}"


async def test_an_empty_memory_lists_nothing(client: Client) -> None:
    assert await client.list_resources() == []


async def test_a_document_is_listed_and_read(client: Client) -> None:
    uri = await injected(client, "file:///fox.md")
    [resource] = await client.list_resources()
    assert (resource.uri, resource.name, resource.title) == (uri, "file:///fox.md", "Fox")
    assert resource.mime_type == "text/markdown"
    [contents] = await client.read_resource(uri)
    assert (contents.uri, contents.mime_type, contents.text) == (uri, "text/markdown", "# Fox\n\nFoxes jump.")


async def test_a_document_has_the_mime_type_of_its_text(client: Client) -> None:
    mime_types = {
        "file:///notes/tea.md": "text/markdown",
        "note:tea": "text/markdown",
        "file:///notes/tea.txt": "text/plain",
        "file:///data/teas.csv": "text/csv",
        "file:///data/Teas.JSON": "application/json",
        "file:///etc/tea.yml": "application/yaml",
        "file:///src/tea.ts": "text/plain",
        "file:///papers/tea.pdf": "text/plain",
    }
    resources = {await injected(client, uri): mime_type for uri, mime_type in mime_types.items()}
    assert {listed.uri: listed.mime_type for listed in await client.list_resources()} == resources
    for resource, mime_type in resources.items():
        [contents] = await client.read_resource(resource)
        assert contents.mime_type == mime_type, resource


async def test_the_list_has_pages(client: Client) -> None:
    uris = {await injected(client, f"note:{number:03}") for number in range(PAGE_ITEMS + 1)}
    params = ListParams(meta=client.meta())
    first = await client.request("resources/list", params, ListResourcesResult, 10)
    assert (len(first.resources), first.next_cursor) == (PAGE_ITEMS, cursor_to(PAGE_ITEMS))
    assert {resource.uri for resource in await client.list_resources()} == uris
    beyond = ListParams(meta=client.meta(), cursor=cursor_to(PAGE_ITEMS + 1))
    with pytest.raises(WireError, match="no longer reaches this far"):
        await client.request("resources/list", beyond, ListResourcesResult, 10)
    for offset in (2**63, 10**4000):
        forged = ListParams(meta=client.meta(), cursor=cursor_to(offset))
        with pytest.raises(WireError, match=r"\$\.cursor: no list returned this cursor"):
            await client.request("resources/list", forged, ListResourcesResult, 10)


async def test_what_is_no_document_is_not_found(client: Client) -> None:
    await injected(client, "note:fox")
    ids = ("ragchat://document/0000000000000000", "ragchat://document/")
    for uri in (*ids, "note:fox", "file:///etc/passwd"):
        with pytest.raises(WireError) as caught:
            await client.read_resource(uri)
        assert (caught.value.code, caught.value.error_code) == (-32602, "RESOURCE_NOT_FOUND"), uri


async def test_document_ids_are_completed(client: Client) -> None:
    template, _ = await client.list_resource_templates()
    assert template.uri_template == TEMPLATE.uri
    old, new = [(await injected(client, f"note:{name}"))[-16:] for name in ("old", "new")]
    assert (await client.complete(TEMPLATE, "id", "")).values == [new, old]
    assert (await client.complete(TEMPLATE, "id", old[:5])).values == [old]
    assert (await client.complete(TEMPLATE, "id", "%")).values == []


@pytest.mark.parametrize(
    ("reference", "argument"),
    [
        (TEMPLATE, "title"),
        (TemplateReference(uri="ragchat://{anything}"), "id"),
        (PromptReference(name="x"), "x"),
    ],
    ids=str,
)
async def test_nothing_else_is_completed(
    client: Client, reference: TemplateReference | PromptReference, argument: str
) -> None:
    with pytest.raises(WireError) as caught:
        await client.complete(reference, argument, "")
    assert caught.value.code == -32602


async def test_every_write_is_announced(client: Client) -> None:
    uri = await injected(client, "note:fox")
    wanted = Filter(resources_list_changed=True, resource_subscriptions=[uri])
    heard: list[Change] = []

    async with client.subscribe(wanted) as news:

        async def hear(count: int) -> list[Change]:
            heard[:] = [await anext(news) for _ in range(count)]
            return sorted(heard, key=lambda announcement: announcement.method)

        both = [list_changed("resources"), resource_updated(uri)]
        await injected(client, "note:fox", "Foxes sleep.")
        assert await hear(1) == [resource_updated(uri)]
        await injected(client, "note:other")
        assert await hear(1) == [list_changed("resources")]
        await called(client, "delete_document", document="note:fox")
        assert await hear(2) == both
        await called(client, "undo_writes")
        assert await hear(2) == both
        await injected(client, "note:fox", "Foxes sleep.")  # as it is: nothing to tell
        await injected(client, "note:last")
        assert await hear(1) == [list_changed("resources")]


async def test_a_memory_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("no database " * 99, encoding="utf-8")
    async with memory_server(tmp_path) as client:
        with pytest.raises(WireError) as caught:
            await client.list_resources()
        assert caught.value.error_code == "NOT_A_MEMORY"
        assert "is not a memory" in caught.value.message
