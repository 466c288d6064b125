"""The part of the toolset `documents` that carries documents from one memory to another."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ragmcp.server.call import Call
from ragmcp.server.tools import Tool, tool
from ragmemory.limits import MOST_IMPORTED
from ragmemory.mcp.errors import Memory, origin_of, wire_errors
from ragmemory.mcp.toolsets.memory import Group
from ragmemory.types import ExportPage, ImportOutcome, PortableDocument

# At most 18 digits: SQLite's integers have 64 bits.
Cursor = Annotated[str, Meta(description="The next_cursor of the page before.", pattern="^[0-9]{0,18}$")]
Documents = Annotated[
    list[PortableDocument],
    Meta(
        description="Documents as export_documents returns them; only `text` is needed.",
        max_length=MOST_IMPORTED,
    ),
]


class Imported(Struct, frozen=True):
    outcomes: list[ImportOutcome]  # in the order of the documents


def transfer_tools(memory: Memory) -> list[Tool]:
    """The tools for export and import."""

    @tool(read_only=True)
    async def export_documents(call: Call, cursor: Cursor = "") -> ExportPage:
        """Return whole documents with metadata and times: about 1 MB of text, and a cursor for the next."""
        with wire_errors():
            return await (await memory()).export(int(cursor or 0))

    @tool(idempotent=True, background=True)
    async def import_documents(call: Call, documents: Documents, group: Group = "") -> Imported:
        """Store exported documents with metadata and times; a document with the same uri is replaced."""
        await call.background()
        with wire_errors():
            return Imported(await (await memory()).import_documents(documents, origin_of(call, group)))

    return [export_documents, import_documents]
