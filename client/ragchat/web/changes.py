"""The versions of a document with their differences, the journal, and undo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.requests import Request

from ragchat.formatting import local
from ragchat.memory.history import can_restore, next_sync, restored, sentences, size, what, writer
from ragchat.sanitize import one_line, sanitize
from ragchat.uris import short_uri
from ragchat.web.errors import BadRequest
from ragchat.web.site import Site, body, route
from ragchat.web.uploads import copies_of, copy_name
from ragcommon.contract.history import Version

# Lines of a difference that one page shows.
MAX_LINES = 5000
MAX_ENTRIES = 1000  # of the journal
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class ToRestore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    document: str
    version: int


class ToUndo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Single writes, or all of a group."""

    numbers: list[int] = []
    group: str = ""


async def versions(site: Site, request: Request) -> dict[str, Any]:
    """The versions of the document `?id=`, also after its removal."""
    found = await site.memory.versions(request.query_params.get("id", ""))
    return {
        "id": found.document_id,
        "name": copy_name(found.uri, copies_of(site)) or short_uri(found.uri),
        "versions": [_version(one) for one in found.versions],
    }


def _version(one: Version) -> dict[str, Any]:
    return {
        "number": one.number,
        "at": local(one.at),
        "action": one.action,
        "by": one_line(writer(one.origin)),
        "size": size(one),
        "is_kept": one.characters is not None and one.action != "removed",
        "current": one.current,
    }


async def difference(site: Site, request: Request) -> dict[str, Any]:
    """What changed in `?id=` from version `?before=` to `?after=`, by default in its last write."""
    asked = request.query_params
    try:
        numbers = [int(asked[name]) if asked.get(name) else None for name in ("before", "after")]
    except ValueError:
        raise BadRequest("a version is a number") from None
    found = await site.memory.difference(asked.get("id", ""), *numbers)
    lines = [*diff_lines(sanitize(found.diff))]
    return {
        "before": _version(found.before) if found.before else None,
        "after": _version(found.after),
        "lines": lines[:MAX_LINES],
        "more": max(len(lines) - MAX_LINES, 0),
    }


def diff_lines(diff: str) -> Iterator[tuple[str, int | None, int | None, str]]:
    """The lines of a unified diff: `+`, `-`, ` ` or `@`, their numbers before and after, their text."""
    before = after = left_before = left_after = 0  # next lines, and how many of the hunk are left
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        if not (left_before or left_after) or line.startswith("\\"):
            if found := _HUNK.match(line):
                before, left_before, after, left_after = (int(number or 1) for number in found.groups())
            yield "@", None, None, line
            continue
        kind = line[:1] if line[:1] in ("+", "-") else " "
        yield kind, None if kind == "+" else before, None if kind == "-" else after, line[1:]
        if kind != "+":
            before, left_before = before + 1, left_before - 1
        if kind != "-":
            after, left_after = after + 1, left_after - 1


async def restore(site: Site, request: Request) -> dict[str, Any]:
    asked = await body(request, ToRestore)
    done = await site.memory.restore(asked.document, asked.version)
    return {"said": [*filter(None, (restored(done), await next_sync(site.memory, done)))]}


async def journal(site: Site, request: Request) -> dict[str, Any]:
    """The last `?limit=` writes, newest first."""
    limit = request.query_params.get("limit", "100")
    if not limit.isdecimal() or not 0 < int(limit) <= MAX_ENTRIES:
        raise BadRequest(f"the limit is a number from 1 to {MAX_ENTRIES:,}")
    entries, copies = await site.memory.journal(int(limit)), copies_of(site)
    return {
        "entries": [
            {
                "number": entry.seq,
                "at": local(entry.at),
                "action": what(entry),
                "document": entry.document_id,
                "name": copy_name(entry.uri, copies) or short_uri(entry.uri),
                "by": one_line(writer(entry.origin)),
                "group": entry.origin.group,
                "undone": entry.undone,
                # An undo cannot be undone.
                "can_undo": can_restore(site.settings) and not entry.undone and entry.action != "restored",
            }
            for entry in entries
        ],
        "more": len(entries) == int(limit) < MAX_ENTRIES,
    }


async def undo(site: Site, request: Request) -> dict[str, Any]:
    asked = await body(request, ToUndo)
    if bool(asked.numbers) == bool(asked.group):
        raise BadRequest("it names neither writes nor a group")
    undone = await site.memory.undo(numbers=asked.numbers, origin=asked.group)
    return {"said": [*sentences(undone)]}


ROUTES = (
    route("/api/library/versions", versions),
    route("/api/library/difference", difference),
    route("/api/library/restore", restore, "POST"),
    route("/api/library/journal", journal),
    route("/api/library/undo", undo, "POST"),
)
