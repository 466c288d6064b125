"""The library: its documents and their folders, and what is wrong with memory or its sources."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import msgspec
from anyio import to_thread
from starlette.requests import Request

from ragchat.console import describe
from ragchat.errors import NoDocumentMatches, RagChatError
from ragchat.formatting import local
from ragchat.memory.history import can_restore, new_group
from ragchat.memory.matching import match
from ragchat.sanitize import one_line
from ragchat.setup.checks import Check, folders, sources_check
from ragchat.uris import exact_glob, is_glob, part_globs, short_uri
from ragchat.web.errors import BadRequest
from ragchat.web.site import Site, route, streamed
from ragchat.web.sources import source_document
from ragchat.web.streaming import Tell
from ragchat.web.uploads import copies_of, copy_name, largest
from ragcommon.contract.documents import DocumentInfo, DocumentPage
from ragcommon.files.uris import path_in
from ragcommon.text.rules import counted

PAGE = 100  # documents
SORTS = ("uri", "title", "added_at", "updated_at", "characters")


async def overview(site: Site, _: Request) -> dict[str, Any]:
    """The size of memory, and what is wrong. A memory that does not answer is one of the problems."""
    checks = [await to_thread.run_sync(folders, site.settings)]
    document: dict[str, Any] = {"documents": None, "sources": []}
    try:
        stats = await site.memory.stats()
        sources = await site.memory.sources()
        checks.append(sources_check(sources))
        document |= {
            "documents": stats.documents,
            "chunks": stats.chunks,
            "bytes": stats.bytes,
            "path": one_line(stats.path),
            "sources": [source_document(source) for source in sources],
        }
    except RagChatError as error:
        failure = describe(error)
        checks.append(Check("memory", "fault", failure.message, failure.hint))
    return {
        **document,
        "server": site.memory.url,
        "upload_bytes": largest(site),
        "can_undo": can_restore(site.settings),
        "can_write": not site.settings.tables["memory"]["read_only"],
        "problems": [check for check in checks if check.status != "ok"],
    }


async def verify(site: Site, tell: Tell) -> None:
    """Check the memory's file for damage: `progress` events, then `verified`."""

    def on_progress(done: float, total: float | None, _: str | None) -> None:
        tell({"type": "progress", "done": done, "total": total})

    found = await site.memory.verify(on_progress)
    tell({"type": "verified", **msgspec.to_builtins(found)})


# Documents


async def documents(site: Site, request: Request) -> dict[str, Any]:
    """A page: `?q=` a part of a name, `#tag`, or as for `ragchat memory ls`; `?in=` a folder; `?sort=`,
    `?descending=1`, `?cursor=`. Its `folder` is the name of the one asked for, "" for all.
    """
    asked = request.query_params
    sort, descending = asked.get("sort", "uri"), asked.get("descending") == "1"
    if sort not in SORTS:
        raise BadRequest(f"documents are sorted by {', '.join(SORTS)}, not {sort}")
    words, place = asked.get("q", "").strip(), asked.get("in", "")

    async def listed(filter: dict[str, Any]) -> DocumentPage:
        cursor = asked.get("cursor", "")
        return await site.memory.document_page(PAGE, filter, sort, cursor, descending=descending)

    page = await listed(_filter(words, place))
    if words and not place and not page.total:
        with suppress(NoDocumentMatches):
            found = await match(site.memory, words, PAGE)
            page = DocumentPage(found.documents, found.total)
            if found.filter is not None:
                page = await listed(found.filter)
    copies = copies_of(site)
    return {
        "documents": [_document(info, copies) for info in page.documents],
        "total": page.total,
        "folder": _folder_name(place, "", copies) if place else "",
        "cursor": page.next_cursor or "",
    }


def _filter(words: str, place: str) -> dict[str, Any]:
    """The documents in a folder whose names hold the words. `match` looks for more, but takes longer."""
    inside = exact_glob(place)
    if words.startswith("#"):
        return {"tags": [words[1:]], "uri": f"{inside}*"}
    if not words or is_glob(words):
        return {"uri": inside + (words or "*")}
    is_encoded = not place or place.startswith("file:")
    return {"uri": inside + part_globs(words)[0 if is_encoded else -1]}


def _document(info: DocumentInfo, copies: str) -> dict[str, Any]:
    name = copy_name(info.uri, copies) or short_uri(info.uri, info.title)
    return {
        "id": info.document_id,
        "title": one_line(info.title) or PurePosixPath(name).name or name,
        "name": name,
        "is_copy": info.uri.startswith(copies),
        "kind": _kind(info),
        "chunks": info.chunks,
        "characters": info.characters,
        "added": local(info.added_at),
        "changed": local(info.updated_at),
        "tags": [*map(one_line, info.metadata.get("tags", []))],
        "machine": one_line(info.machine),
        "by": one_line(info.written_by or ""),
    }


def _kind(info: DocumentInfo) -> str:
    """The kind of a document as the user names it: `PDF`, `MD`, `note`."""
    scheme, _, rest = info.uri.partition(":")
    suffix = PurePosixPath(unquote(rest).partition("?")[0]).suffix
    if suffix and path_in(info.uri) is not None:
        return one_line(suffix[1:].upper(), 8)
    if info.uri.startswith("ragchat:"):
        return "report" if rest.startswith("report/") else "conversation"
    return "web page" if scheme in ("http", "https") else "note"


async def tree(site: Site, request: Request) -> dict[str, Any]:
    """The folders below `?in=`, each with its name there and the number of its documents."""
    place = request.query_params.get("in", "")
    found = await site.memory.folders(place)
    copies = copies_of(site)
    return {
        "folders": [
            {
                "uri": folder.uri,
                "name": _folder_name(folder.uri, place, copies),
                "documents": folder.documents,
            }
            for folder in found.folders
        ],
        "more": bool(found.next_cursor),
    }


def _folder_name(uri: str, place: str, copies: str) -> str:
    if uri.startswith(copies) and not place.startswith(copies):
        return " / ".join(["Dropped files", *filter(None, copy_name(uri, copies).split("/"))])
    if place or path_in(uri) is None:
        return one_line(unquote(uri.removeprefix(place).rstrip("/"))) or uri
    return short_uri(uri.rstrip("/"))


async def forget(site: Site, request: Request) -> dict[str, Any]:
    """Remove the document `?id=`; its `group` undoes that."""
    group = new_group()
    done = await site.memory.forget(request.query_params.get("id", ""), group)
    name = copy_name(done.uri, copies_of(site)) or short_uri(done.uri)
    return {"said": [f"Removed {name} ({counted(done.chunks, 'chunk')})."], "group": group}


ROUTES = (
    route("/api/library", overview),
    streamed("/api/library/verify", verify, "POST"),
    route("/api/library/documents", documents),
    route("/api/library/documents", forget, "DELETE"),
    route("/api/library/folders", tree),
)
