"""Sources: the files and folders that memory is kept in step with, and sentences about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragchat.ingest.loading import source_uri
from ragchat.ingest.report import Document, InjectReport
from ragchat.ingest.uploading import check_offered, forget_uploads
from ragchat.uris import short_uri
from ragcommon.text.rules import counted

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragcommon.contract.files import AddedSource, RemovedSource, Source


async def add_sources(
    memory: MemoryClient, paths: Sequence[str], report: InjectReport
) -> tuple[list[AddedSource], list[str]]:
    """Register files and folders; the outcomes, and the URIs to sync now. The report has them, too.

    Raises UploadsRefused if they would have to be uploaded to a server that does not take them.
    """
    if memory.mirror is not None:
        await check_offered(memory)
    report.sources = added = await memory.add_sources([source_uri(path) for path in paths])
    for source in added:
        if source.status == "refused":
            name = short_uri(source.uri) if source.uri else '""'
            report.texts.append(Document(source.uri, None, "failed", error=f"{name} {source.reason}."))
    return added, [source.uri for source in added if source.status != "refused"]


async def remove_source(
    memory: MemoryClient, path: str, group: str, *, forget: bool, machine: str = ""
) -> RemovedSource:
    """Unregister a path or URI, of this machine or of another one; with `forget`, remove its documents."""
    if forget and not machine:
        await forget_uploads(memory, path, group)
    return await memory.remove_source(source_uri(path), forget=forget, group=group, machine=machine)


def added_sentence(source: AddedSource) -> str:
    """What became of a source that was not refused."""
    name = short_uri(source.uri)
    if source.status == "known":
        return f"{name} is a source already."
    if source.status == "covered":
        return f"{name} is in {short_uri(source.covered_by)}, which is a source already."
    if source.covers:
        return f"Added {name}, in place of {', '.join(map(short_uri, source.covers))} in it."
    return f"Added {name}."


def removed_sentence(source: RemovedSource) -> str:
    name, documents = short_uri(source.uri), counted(source.documents, "document")
    are, stay = ("was", "stays") if source.documents == 1 else ("were", "stay")
    outcome = f"{are} removed from" if source.forgotten else f"{stay} in"
    return f"{name} is no longer a source; its {documents} {outcome} memory."


def last_sync(source: Source) -> str:
    """What is wrong with a source now, else the outcome of its last sync; "" before the first."""
    if source.problem:
        return f"{source.problem} (now)"
    outcome = source.outcome
    if outcome is None:
        return ""
    if outcome.error:
        return outcome.error
    counts = ", ".join(f"{number:,} {status}" for status, number in outcome.files.items())
    return "cancelled" if outcome.status == "cancelled" else counts
