"""Documents in memory and their blocks as MCP resources: listing, reading, completion, notifications.

The modules of MCP that only resources need are imported at their first request, after the first response.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from ragcommon.contract.documents import DOCUMENT_URIS, DocumentInfo
from ragmcp.errors import InvalidParams, ResourceNotFound
from ragmcp.protocol.schema.content import ResourceContents
from ragmemory.limits import MAX_OFFSET
from ragmemory.mcp.errors import Memory, wire_errors

if TYPE_CHECKING:
    from ragcommon.contract.history import Action, Difference
    from ragmcp.protocol.schema.resources import ResourceInfo, ResourceTemplate
    from ragmcp.server.call import Call
    from ragmcp.server.core import Server
    from ragmemory.service import MemoryService

_BLOCK = "/block/"
_CHANGES = "/changes/"
_CHANGES_MIME = "text/x-diff"
_VARIABLE, _BLOCK_VARIABLE = "id", "block_id"
_TEMPLATE = f"{DOCUMENT_URIS}{{{_VARIABLE}}}"
_BLOCK_TEMPLATE = f"{_TEMPLATE}{_BLOCK}{{{_BLOCK_VARIABLE}}}"
_CHANGES_URI = re.compile(
    rf"{re.escape(DOCUMENT_URIS)}([^/]+){_CHANGES}([1-9]\d{{0,17}})\.\.([1-9]\d{{0,17}})", re.ASCII
)
# The variables of each template.
_VARIABLES = {_TEMPLATE: (_VARIABLE,), _BLOCK_TEMPLATE: (_VARIABLE, _BLOCK_VARIABLE)}


class Resources:
    """The resources of the server."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @cached_property
    def templates(self) -> Sequence[ResourceTemplate]:
        """The templates of their URIs."""
        from ragmcp.protocol.schema.resources import ResourceTemplate

        return [
            ResourceTemplate(
                uri_template=_TEMPLATE,
                name="document",
                title="A document in memory",
                description="The whole text of a document; its id is the document_id of a hit.",
            ),
            ResourceTemplate(
                uri_template=_BLOCK_TEMPLATE,
                name="block",
                title="A block of a document",
                description="A heading with its section, a paragraph, list, item, table, code or quote; "
                "search_blocks of the toolset `blocks` lists the ids.",
            ),
        ]

    async def page(self, cursor: str | UnsetType) -> tuple[list[ResourceInfo], str | UnsetType]:
        """A page of the documents, ordered by uri, and the next cursor. Raises InvalidParams, ToolError."""
        from ragmcp.protocol.pagination import PAGE_ITEMS, cursor_to, offset

        start = offset(cursor, MAX_OFFSET)
        with wire_errors():
            documents, total = await (await self._memory()).documents.page(PAGE_ITEMS, start)
        if start and not documents:
            raise InvalidParams("$.cursor", "the list no longer reaches this far; begin again without it")
        end = start + len(documents)
        return [_described(document) for document in documents], cursor_to(end) if end < total else UNSET

    async def read(self, call: Call, uri: str) -> list[ResourceContents]:  # noqa: ARG002 (a protocol's method)
        """The text of a document or a block, or the changes that a prompt embeds.

        Raises ResourceNotFound, ToolError.
        """
        if versions := _CHANGES_URI.fullmatch(uri):
            return [await self._changes(uri, versions[1], int(versions[2]), int(versions[3]))]
        document, separator, block = uri.removeprefix(DOCUMENT_URIS).partition(_BLOCK)
        with wire_errors():
            from ragmemory.errors import BlockNotFound, DocumentNotFound

            memory = await self._memory()
            try:
                if separator:
                    found = await self._block(memory, document, block)
                else:
                    found = contents(*await memory.documents.read(document))
            except (DocumentNotFound, BlockNotFound):
                raise ResourceNotFound(uri) from None
        if uri != found.uri:  # Documents and blocks can also be found by their other names.
            raise ResourceNotFound(uri)
        return [found]

    async def _changes(self, uri: str, document: str, before: int, after: int) -> ResourceContents:
        with wire_errors():
            from ragmemory.errors import DocumentNotFound, VersionNotFound, VersionNotKept

            try:
                found = await (await self._memory()).history.difference(document, before, after)
            except (DocumentNotFound, VersionNotFound, VersionNotKept):
                raise ResourceNotFound(uri) from None
        return changes(document, found)

    async def _block(self, memory: MemoryService, document: str, block: str) -> ResourceContents:
        info, shown = await memory.block_editor.block(document, block)
        uri = block_uri(shown.document_id, shown.block_id)
        return ResourceContents(uri=uri, mime_type=_mime_type(info), text=shown.text)

    async def complete(
        self, template: str, argument: str, typed: str, others: Mapping[str, str]
    ) -> Sequence[str]:
        """The ids that begin with `typed`: of documents the most recently changed first, of blocks in order.

        `others` are the other arguments. Raises InvalidParams, ToolError.
        """
        if template not in _VARIABLES:
            raise InvalidParams("$.ref.uri", f"only {' and '.join(_VARIABLES)} can be completed")
        if argument not in _VARIABLES[template]:
            names = " and ".join(_VARIABLES[template])
            raise InvalidParams("$.argument.name", f"the template has no variable but {names}")
        with wire_errors():
            memory = await self._memory()
            if argument == _VARIABLE:
                return await memory.documents.ids(typed)
            return await memory.block_editor.block_ids(others.get(_VARIABLE, ""), typed)


def announce(server: Server, document_id: str, action: Action, is_ours: bool) -> None:
    """Notify the subscribed clients of a change. Any block may be part of one by another process."""
    if (watched := server.watched) is None:
        return
    from ragmcp.protocol.schema.subscriptions import list_changed, resource_updated

    uri = document_uri(document_id)
    server.announce(resource_updated(uri))
    if action != "updated":
        server.announce(list_changed("resources"))
    if not is_ours and action != "added":
        for block in watched:
            if block.startswith(f"{uri}{_BLOCK}"):
                server.announce(resource_updated(block))


def announce_blocks(server: Server, document_id: str, block_ids: Sequence[str]) -> None:
    """Notify the subscribed clients of blocks that have changed or are gone."""
    from ragmcp.protocol.schema.subscriptions import resource_updated

    for block_id in block_ids:
        server.announce(resource_updated(block_uri(document_id, block_id)))


def contents(document: DocumentInfo, text: str) -> ResourceContents:
    """A document with its text, as a resource."""
    uri = document_uri(document.document_id)
    return ResourceContents(uri=uri, mime_type=_mime_type(document), text=text)


def _mime_type(document: DocumentInfo) -> str:
    from ragmemory.ingest.documents import media_type

    return media_type(document.uri, document.metadata.get("media_type"))


def changes(document_id: str, difference: Difference) -> ResourceContents:
    """What changed between two versions of a document, as a resource."""
    before = difference.before.number if difference.before else 0
    uri = f"{document_uri(document_id)}{_CHANGES}{before}..{difference.after.number}"
    return ResourceContents(uri=uri, mime_type=_CHANGES_MIME, text=difference.diff)


def _described(document: DocumentInfo) -> ResourceInfo:
    from ragmcp.protocol.schema.resources import ResourceInfo

    return ResourceInfo(
        uri=document_uri(document.document_id),
        name=document.uri,
        title=document.title or UNSET,
        mime_type=_mime_type(document),
        annotations={"lastModified": document.updated_at},
    )


def document_uri(document_id: str) -> str:
    """The resource of a document."""
    return DOCUMENT_URIS + document_id


def block_uri(document_id: str, block_id: str) -> str:
    """The resource of a block."""
    return f"{document_uri(document_id)}{_BLOCK}{block_id}"
