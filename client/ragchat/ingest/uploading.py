"""Uploading files to a memory server on another machine.

A memory of this machine, the mirror, has read the files. What it holds and the server does not is sent, and
what it no longer holds is removed there. Nothing else is remembered: after a kill, the same command finishes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from ragchat.errors import DocumentUnknown, MemoryRefused, UploadsRefused
from ragchat.ingest.report import InjectReport, OnProgress, Progress
from ragchat.memory.transfer import BATCH, BATCH_BYTES
from ragchat.uris import exact_glob, references
from ragcommon.contract.errors import FATAL
from ragcommon.contract.files import FileOutcome, Ingestion
from ragcommon.contract.maintenance import ImportOutcome, PortableDocument
from ragcommon.files.uris import is_address, path_of

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient, Mirror
    from ragcommon.contract.documents import DocumentInfo

    Documents = Mapping[str, DocumentInfo]

# The tools of the server that an upload calls.
TOOLS = frozenset({"list_documents", "import_documents", "delete_document"})
# The documents are listed place by place; for more places, those of all files and pages are.
_MAX_PLACES = 16
_ALL = ("file:*", "http*")


async def check_offered(memory: MemoryClient) -> None:
    """Raises UploadsRefused if the server lacks a tool."""
    if missing := TOOLS - {tool.name for tool in await memory.tools()}:
        raise UploadsRefused(memory.url, sorted(missing))


async def upload(
    memory: MemoryClient,
    mirror: Mirror,
    job: Ingestion,
    outcomes: Sequence[FileOutcome],
    on_progress: OnProgress | None,
    report: InjectReport,
) -> None:
    """Bring the server in step with what a job of the mirror has read, and fill the report.

    `outcomes` are those of the job. Of two texts that machines have for one document, the later one stays.
    """
    pages = {one.uri for one in outcomes if is_address(one.uri)}
    files = _places(job)
    ours, theirs = await _documents(mirror.memory, files | pages), await _documents(memory, files | pages)
    settled, changed = _compared(outcomes, ours, theirs, mirror)
    report.outcomes += settled
    report.files, report.done = job.files, job.files - len(changed)
    report.begun = report.done
    progress = Progress(len(changed), sum(ours[uri].characters for uri in changed))
    for batch in _batches(ours[uri] for uri in changed):
        report.begun += len(batch)
        for uri, done in (await _send(memory, mirror, batch, theirs, report.group)).items():
            document_id = changed[uri].document_id if done.status != "failed" else None
            outcome = replace(changed[uri], status=done.status, document_id=document_id, error=done.error)
            report.outcomes.append(outcome)
        report.done += len(batch)
        progress.done_files += len(batch)
        progress.done_bytes += sum(ours[uri].characters for uri in batch)
        if on_progress is not None:
            on_progress(progress)
    pruned = files - pages if job.prune else ()
    for outcome in _removed(outcomes, ours, theirs, pruned, mirror.machine):
        with suppress(DocumentUnknown):
            await memory.forget(outcome.uri, report.group, mirror.machine)
        report.outcomes.append(outcome)
    report.outcomes.sort(key=lambda outcome: outcome.number)


def _compared(
    outcomes: Iterable[FileOutcome], ours: Documents, theirs: Documents, mirror: Mirror
) -> tuple[list[FileOutcome], dict[str, FileOutcome]]:
    """The outcomes that are final, and by URI those of the documents to send; without what was removed."""
    settled: list[FileOutcome] = []
    changed: dict[str, FileOutcome] = {}
    for outcome in outcomes:
        own, stored = ours.get(outcome.uri), theirs.get(outcome.uri)
        if outcome.status == "removed":
            continue
        if outcome.status == "missing":
            if stored is not None and stored.machine == mirror.machine:
                settled.append(outcome)
        elif own is None or not outcome.document_id:  # The mirror did not store it.
            settled.append(outcome)
        elif stored is None or _is_changed(own, stored, mirror):
            changed[outcome.uri] = outcome
        else:
            settled.append(replace(outcome, status="unchanged", chunks=stored.chunks))
    return settled, changed


def _removed(
    outcomes: Sequence[FileOutcome], ours: Documents, theirs: Documents, places: Iterable[str], machine: str
) -> Iterator[FileOutcome]:
    """What the server has of this machine, and the job has removed from the mirror.

    In `places`, also what an interrupted sync has removed before.
    """
    removed = {one.uri: one for one in outcomes if one.status == "removed"}
    known = {one.uri for one in outcomes}
    # Not of a place of which the mirror has nothing: its disk may not be mounted, or the mirror is new.
    read = {place for place in places if any(_is_within(uri, {place}) for uri in ours)}
    for uri, stored in theirs.items():
        if uri in ours or stored.machine != machine:
            continue
        if uri in removed:
            yield removed[uri]
        elif _is_within(uri, read) and not _is_within(uri, known):
            yield FileOutcome(uri, "removed")


def _is_changed(own: DocumentInfo, stored: DocumentInfo, mirror: Mirror) -> bool:
    """Whether to replace the document of the server by our own."""
    if (own.digest, own.metadata) == (stored.digest, stored.metadata):
        return False
    return stored.machine == mirror.machine or own.updated_at > stored.updated_at


async def forget_uploads(memory: MemoryClient, source: str, group: str) -> None:
    """Remove from the server what this machine has uploaded of a source alone: a path or URI.

    The mirror still has the source then, so that an interrupted command can be repeated.
    """
    if (mirror := memory.mirror) is None:
        return
    sources = {one.uri for one in await memory.sources()}
    found = next((uri for uri in references(source) if uri in sources), None)
    if found is None:  # The mirror says so.
        return
    others = {uri for uri in sources if uri != found and not _is_within(found, {uri})}
    for uri, document in (await _documents(memory, {found})).items():
        if is_address(found) and uri != found:  # Nothing is below a page.
            continue
        if document.machine == mirror.machine and not _is_within(uri, others):
            with suppress(DocumentUnknown):
                await memory.forget(uri, group, mirror.machine)


def _places(job: Ingestion) -> set[str]:
    """The URIs of the resolved files and folders of a job."""
    places = set()
    for uri in filter(None, job.within or job.sources):  # "" is not the working folder
        if is_address(uri):  # Its document has the address after all redirects.
            continue
        with suppress(ValueError, OSError, RuntimeError):  # The walk has reported it.
            places.add(path_of(uri).resolve().as_uri())
    return places


def _is_within(uri: str, places: Collection[str]) -> bool:
    """Whether a URI is one of the places or below one."""
    parts = uri.split("/")
    return any("/".join(parts[:end]) in places for end in range(len(parts), 0, -1))


async def _documents(memory: MemoryClient, places: Collection[str]) -> Documents:
    """The documents at and below these places, by URI."""
    # The root of a disk has a slash at its end.
    places = {place.rstrip("/") for place in places}
    globs: Sequence[str] = (
        [f"{exact_glob(place)}*" for place in places] if len(places) <= _MAX_PLACES else _ALL
    )
    found: dict[str, DocumentInfo] = {}
    for glob in globs:
        page = await memory.documents(None, {"uri": glob})
        found |= {one.uri: one for one in page.documents if _is_within(one.uri, places)}
    return found


def _batches(documents: Iterable[DocumentInfo]) -> Iterator[list[str]]:
    """The URIs of documents that are sent at once."""
    batch: list[str] = []
    size = 0
    for document in documents:
        if batch and (len(batch) == BATCH or size + document.characters > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document.uri)
        size += document.characters
    if batch:
        yield batch


async def _send(
    memory: MemoryClient, mirror: Mirror, uris: Sequence[str], theirs: Documents, group: str
) -> dict[str, ImportOutcome]:
    """Send documents of the mirror; the outcomes by URI."""
    documents: dict[str, PortableDocument] = {}
    async for page in mirror.memory.export(uris=uris):
        for one in page.documents:
            uri = one.metadata["uri"]
            # The server keeps versions of its own.
            versions = UNSET if uri in theirs else one.versions
            documents[uri] = replace(one, machine=mirror.machine, versions=versions)
    outcomes = await _imported(memory, [*documents.values()], group)
    return dict(zip(documents, outcomes, strict=True))


async def _imported(
    memory: MemoryClient, documents: Sequence[PortableDocument], group: str
) -> list[ImportOutcome]:
    """Store documents on the server; one that it refuses does not affect the others."""
    try:
        return await memory.import_documents(documents, group) if documents else []
    except MemoryRefused as error:
        if error.word in FATAL:
            raise
        if len(documents) == 1:
            return [ImportOutcome("failed", error=str(error))]
    # Together they may be too large for it, or for a proxy.
    middle = len(documents) // 2
    first = await _imported(memory, documents[:middle], group)
    return first + await _imported(memory, documents[middle:], group)
