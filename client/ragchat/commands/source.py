"""`ragchat source` and `ragchat sync`: folders that memory is kept in step with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ragchat.commands.inject import load_with_report
from ragchat.commands.invocation import Invocation
from ragchat.commands.removal import remove_each
from ragchat.commands.stdin import confirm
from ragchat.errors import MemoryRefused
from ragchat.formatting import counted, local
from ragchat.ingest.loading import source_uri, sync_files, without_urls
from ragchat.ingest.report import Document, InjectReport
from ragchat.ingest.uploading import forget_uploads
from ragchat.memory.history import can_restore, new_group
from ragchat.ui.render.progress import loading_bar
from ragchat.uris import references, short_uri

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragcommon.contract.files import AddedSource, RemovedSource, Source

# The command that removes documents.
REMOVE = "`ragchat memory rm`"


async def add(run: Invocation) -> int:
    """Register files and folders, and load them. Exit code 1 if a path or a file failed."""
    document: dict[str, Any] = {}
    return await load_with_report(run, partial(_add, document), REMOVE, document)


async def _add(document: dict[str, Any], run: Invocation, memory: MemoryClient, report: InjectReport) -> None:
    paths = without_urls(run.arguments.paths, report)
    added = await memory.add_sources([source_uri(path) for path in paths])
    document["sources"] = added
    for source in added:
        if source.status == "refused":
            name = short_uri(source.uri) if source.uri else '""'
            report.texts.append(Document(source.uri, None, "failed", error=f"{name} {source.reason}."))
        elif not run.console.json:
            run.console.print(_sentence(source))
    if found := [source.uri for source in added if source.status != "refused"]:
        await _sync(found, run, memory, report)


def _sentence(source: AddedSource) -> str:
    name = short_uri(source.uri)
    if source.status == "known":
        return f"{name} is a source already."
    if source.status == "covered":
        return f"{name} is in {short_uri(source.covered_by)}, which is a source already."
    if source.covers:
        return f"Added {name}, in place of {', '.join(map(short_uri, source.covers))} in it."
    return f"Added {name}."


async def sync_sources(run: Invocation) -> int:
    """Exit code 1 if a source or a file failed."""
    return await load_with_report(run, partial(_sync, run.arguments.paths), REMOVE)


async def _sync(paths: list[str], run: Invocation, memory: MemoryClient, report: InjectReport) -> None:
    with loading_bar(run.console.stderr, shown=not run.console.json) as on_progress:
        await sync_files(memory, paths, on_progress, report)


async def ls(run: Invocation) -> int:
    async with run.memory() as memory:
        sources = await memory.sources()
    rows: list[Sequence[object]] = [
        (
            short_uri(source.uri),
            source.documents,
            local(source.synced_at) if source.synced_at else "never",
            _outcome(source),
        )
        for source in sources
    ]
    header = ["source", "documents", "last sync", "outcome"]
    if any(source.machine for source in sources):
        header.append("machine")
        rows = [(*row, source.machine or "this one") for row, source in zip(rows, sources, strict=True)]
    empty = "There are no sources yet. `ragchat source add PATH` adds a folder."
    run.console.listing({"sources": sources}, header, rows, empty)
    return 0


def _outcome(source: Source) -> str:
    if source.problem:
        return f"{source.problem} (now)"
    outcome = source.outcome
    if outcome is None:
        return ""
    if outcome.error:
        return outcome.error
    counts = ", ".join(f"{number:,} {status}" for status, number in outcome.files.items())
    return "cancelled" if outcome.status == "cancelled" else counts


async def rm(run: Invocation) -> int:
    """Take paths off the list. What happens to their documents is asked, if there is a terminal."""
    async with run.memory() as memory:
        return await remove_each(
            run,
            run.arguments.paths,
            partial(_remove, run, memory, new_group()),
            kind="source",
            expected=(MemoryRefused,),
            sentence=_removed,
            hint="`ragchat memory undo` restores the documents."
            if run.arguments.forget and can_restore(run.settings)
            else "",
        )


async def _remove(run: Invocation, memory: MemoryClient, group: str, path: str) -> RemovedSource:
    forget, machine = run.arguments.forget, run.arguments.machine or ""
    if not forget and run.can_ask:
        sources = {one.uri: one for one in await memory.sources() if one.machine == machine}
        source = next((sources[uri] for uri in references(path) if uri in sources), None)
        if source and source.documents:
            documents = counted(source.documents, "document")
            forget = confirm(f"Remove its {documents} from memory, too?")
    if forget and not machine:
        await forget_uploads(memory, path, group)
    return await memory.remove_source(source_uri(path), forget=forget, group=group, machine=machine)


def _removed(source: RemovedSource) -> str:
    name, documents = short_uri(source.uri), counted(source.documents, "document")
    are, stay = ("was", "stays") if source.documents == 1 else ("were", "stay")
    outcome = f"{are} removed from" if source.forgotten else f"{stay} in"
    return f"{name} is no longer a source; its {documents} {outcome} memory."
