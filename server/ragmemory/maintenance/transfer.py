"""Carry documents from one memory to another: export them in pages, and import them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import anyio
from anyio import to_thread
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ragmemory.errors import BadArgument, RagMemoryError
from ragmemory.ingest.documents import complete, make_document
from ragmemory.ingest.preparation import by_digest
from ragmemory.stores.journal import iso
from ragmemory.stores.sqlite import Store
from ragmemory.stores.values import are_sound
from ragmemory.types.maintenance import ExportPage, ImportOutcome, PortableDocument
from ragmemory.types.writes import Embedding, Injected, Origin, Write

# Write a document; returns after the commit.
Submit = Callable[[Write], Awaitable[Injected]]

# UTF-8 bytes of the texts after which a page ends; it has at least one document.
_PAGE_BYTES = 1_000_000


async def export_page(store: Store, after: int, *, vectors: bool) -> ExportPage:
    """The documents after the one with this number, 0 for the first. Raises MemoryDamaged."""
    identity, dimensions = (await store.embedder() if vectors else None) or ("", 0)
    documents: list[PortableDocument] = []
    size = 0
    next_cursor: str | UnsetType = UNSET
    while found := await store.documents.after(after):
        after, document = found
        size += len(document.text.encode())
        if identity:
            encoded = await _vectors(store, document, identity, dimensions)
            document = replace(document, vectors=encoded)
            size += 3 * dimensions * len(encoded)  # nearly: float16 in base64
        documents.append(document)
        if size >= _PAGE_BYTES:
            next_cursor = str(after)
            break
    return ExportPage(documents, (await store.stats()).documents, next_cursor, identity, dimensions)


async def _vectors(
    store: Store, document: PortableDocument, identity: str, dimensions: int
) -> dict[str, str]:
    """The embeddings of a document by what was embedded, without those that were cut off on the disk."""
    uri = (await to_thread.run_sync(complete, document.text, document.metadata)).uri
    embedded = await to_thread.run_sync(by_digest, identity, await store.embedded([uri]))
    return {
        digest.hex(): b64encode(vector).decode()
        for digest, vector in embedded.items()
        if len(vector) == 2 * dimensions  # of float16
    }


async def import_documents(
    submit: Submit, documents: Sequence[PortableDocument], origin: Origin
) -> list[ImportOutcome]:
    """Store exported documents. A document that is refused does not keep the others out."""
    writes = await to_thread.run_sync(lambda: [_write(document, origin) for document in documents])
    outcomes = [ImportOutcome("failed")] * len(documents)

    async def store(index: int, write: Write) -> None:
        try:
            done = await submit(write)
        except RagMemoryError as error:
            outcomes[index] = ImportOutcome("failed", error=str(error))
        else:
            outcomes[index] = ImportOutcome(done.status, done.uri)

    # Submitted together, they are embedded together; in their order, the last one of a uri counts.
    async with anyio.create_task_group() as tasks:
        for index, write in enumerate(writes):
            if isinstance(write, Write):
                tasks.start_soon(store, index, write)
            else:
                outcomes[index] = ImportOutcome("failed", error=str(write))
    return outcomes


def _write(portable: PortableDocument, origin: Origin) -> Write | BadArgument:
    try:
        document = replace(make_document(portable.text, portable.metadata), places=portable.places)
        added_at = _time("added_at", portable.added_at)
        updated_at = _time("updated_at", portable.updated_at)
        known = _known(portable)
    except BadArgument as error:
        return error
    return Write(document, origin, known=known, added_at=added_at, updated_at=updated_at)


def _known(portable: PortableDocument) -> dict[bytes, Embedding]:
    """The embeddings of an exported document by the digests of what was embedded. Raises BadArgument.

    Those that are damaged, which would spoil every search, are left out: they are computed.
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
