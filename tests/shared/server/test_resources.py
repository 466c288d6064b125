"""Resources, in every revision: listed in pages, read, and not found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import UnsetType

from ragmcp.errors import ResourceNotFound
from ragmcp.protocol.pagination import page
from ragmcp.protocol.schema.content import ResourceContents
from ragmcp.protocol.schema.resources import ResourceInfo, ResourceTemplate
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from tests.support.raw_mcp import raw_client
from tests.support.schemas import MODERN, REVISIONS


class Shelf:
    """250 texts, an image, and a template."""

    books = tuple(ResourceInfo(uri=f"test://book/{n}", name=f"Book {n}") for n in range(250))
    templates: Sequence[ResourceTemplate] = (
        ResourceTemplate(uri_template="test://book/{n}", name="A book", mime_type="text/plain"),
    )

    async def page(self, cursor: str | UnsetType) -> tuple[list[ResourceInfo], str | UnsetType]:
        return page(self.books, cursor)

    async def read(self, _: Call, uri: str) -> list[ResourceContents]:
        if uri == "test://image":
            return [ResourceContents(uri=uri, mime_type="image/png", blob="AA==")]
        if uri == "test://crash":
            raise RuntimeError("an internal secret")
        if not uri.startswith("test://book/"):
            raise ResourceNotFound(uri)
        return [ResourceContents(uri=uri, mime_type="text/plain", text=f"The text of {uri}")]


def server() -> Server:
    return Server("library", "1", [], resources=Shelf())


@pytest.mark.parametrize("revision", REVISIONS)
async def test_resources_are_listed_page_by_page(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        names: list[str] = []
        params: dict[str, Any] = {}
        while True:
            result = (await client.request("resources/list", params))["result"]
            names += [resource["name"] for resource in result["resources"]]
            if "nextCursor" not in result:
                break
            params = {"cursor": result["nextCursor"]}
        assert names == [f"Book {n}" for n in range(250)]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list"])
@pytest.mark.parametrize("cursor", ["x", "", 5])
async def test_a_cursor_of_others_is_refused(revision: str, method: str, cursor: Any) -> None:
    async with raw_client(server(), revision) as client:
        error = (await client.request(method, {"cursor": cursor}))["error"]
        assert (error["code"], error["data"]["details"]["path"]) == (-32602, "$.cursor")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_templates_are_listed(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        result = (await client.request("resources/templates/list"))["result"]
        assert result["resourceTemplates"] == [
            {"uriTemplate": "test://book/{n}", "name": "A book", "mimeType": "text/plain"}
        ]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_text_and_blobs_are_read(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        text = (await client.request("resources/read", {"uri": "test://book/7"}))["result"]["contents"]
        assert text == [
            {"uri": "test://book/7", "mimeType": "text/plain", "text": "The text of test://book/7"}
        ]
        image = (await client.request("resources/read", {"uri": "test://image"}))["result"]["contents"]
        assert image == [{"uri": "test://image", "mimeType": "image/png", "blob": "AA=="}]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_is_not_there_is_named_with_the_code_of_the_revision(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        error = (await client.request("resources/read", {"uri": "test://nope"}, id="r"))["error"]
        assert error["code"] == (-32602 if revision == MODERN else -32002)
        assert error["data"] == {
            "errorCode": "RESOURCE_NOT_FOUND",
            "details": {"uri": "test://nope"},
            "requestId": "r",
            "uri": "test://nope",
        }


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_failure_while_reading_keeps_its_secrets(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw_client(server(), revision) as client:
        error = (await client.request("resources/read", {"uri": "test://crash"}))["error"]
        assert (error["code"], error["data"]["errorCode"]) == (-32603, "INTERNAL_ERROR")
        assert "secret" not in error["message"]
    assert "an internal secret" in caplog.text


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("params", [{}, {"uri": 5}])
async def test_reading_nothing_in_particular_is_refused(revision: str, params: dict[str, Any]) -> None:
    async with raw_client(server(), revision) as client:
        error = (await client.request("resources/read", params))["error"]
        assert (error["code"], error["data"]["details"]["path"]) == (-32602, "$.uri")


async def test_what_a_resource_holds_is_private_and_may_change_at_once() -> None:
    async with raw_client(server(), MODERN) as client:
        for method, params in (("resources/list", {}), ("resources/read", {"uri": "test://book/1"})):
            result = (await client.request(method, params))["result"]
            assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
        templates = (await client.request("resources/templates/list"))["result"]
        assert (templates["ttlMs"], templates["cacheScope"]) == (300_000, "public")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_without_resources_knows_none_of_the_methods(revision: str) -> None:
    async with raw_client(Server("none", "1", []), revision) as client:
        for method in ("list", "templates/list", "read", "subscribe", "unsubscribe"):
            answer = await client.request(f"resources/{method}", {"uri": "test://x"})
            assert answer["error"]["code"] == -32601
