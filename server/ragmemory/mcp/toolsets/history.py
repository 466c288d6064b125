"""The toolset `history`: the journal of writes, versions of documents, undo."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ragmcp.errors import InvalidArguments
from ragmcp.server.call import Call
from ragmcp.server.tools import Tool, tool
from ragmemory.limits import LONGEST_CLIENT, LONGEST_URI, MOST_NUMBERS, MOST_VERSIONS
from ragmemory.mcp.errors import Memory, origin_of, wire_errors
from ragmemory.types import Difference, Entry, Restored, Selection, Undone, Versions, VersionText

Name = Annotated[
    str, Meta(description="A document's id or uri; it may have been removed.", max_length=LONGEST_URI)
]
Limit = Annotated[int, Meta(description="How many at most.", ge=1, le=MOST_VERSIONS)]
_Number = Annotated[int, Meta(ge=1)]
Number = Annotated[_Number | None, Meta(description="A version's number, as list_versions names it.")]
_Numbers = Annotated[list[_Number], Meta(min_length=1, max_length=MOST_NUMBERS)]
Numbers = Annotated[_Numbers | None, Meta(description="Numbers of writes, as list_journal names them.")]
Client = Annotated[
    str,
    Meta(
        description="All writes of this client, session or host, as list_journal names them.",
        max_length=LONGEST_CLIENT,
    ),
]
Since = Annotated[
    str,
    Meta(
        description="All writes since this time: ISO 8601 (the server's local time unless it names a zone), "
        "or a time ago such as 10m, 2h or 3d.",
        max_length=100,
    ),
]


class JournalPage(Struct, frozen=True):
    entries: list[Entry]


def history_tools(memory: Memory) -> list[Tool]:
    """The toolset `history`."""

    @tool(read_only=True)
    async def list_journal(call: Call, limit: Limit = 20) -> JournalPage:
        """List the last writes to memory, newest first: the action, its time, and the client."""
        with wire_errors():
            return JournalPage(await (await memory()).journal(limit))

    @tool(read_only=True)
    async def list_versions(call: Call, document: Name, limit: Limit = 100) -> Versions:
        """List the versions of a document, the current one first: number, time, client, action and size.

        A version whose `characters` are null has a text that is no longer kept.
        """
        with wire_errors():
            return await (await memory()).versions(document, limit)

    @tool(read_only=True)
    async def get_version(call: Call, document: Name, version: Number = None) -> VersionText:
        """Return a version of a document with its whole text; by default the current one."""
        with wire_errors():
            return await (await memory()).version(document, version)

    @tool(read_only=True)
    async def diff_versions(
        call: Call, document: Name, before: Number = None, after: Number = None
    ) -> Difference:
        """Compare two versions of a document as a unified diff of its text and metadata.

        By default what the last write changed; with `before` alone, all changes since that version.
        """
        with wire_errors():
            return await (await memory()).difference(document, before, after)

    @tool(destructive=True, background=True)
    async def restore_version(call: Call, document: Name, version: Number = None) -> Restored:
        """Make an earlier version of a document the current one, also of a document that was removed.

        By default the newest earlier version. This is a new write, which undo takes back.
        """
        await call.background()
        with wire_errors():
            return await (await memory()).restore(document, version, origin_of(call))

    @tool(destructive=True, background=True)
    async def undo_writes(
        call: Call, numbers: Numbers = None, origin: Client = "", since: Since = ""
    ) -> Undone:
        """Undo writes to memory; without arguments the last one, with all writes of its group.

        A document that was written again later, by a write that is not undone as well, stays as it is: by
        `numbers` nothing is undone then, else `kept` names it. An undo cannot be undone.
        """
        if numbers and (origin or since):
            raise InvalidArguments("$.numbers", "cannot be combined with origin and since")
        await call.background()
        selection = Selection(numbers or (), origin, since)
        with wire_errors():
            return await (await memory()).undo(origin_of(call), call.progress, selection)

    return [list_journal, list_versions, get_version, diff_versions, restore_version, undo_writes]
