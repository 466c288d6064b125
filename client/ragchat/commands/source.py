"""`ragchat source` and `ragchat sync`: folders that memory is kept in step with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ragchat.commands.inject import load_with_report
from ragchat.commands.invocation import Invocation
from ragchat.commands.removal import remove_each
from ragchat.commands.stdin import confirm
from ragchat.errors import MemoryRefused
from ragchat.formatting import local
from ragchat.ingest.loading import sync_files
from ragchat.ingest.report import InjectReport
from ragchat.ingest.sources import add_sources, added_sentence, last_sync, remove_source, removed_sentence
from ragchat.memory.history import can_restore, new_group
from ragchat.ui.render.progress import loading_bar
from ragchat.uris import references, short_uri
from ragcommon.text.rules import counted

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragcommon.contract.files import RemovedSource

# The command that removes documents.
REMOVE = "`ragchat memory rm`"


async def add(run: Invocation) -> int:
    """Register files and folders, and load them. Exit code 1 if a path or a file failed."""
    return await load_with_report(run, _add, REMOVE)


async def _add(run: Invocation, memory: MemoryClient, report: InjectReport) -> None:
    added, found = await add_sources(memory, run.arguments.paths, report)
    for source in added:
        if source.status != "refused" and not run.console.json:
            run.console.print(added_sentence(source))
    if found:
        await _sync(found, run, memory, report)


async def sync_sources(run: Invocation) -> int:
    """Exit code 1 if a source or a file failed."""
    return await load_with_report(run, partial(_sync, run.arguments.paths), REMOVE)


async def _sync(paths: list[str], run: Invocation, memory: MemoryClient, report: InjectReport) -> None:
    with loading_bar(run.console.stderr, shown=not run.console.json) as on_progress:
        await sync_files(memory, paths, on_progress, report)


async def ls(run: Invocation) -> None:
    async with run.memory() as memory:
        sources = await memory.sources()
    rows: list[Sequence[object]] = [
        (
            short_uri(source.uri),
            source.documents,
            local(source.synced_at) if source.synced_at else "never",
            last_sync(source),
        )
        for source in sources
    ]
    header = ["source", "documents", "last sync", "outcome"]
    if any(source.machine for source in sources):
        header.append("machine")
        rows = [(*row, source.machine or "this one") for row, source in zip(rows, sources, strict=True)]
    empty = "There are no sources yet. `ragchat source add PATH` adds a folder."
    run.console.listing({"sources": sources}, header, rows, empty)


async def rm(run: Invocation) -> int:
    """Take paths off the list. What happens to their documents is asked, if there is a terminal."""
    async with run.memory() as memory:
        return await remove_each(
            run,
            run.arguments.paths,
            partial(_remove, run, memory, new_group()),
            kind="source",
            expected=(MemoryRefused,),
            sentence=removed_sentence,
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
    return await remove_source(memory, path, group, forget=forget, machine=machine)
