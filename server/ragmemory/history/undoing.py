"""Undo the last change (one write, or all writes of a group), or some writes.

They are undone in several transactions, newest writes first. If the process is killed, or the embedder
fails, the same undo undoes the rest.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.history import Entry, Origin, Undone
from ragcommon.text.times import moment
from ragmemory.errors import (
    BadArgument,
    MemoryDamaged,
    NotAWrite,
    NothingToUndo,
    NotUndoable,
    RagMemoryError,
    UndoConflict,
    WrittenLater,
)
from ragmemory.ingest.documents import complete
from ragmemory.ingest.writer import Writer
from ragmemory.stores.store import Store
from ragmemory.types.history import Previous, Selection
from ragmemory.types.writes import Document, Write

# Called with the writes undone and the writes in all.
OnProgress = Callable[[int, int], Awaitable[None]]

# Writes undone at a time: their removals are one transaction, for which other writers wait.
_BATCH = 64


async def undo(
    store: Store,
    writer: Writer,
    selection: Selection,
    origin: Origin,
    on_progress: OnProgress | None = None,
) -> Undone:
    """Undo the selected writes; numbers of writes that are undone already are left out.

    Raises NothingToUndo, BadArgument, NotAWrite, WrittenLater, NotUndoable, MemoryDamaged: nothing has
    changed. Raises also UndoConflict and what a write raises; then a part may be undone.
    """
    try:
        since = moment(selection.since, datetime.now(UTC)) if selection.since else None
    except ValueError as error:
        raise BadArgument("since", str(error)) from None
    if unknown := await store.journal.not_writes(selection.numbers):
        raise NotAWrite(unknown[0])
    entries, kept = await store.journal.change(selection, since)
    if kept and (selection.numbers or not entries):
        raise WrittenLater(kept)
    if not entries:
        raise NothingToUndo
    if len(entries) > 1:
        origin = replace(origin, group=origin.group or os.urandom(8).hex())  # So that they are shown as one.
    batches = list(_batches(entries))
    for batch in batches:  # All of them, before anything changes.
        await _restorations(store, batch, origin)
    done = 0
    for batch in batches:
        added: dict[str, int | None] = {entry.uri: entry.seq for entry in batch if entry.action == "added"}
        if added:
            await writer.remove(added, origin)
        await _submit_all(writer, await _restorations(store, batch, origin))
        done += len(batch)
        if on_progress:
            await on_progress(done, len(entries))
    first = {entry.uri: entry.action for entry in entries}  # of each document: the newest entry comes first
    return Undone(
        replace(entries[0], undone=True),
        Counter(entry.action for entry in entries),
        kept,
        by_document=Counter(first.values()),
    )


def _batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The entries in order, those of one document in different batches: the newer is undone first."""
    batch: dict[str, Entry] = {}
    for entry in entries:
        if len(batch) == _BATCH or entry.uri in batch:
            yield list(batch.values())
            batch = {}
        batch[entry.uri] = entry
    yield list(batch.values())


async def _restorations(store: Store, batch: Sequence[Entry], origin: Origin) -> list[Write]:
    """The writes that bring back earlier documents. Raises NotUndoable, UndoConflict, MemoryDamaged."""
    entries = [entry for entry in batch if entry.action != "added"]
    before = await store.versions.before_writes([entry.seq for entry in entries])
    for entry in entries:
        if entry.seq not in before:
            if await store.journal.is_undone(entry.seq):  # By another process, in the meantime.
                raise UndoConflict(entry.seq)
            raise NotUndoable(entry.seq, entry.action, entry.uri)
    return await to_thread.run_sync(
        lambda: [_restoration(store.path, entry, before[entry.seq], origin) for entry in entries]
    )


def _restoration(memory: Path, entry: Entry, before: Previous, origin: Origin) -> Write:
    document = document_before(memory, entry.seq, entry.uri, before)
    return Write(document, origin, undoes=entry.seq, added_at=before.added_at)


def document_before(memory: Path, seq: int, uri: str, before: Previous) -> Document:
    """The document before the write `seq`. Raises MemoryDamaged."""
    document = replace(complete(before.text, before.metadata), places=before.places)
    if document.uri != uri or before.digest not in (None, document.digest):
        place = f"entry {seq} of the journal"
        raise MemoryDamaged(str(memory), "the document before it was changed", place)
    return document


async def _submit_all(writer: Writer, writes: Sequence[Write]) -> None:
    """Write all of them at the same time; raises the first error after the last has ended."""
    errors: list[RagMemoryError] = []

    async def submit_one(write: Write) -> None:
        try:
            await writer.queue.submit(write)
        except RagMemoryError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for write in writes:
            tasks.start_soon(submit_one, write)
    if errors:
        raise errors[0]
