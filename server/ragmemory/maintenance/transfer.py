"""Carry documents from one memory to another: export them in pages, and import them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import takewhile

import anyio
from anyio import to_thread
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ragcommon.contract.documents import Injected
from ragcommon.contract.errors import FATAL
from ragcommon.contract.history import Origin
from ragcommon.contract.maintenance import ExportPage, ImportOutcome, PortableDocument, PortableVersion
from ragmemory.errors import BadArgument, RagMemoryError
from ragmemory.ingest.documents import make_document
from ragmemory.ingest.preparation import by_digest
from ragmemory.limits import MAX_VERSIONS
from ragmemory.stores.journal import iso
from ragmemory.stores.store import Store
from ragmemory.stores.values import are_sound
from ragmemory.types.writes import Embedding, Write

# Write a document; returns after the commit.
Submit = Callable[[Write], Awaitable[Injected]]

# UTF-8 bytes of the texts after which a page ends; it has at least one document. Then those of the earlier
# versions of a document, of which the newest are exported.
_PAGE_BYTES = 1_000_000
_VERSIONS_BYTES = 10_000_000


async def export_page(
    store: Store, after: int = 0, *, vectors: bool = False, uris: Sequence[str] = ()
) -> ExportPage:
    """The documents after the one with this number, 0 for the first; with `uris`, only these.

    Raises MemoryDamaged.
    """
    identity, dimensions = (await store.embedder() if vectors else None) or ("", 0)
    documents: list[PortableDocument] = []
    size = 0
    next_cursor: str | UnsetType = UNSET
    while found := await store.documents.after(after, uris):
        after, uri, document = found
        size += len(document.text.encode())
        versions = await _versions(store, uri)
        if versions:
            document = replace(document, versions=versions)
            size += sum(len(version.text.encode()) for version in versions)
        if identity:
            encoded = await _vectors(store, uri, identity, dimensions)
            document = replace(document, vectors=encoded)
            size += 3 * dimensions * len(encoded)  # nearly: float16 in base64
        documents.append(document)
        if size >= _PAGE_BYTES:
            next_cursor = str(after)
            break
    return ExportPage(documents, (await store.stats()).documents, next_cursor, identity, dimensions)


async def _versions(store: Store, uri: str) -> list[PortableVersion]:
    """The earlier versions of a document since it was added, the oldest first, if their texts are kept."""
    versions: list[PortableVersion] = []
    size = 0
    # The journal keeps with each write what it has replaced.
    writes = await store.versions.newest(uri, MAX_VERSIONS)
    for write in takewhile(lambda write: write.action != "added", writes):
        for before in (await store.versions.before_writes([write.number])).values():
            size += len(before.text.encode())
            if size > _VERSIONS_BYTES:
                return versions[::-1]
            versions.append(PortableVersion(before.text, before.metadata, before.added_at, before.places))
    return versions[::-1]


async def _vectors(store: Store, uri: str, identity: str, dimensions: int) -> dict[str, str]:
    """The embeddings of a document by what was embedded, without those that were cut off on the disk."""
    embedded = await to_thread.run_sync(by_digest, identity, await store.embeddings.of_documents([uri]))
    return {
        digest.hex(): b64encode(vector).decode()
        for digest, vector in embedded.items()
        if len(vector) == 2 * dimensions  # of float16
    }


async def import_documents(
    store: Store, submit: Submit, documents: Sequence[PortableDocument], origin: Origin
) -> list[ImportOutcome]:
    """Store exported documents, with their earlier versions if memory has none of the document.

    Of documents with the same uri the last one is stored, without earlier versions. A refused document
    does not affect the others. Raises the first error that affects all; some may be stored then.
    """
    all_writes = await to_thread.run_sync(lambda: [_writes(document, origin) for document in documents])
    outcomes = [ImportOutcome("failed")] * len(documents)
    uris = Counter(writes[-1].document.uri for writes in all_writes if isinstance(writes, list))
    new = {
        index
        for index, writes in enumerate(all_writes)
        if isinstance(writes, list)
        and len(writes) > 1
        and uris[writes[0].document.uri] == 1
        and not await store.journal.current_version(writes[0].document.uri)
    }

    fatal: list[RagMemoryError] = []

    async def write(index: int, write: Write) -> None:
        try:
            done = await submit(write)
        except RagMemoryError as error:
            outcomes[index] = ImportOutcome("failed", error=str(error))
            if error.code in FATAL:
                fatal.append(error)
        else:
            outcomes[index] = ImportOutcome(done.status, done.uri)

    # Submitted together, they are embedded together; in their order, the last one of a uri counts.
    async with anyio.create_task_group() as tasks:
        for index, writes in enumerate(all_writes):
            if isinstance(writes, BadArgument):
                outcomes[index] = ImportOutcome("failed", error=str(writes))
            else:
                *earlier, newest = writes
                # In its transaction: an interrupted import leaves no earlier text as the current one.
                tasks.start_soon(write, index, replace(newest, earlier=earlier) if index in new else newest)
    if fatal:
        raise fatal[0]
    return outcomes


def _writes(portable: PortableDocument, origin: Origin) -> list[Write] | BadArgument:
    """The writes of the earlier versions, the oldest first, and that of the document."""
    earlier = [] if portable.versions is UNSET else portable.versions
    try:
        writes = [_write(one, origin) for one in (*map(_as_document, earlier), portable)]
    except BadArgument as error:
        return error
    uri = writes[-1].document.uri
    return [write for write in writes if write.document.uri == uri]


def _as_document(version: PortableVersion) -> PortableDocument:
    return PortableDocument(version.text, version.metadata, version.added_at, places=version.places)


def _write(portable: PortableDocument, origin: Origin) -> Write:
    """Raises BadArgument."""
    document = make_document(portable.text, portable.metadata)
    document = replace(document, places=portable.places, machine=portable.machine)
    added_at = _time("added_at", portable.added_at)
    updated_at = _time("updated_at", portable.updated_at)
    known = _known(portable)
    return Write(document, origin, known=known, added_at=added_at, updated_at=updated_at)


def _known(portable: PortableDocument) -> dict[bytes, Embedding]:
    """The embeddings of an exported document by the digests of what was embedded. Raises BadArgument.

    Damaged ones are left out, and computed again.
    """
    if portable.vectors is UNSET:
        return {}
    try:
        vectors = {
            bytes.fromhex(digest): b64decode(text, validate=True) for digest, text in portable.vectors.items()
        }
    except ValueError:
        raise BadArgument("vectors", "must be texts in base64 by digests in hexadecimal") from None
    return {one: vector for one, vector in vectors.items() if all(are_sound([vector], len(vector) // 2))}


def _time(name: str, text: str) -> str:
    """A time as it is stored, UTC if it names no zone; "" for "". Raises BadArgument."""
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
        return iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC))
    except (ValueError, OverflowError):
        raise BadArgument(name, "must be a time in ISO 8601") from None
