"""Files that are dropped on the page.

Each is copied under its name into a folder next to the memory's own file, and loaded from there as
`ragchat inject` loads any file. A browser does not say where a file is: its name, with the folders that were
dropped with it, is all that stays the same. So the same name is the same document, which is then unchanged or
updated. The copy stays, because `/open` and the pages of a PDF need it. A walk of a folder skips the copies,
as it skips all files of the memory.

A copy appears under its name when it is complete. A kill leaves only a hidden file, which nothing loads.
"""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from anyio import to_thread
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request

from ragchat.ingest.loading import load_files
from ragchat.ingest.report import InjectReport, OnProgress
from ragchat.sanitize import one_line
from ragchat.settings import WebSettings
from ragchat.web.errors import BadRequest, CopyFailed, TooLarge
from ragchat.web.site import Site, body, route
from ragcommon.errors import os_reason
from ragcommon.files.decoding import MAX_FILE_BYTES
from ragcommon.files.folder import Folder
from ragcommon.files.safe_open import readable_size
from ragcommon.files.uris import path_of
from ragcommon.files.writing import appearing, private_folder
from ragcommon.text.rules import counted

# One part of a name, in bytes. File systems allow 255, and a hidden name is longer by 18.
MAX_NAME_BYTES = 200
MAX_NAMES = 5000
# Not allowed in the names of Windows. A percent sign begins an escape.
_UNSAFE = frozenset('<>:"\\|?*%')
# A hidden file that was not written for so long is what a killed process left.
STALE_SECONDS = 86_400


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: list[str]


def uploads_folder(site: Site) -> Path:
    """Where the copies of files are, which need not exist yet.

    For a memory on another machine, they are with its mirror, which reads the files of this one. Of a
    repository's own memory, that is in the repository, outside of which it reads no files.
    """
    memory = site.memory.mirror.path if site.memory.mirror else site.settings.memory_path
    return memory.resolve().with_name(f"{memory.name}-files")


def copies_of(site: Site) -> str:
    """What the URIs of the copies begin with."""
    return uploads_folder(site).as_uri() + "/"


def copy_name(uri: str, copies: str) -> str:
    """The name of the file that was dropped on the page; "" for any other document."""
    return one_line(unquote(unquote(uri.removeprefix(copies)))) if uri.startswith(copies) else ""


def largest(site: Site) -> int:
    """The size of the largest file that is taken, in bytes."""
    return min(site.settings.table("web", WebSettings).upload_bytes, MAX_FILE_BYTES)


def copy_path(folder: Path, name: str) -> Path:
    """Where the copy of a file is; `name` has `/` between its folders. Raises BadRequest.

    What could lead elsewhere, hide the copy or be no name on another platform is escaped as in an address.
    """
    parts = [_escaped(part) for part in unicodedata.normalize("NFC", name).split("/")]
    if not all(parts):
        raise BadRequest(f"{name!r} is no name of a file")
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise BadRequest(f"the name {one_line(name, 60)} is longer than {MAX_NAME_BYTES} bytes")
    return folder.joinpath(*parts)


def _escaped(part: str) -> str:
    last = len(part) - 1
    return "".join(
        one
        if one.isprintable()
        and one not in _UNSAFE
        and not (one == "." and at in (0, last))
        and not (one == " " and at == last)
        else "".join(f"%{byte:02X}" for byte in one.encode("utf-8", "surrogatepass"))
        for at, one in enumerate(part)
    )


async def upload(site: Site, request: Request) -> dict[str, Any]:
    """Copy the body, a file, to `?name=`. Raises BadRequest, TooLarge, CopyFailed."""
    name, limit = request.query_params.get("name", ""), largest(site)
    path = copy_path(uploads_folder(site), name)
    size = int(request.headers.get("content-length", 0))
    too_large = TooLarge(one_line(name), readable_size(limit))
    if size > limit:
        raise too_large
    written = 0
    try:
        await to_thread.run_sync(_prepare, path.parent)
        with Folder(path.parent) as folder, appearing(folder, path.name) as file:
            async for part in request.stream():
                written += len(part)
                if written > limit:
                    raise too_large
                await to_thread.run_sync(file.write, part)
            await to_thread.run_sync(file.flush)
            await to_thread.run_sync(os.fsync, file.fileno())
    except ClientDisconnect:
        raise BadRequest(f"{one_line(name)} was not sent to its end") from None
    except OSError as error:
        raise CopyFailed(one_line(name), str(uploads_folder(site)), os_reason(error)) from None
    return {"name": name, "bytes": written}


def _prepare(folder: Path) -> None:
    """Make the folder of a copy, and remove what killed processes have left there. Raises OSError."""
    private_folder(folder)
    for path in folder.glob(".*"):
        with suppress(OSError):
            if path.lstat().st_mtime < time.time() - STALE_SECONDS:
                path.unlink()


async def load(site: Site, request: Request) -> dict[str, Any]:
    """Begin to load the copies of these names: `job` follows that."""
    names = (await body(request, Names)).names
    if not 0 < len(names) <= MAX_NAMES:
        raise BadRequest(f"it names {counted(len(names), 'file')}, not 1 to {MAX_NAMES:,}")
    paths = [copy_path(uploads_folder(site), name) for name in names]
    what = one_line(names[0]) if len(names) == 1 else counted(len(names), "dropped file")
    report = InjectReport()
    return {"job": site.loads.start(what, report, partial(_load, site, paths, report))}


async def _load(site: Site, paths: Sequence[Path], report: InjectReport, on_progress: OnProgress) -> None:
    """Load copies, name them in the report by their own names, and remove those that cannot be read."""
    try:
        await load_files(site.memory, paths, on_progress, report)
    finally:
        copies = copies_of(site)
        for at, outcome in enumerate(report.outcomes):
            if outcome.reason and (path := path_of(outcome.uri)) in paths:
                with suppress(OSError):
                    path.unlink()
            report.outcomes[at] = replace(outcome, uri=copy_name(outcome.uri, copies))


ROUTES = (
    route("/api/library/files", upload, "PUT"),
    route("/api/library/files/load", load, "POST"),
)
