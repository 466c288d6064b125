"""The documents in memory as MCP resources: listing, reading, completion of ids, change notifications.

The modules of MCP that only resources need are imported at their first request, after the first response.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from ragmcp.errors import InvalidParams, ResourceNotFound
from ragmcp.protocol.schema.content import ResourceContents
from ragmemory.limits import LAST_OFFSET
from ragmemory.mcp.errors import Memory, wire_errors

if TYPE_CHECKING:
    from ragmcp.protocol.schema.resources import ResourceInfo, ResourceTemplate
    from ragmcp.server.call import Call
    from ragmcp.server.server import Server
    from ragmemory.types import Change, DocumentInfo

BASE = "ragchat://document/"
_VARIABLE = "id"
_TEMPLATE = f"{BASE}{{{_VARIABLE}}}"


class Documents:
    """The resources of the server."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @cached_property
    def templates(self) -> Sequence[ResourceTemplate]:
        """The template of their URIs."""
        from ragmcp.protocol.schema.resources import ResourceTemplate

        return [
            ResourceTemplate(
                uri_template=_TEMPLATE,
                name="document",
                title="A document in memory",
                description="The whole text of a document; its id is the document_id of a hit.",
            )
        ]

    async def page(self, cursor: str | UnsetType) -> tuple[list[ResourceInfo], str | UnsetType]:
        """A page of the documents, ordered by uri, and the next cursor. Raises InvalidParams, ToolError."""
        from ragmcp.protocol.pagination import PAGE_ITEMS, cursor_to, offset

        start = offset(cursor)
        if start > LAST_OFFSET:
            raise InvalidParams("$.cursor", "no list returned this cursor")
        with wire_errors():
            documents, total = await (await self._memory()).documents(PAGE_ITEMS, start)
        if start and not documents:
            raise InvalidParams("$.cursor", "the list no longer reaches this far; begin again without it")
        end = start + len(documents)
        return [_described(document) for document in documents], cursor_to(end) if end < total else UNSET

    async def read(self, call: Call, uri: str) -> list[ResourceContents]:  # noqa: ARG002 (a protocol's method)
        """A document's text. Raises ResourceNotFound, ToolError."""
        with wire_errors():
            from ragmemory.errors import DocumentNotFound

            try:
                info, text = await (await self._memory()).document(uri.removeprefix(BASE))
            except DocumentNotFound:
                raise ResourceNotFound(uri) from None
        if uri != document_uri(info.document_id):  # `document` also accepts the document's own uri.
            raise ResourceNotFound(uri)
        return [contents(info, text)]

    async def complete(self, template: str, argument: str, typed: str) -> Sequence[str]:
        """The ids that begin with `typed`, most recently changed first. Raises InvalidParams, ToolError."""
        if template != _TEMPLATE:
            raise InvalidParams("$.ref.uri", f"only {_TEMPLATE} can be completed")
        if argument != _VARIABLE:
            raise InvalidParams("$.argument.name", f"the only variable is {_VARIABLE}")
        with wire_errors():
            return await (await self._memory()).document_ids(typed)


def announce(server: Server, document_id: str, change: Change) -> None:
    """Notify the subscribed clients of a change."""
    from ragmcp.protocol.schema.subscriptions import list_changed, resource_updated

    server.announce(resource_updated(document_uri(document_id)))
    if change != "updated":
        server.announce(list_changed("resources"))


def contents(document: DocumentInfo, text: str) -> ResourceContents:
    """A document with its text, as a resource."""
    from ragmemory.ingest.documents import media_type

    kind = media_type(document.uri, document.metadata.get("media_type"))
    return ResourceContents(uri=document_uri(document.document_id), mime_type=kind, text=text)


def _described(document: DocumentInfo) -> ResourceInfo:
    from ragmcp.protocol.schema.resources import ResourceInfo
    from ragmemory.ingest.documents import media_type

    return ResourceInfo(
        uri=document_uri(document.document_id),
        name=document.uri,
        title=document.title or UNSET,
        mime_type=media_type(document.uri, document.metadata.get("media_type")),
        annotations={"lastModified": document.updated_at},
    )


def document_uri(document_id: str) -> str:
    """The resource of a document."""
    return BASE + document_id
