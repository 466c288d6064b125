"""The toolset `history`: the journal of writes, versions of documents, undo."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from ragcommon.contract.history import DifferencePart, JournalPage, Restored, Undone, VersionPage
from ragmcp.errors import InvalidArguments
from ragmcp.server.call import Call
from ragmcp.server.tools import Tool, tool
from ragmemory.limits import MAX_CLIENT_LENGTH, MAX_UNDO_NUMBERS, MAX_URI_LENGTH, MAX_VERSIONS
from ragmemory.mcp.errors import Memory, origin_of
from ragmemory.mcp.toolsets.paging import (
    DEFAULT_TOKENS,
    Cursor,
    MaxTokens,
    NumberCursor,
    first_of,
    fitting,
    page_of,
    selected,
    text_page,
)
from ragmemory.types.history import Selection, VersionText

Name = Annotated[
    str,
    Meta(
        description="A document's id, uri or resource; it may have been removed.", max_length=MAX_URI_LENGTH
    ),
]
Limit = Annotated[int, Meta(description="How many at most, on this page.", ge=1, le=MAX_VERSIONS)]
Newest = Annotated[int, Meta(description="How many at most, on all pages.", ge=1, le=MAX_VERSIONS)]
_Number = Annotated[int, Meta(ge=1)]
Number = Annotated[_Number | None, Meta(description="A version's number, as list_versions names it.")]
_Numbers = Annotated[list[_Number], Meta(min_length=1, max_length=MAX_UNDO_NUMBERS)]
Numbers = Annotated[_Numbers | None, Meta(description="Numbers of writes, as list_journal names them.")]
Client = Annotated[
    str,
    Meta(
        description="All writes of this client, session, host or group, as list_journal names them.",
        max_length=MAX_CLIENT_LENGTH,
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


class VersionPart(VersionText, frozen=True):
    next_cursor: str | UnsetType = UNSET  # there is more of the text


def history_tools(memory: Memory) -> list[Tool]:
    """The toolset `history`."""
    return [*_reading_tools(memory), *_undoing_tools(memory)]


def _reading_tools(memory: Memory) -> list[Tool]:
    @tool(read_only=True)
    async def list_journal(
        call: Call, limit: Limit = 20, max_tokens: MaxTokens = DEFAULT_TOKENS, cursor: NumberCursor = ""
    ) -> JournalPage:
        """List the last writes to memory, newest first: action, time, client, session, host and group."""
        found = await (await memory()).history.journal(limit, before=int(cursor or 0) or None)
        entries = found[: fitting(found, max_tokens)]
        is_last = len(entries) == len(found) < limit or not entries or entries[-1].seq == 1
        return JournalPage(entries, UNSET if is_last else str(entries[-1].seq))

    @tool(read_only=True)
    async def list_versions(
        call: Call,
        document: Name,
        limit: Newest = 100,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
        cursor: Cursor = "",
    ) -> VersionPage:
        """List the versions of a document, the current one first: number, time, client, action and size.

        A version whose `characters` are null has a text that is no longer kept.
        """
        found = await (await memory()).history.versions(document, limit)
        versions, next_cursor = page_of(found.versions, cursor, max_tokens)
        return VersionPage(found.document_id, found.uri, versions, next_cursor)

    @tool(read_only=True)
    async def get_version(
        call: Call,
        document: Name,
        version: Number = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
        cursor: Cursor = "",
    ) -> VersionPart:
        """Return a version of a document with its text; by default the current one.

        A long text comes in parts: while there is a next_cursor, there is more.
        """
        found = await (await memory()).history.version(document, version)
        text, next_cursor = text_page(found.text, cursor, max_tokens)
        return selected(VersionPart, found, text=text, next_cursor=next_cursor)

    @tool(read_only=True)
    async def diff_versions(
        call: Call,
        document: Name,
        before: Number = None,
        after: Number = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
        cursor: Cursor = "",
    ) -> DifferencePart:
        """Compare two versions of a document as a unified diff of its text and metadata.

        By default what the last write changed; with `before` alone, all changes since that version.
        """
        found = await (await memory()).history.difference(document, before, after)
        diff, next_cursor = text_page(found.diff, cursor, max_tokens)
        return selected(DifferencePart, found, diff=diff, next_cursor=next_cursor)

    return [list_journal, list_versions, get_version, diff_versions]


def _undoing_tools(memory: Memory) -> list[Tool]:
    @tool(destructive=True, background=True)
    async def restore_version(call: Call, document: Name, version: Number = None) -> Restored:
        """Make an earlier version of a document the current one, also of a document that was removed.

        By default the newest earlier version. This is a new write, which undo takes back. The file of the
        document is not changed: `next_sync` says what the next sync of the sources will do because of it.
        """
        await call.background()
        service = await memory()
        restored = await service.history.restore(document, version, origin_of(call))
        return replace(restored, next_sync=await service.sources.next_sync(restored.uri))

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
        undone = await (await memory()).history.undo(origin_of(call), call.progress, selection)
        kept, more = first_of(undone.kept)
        return replace(undone, kept=kept, more_kept=more)

    return [restore_version, undo_writes]
