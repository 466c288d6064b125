"""The toolset `documents`: list, show, forget, journal, statistics, verification, reembedding."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from ragmcp.server.call import Call
from ragmcp.server.tools import Tool, tool
from ragmemory.limits import LAST_OFFSET, LONGEST_URI, MOST_TAGS
from ragmemory.mcp.errors import Memory, origin_of, wire_errors
from ragmemory.mcp.toolsets.memory import Group
from ragmemory.types import DocumentInfo, Entry, Forgotten, Reembedded, Stats, Verified

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


class JournalPage(Struct, frozen=True):
    entries: list[Entry]


def document_tools(memory: Memory) -> list[Tool]:
    """The toolset `documents`."""

    @tool(read_only=True)
    async def ListDocuments(
        call: Call, limit: Limit = 100, offset: Offset = 0, uri_glob: Glob = "*", tags: Tags = None
    ) -> DocumentList:
        """List the documents in memory by uri, without their texts."""
        with wire_errors():
            return DocumentList(*await (await memory()).documents(limit, offset, uri_glob, tags or []))

    @tool(read_only=True)
    async def ShowDocument(call: Call, document: Name) -> ShownDocument:
        """Show one document with its whole text."""
        with wire_errors():
            info, text = await (await memory()).document(document)
        return ShownDocument(**asdict(info), text=text)

    @tool(destructive=True, idempotent=True)
    async def ForgetDocument(call: Call, document: Name, group: Group = "") -> Forgotten:
        """Remove a document from memory. undo_writes brings it back."""
        with wire_errors():
            return await (await memory()).forget(document, origin_of(call, group))

    @tool(read_only=True)
    async def ListJournal(call: Call, limit: Limit = 20) -> JournalPage:
        """List the last writes to memory, newest first: the action, its time, and the client."""
        with wire_errors():
            return JournalPage(await (await memory()).journal(limit))

    @tool(read_only=True)
    async def MemoryStats(call: Call) -> Stats:
        """Return the size of memory, its path, and the embedder that filled it."""
        with wire_errors():
            return await (await memory()).stats()

    @tool(read_only=True)
    async def VerifyMemory(call: Call) -> Verified:
        """Check the memory's file for damage; report each problem and its remedy."""
        with wire_errors():
            return await (await memory()).verify(call.progress)

    @tool(idempotent=True, background=True)
    async def ReembedAll(call: Call) -> Reembedded:
        """Recompute all embeddings with the configured embedder, which may differ from the previous one."""
        await call.background()
        with wire_errors():
            return await (await memory()).reembed(call.progress)

    return [
        *(ListDocuments, ShowDocument, ForgetDocument, ListJournal),
        *(MemoryStats, VerifyMemory, ReembedAll),
    ]
