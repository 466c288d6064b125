"""The toolset `documents`: list, read and delete documents."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from ragmcp.server.call import Call
from ragmcp.server.tools import Tool, tool
from ragmemory.limits import LAST_OFFSET, LONGEST_URI, MOST_TAGS
from ragmemory.mcp.errors import Memory, origin_of, wire_errors
from ragmemory.mcp.toolsets.memory import Group
from ragmemory.types import DocumentInfo, Forgotten

Name = Annotated[str, Meta(description="A document's id or uri.", max_length=LONGEST_URI)]
Limit = Annotated[int, Meta(description="How many at most.", ge=1, le=10_000)]
Offset = Annotated[int, Meta(description="How many to skip.", ge=0, le=LAST_OFFSET)]
Glob = Annotated[
    str,
    Meta(description="Only uris that match, such as file:///home/me/notes/*", max_length=LONGEST_URI),
]

_Tags = Annotated[list[str], Meta(max_length=MOST_TAGS)]
Tags = Annotated[_Tags | None, Meta(description="Only documents that have all of these tags.")]


class DocumentList(Struct, frozen=True):
    documents: list[DocumentInfo]
    total: int


class ShownDocument(DocumentInfo, frozen=True, kw_only=True):
    text: str


def document_tools(memory: Memory) -> list[Tool]:
    """The toolset `documents`."""

    @tool(read_only=True)
    async def list_documents(
        call: Call, limit: Limit = 100, offset: Offset = 0, uri_glob: Glob = "*", tags: Tags = None
    ) -> DocumentList:
        """List the documents in memory by uri, without their texts."""
        with wire_errors():
            return DocumentList(*await (await memory()).documents(limit, offset, uri_glob, tags or []))

    @tool(read_only=True)
    async def get_document(call: Call, document: Name) -> ShownDocument:
        """Show one document with its whole text."""
        with wire_errors():
            info, text = await (await memory()).document(document)
        return ShownDocument(**asdict(info), text=text)

    @tool(destructive=True, idempotent=True)
    async def delete_document(call: Call, document: Name, group: Group = "") -> Forgotten:
        """Remove a document from memory. undo_writes brings it back."""
        with wire_errors():
            return await (await memory()).forget(document, origin_of(call, group))

    return [list_documents, get_document, delete_document]
