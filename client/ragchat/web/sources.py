"""Sources, which are loaded in the background, and the jobs that load them and other files."""

from __future__ import annotations

from typing import Any, Literal

import anyio
import msgspec
from starlette.requests import Request

from ragchat.formatting import local
from ragchat.ingest.loading import sync_files
from ragchat.ingest.report import InjectReport, OnProgress
from ragchat.ingest.sources import add_sources, added_sentence, last_sync, remove_source, removed_sentence
from ragchat.memory.history import new_group
from ragchat.sanitize import one_line
from ragchat.uris import short_uri
from ragchat.web.errors import NotAdded
from ragchat.web.site import Site, body, route, streamed
from ragchat.web.streaming import Tell
from ragcommon.contract.files import Source

# Between two looks at the jobs, while one runs and while none does.
BUSY_SECONDS, IDLE_SECONDS = 0.3, 2.0


class NewSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str


class Uris(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sources to sync; none: all of this machine."""

    uris: list[str] = []


def source_document(source: Source) -> dict[str, Any]:
    return {
        "uri": source.uri,
        "name": short_uri(source.uri),
        "documents": source.documents,
        "synced": local(source.synced_at) if source.synced_at else "",
        "outcome": one_line(last_sync(source)),
        "status": _status(source),
        "machine": one_line(source.machine),
    }


def _status(source: Source) -> Literal["ok", "warning", "fault"]:
    if source.problem:
        return "fault" if source.exists else "warning"
    failed = source.outcome is not None and (source.outcome.error or source.outcome.files.get("failed"))
    return "warning" if failed else "ok"


async def add(site: Site, request: Request) -> dict[str, Any]:
    """Register a folder or file of this machine, or a web page, and begin to load it: `job` follows that."""
    path = (await body(request, NewSource)).path.strip()
    report = InjectReport()
    async with site.servers.loader(site.memory, site.settings, [path]) as memory:
        added, found = await add_sources(memory, [path], report)
    if report.texts:
        raise NotAdded(report.texts[0].error or "")
    said = [added_sentence(source) for source in added]
    return {"said": said, "job": _sync(site, found, ", ".join(short_uri(uri) for uri in found), report)}


async def sync(site: Site, request: Request) -> dict[str, Any]:
    uris = (await body(request, Uris)).uris
    what = ", ".join(short_uri(uri) for uri in uris) or "all folders"
    return {"job": _sync(site, uris, what, InjectReport())}


def _sync(site: Site, uris: list[str], what: str, report: InjectReport) -> str:
    async def work(tell: OnProgress) -> None:
        async with site.servers.loader(site.memory, site.settings, uris) as memory:
            await sync_files(memory, uris, tell, report)

    return site.loads.start(f"Sync of {what}", report, work)


async def remove(site: Site, request: Request) -> dict[str, Any]:
    """Unregister the source `?uri=` of `?machine=`; with `?forget=1`, its documents are removed, too."""
    asked, group = request.query_params, new_group()
    forget = asked.get("forget") == "1"
    machine = asked.get("machine", "")
    done = await remove_source(site.memory, asked.get("uri", ""), group, forget=forget, machine=machine)
    return {"said": [removed_sentence(done)], "group": group if done.forgotten and done.documents else ""}


async def follow(site: Site, tell: Tell) -> None:
    """`jobs` events: all jobs, at once and whenever something of them has changed."""
    told: list[dict[str, Any]] | None = None
    while True:
        jobs = await site.loads.all(site.memory)
        if jobs != told:
            tell({"type": "jobs", "jobs": jobs})
            told = jobs
        is_busy = any(job["status"] == "running" for job in jobs)
        await anyio.sleep(BUSY_SECONDS if is_busy else IDLE_SECONDS)


async def cancel(site: Site, request: Request) -> dict[str, Any]:
    await site.loads.cancel(site.memory, request.path_params["id"])
    return {}


ROUTES = (
    route("/api/library/sources", add, "POST"),
    route("/api/library/sources", remove, "DELETE"),
    route("/api/library/sync", sync, "POST"),
    streamed("/api/library/jobs", follow),
    route("/api/library/jobs/{id}/cancel", cancel, "POST"),
)
