"""Repair what follows from the texts: full text, embeddings, references, the index, hidden leftovers.

A text that is damaged is left as it is: the problems name its document.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from ragcommon.contract.maintenance import Repaired
from ragmemory.embedders import Embedder
from ragmemory.errors import EmbedderMismatch, MemoryDamaged, RagMemoryError
from ragmemory.maintenance.reembedding import embed
from ragmemory.stores.engine import OnProgress
from ragmemory.stores.store import Store


async def repair(store: Store, embedder: Embedder, on_progress: OnProgress) -> Repaired:
    """Check the memory; if it is damaged, back up a file first, then repair it as far as possible.

    Raises BackupFailed; then nothing was changed.
    """

    async def ignore(*_: int) -> None:
        """The progress is that of the checks."""

    before = await store.engine.verify(on_progress)
    if before.ok:
        return Repaired(True, [])
    try:
        await store.engine.ensure_open()
    except MemoryDamaged:
        return Repaired(False, before.problems)
    copy = ""
    if store.engine.is_file:
        name = f"{store.path.name}.{datetime.now().astimezone():%Y%m%d-%H%M%S}.bak"
        copy = str(store.path.resolve().with_name(name))
        await store.engine.backup(Path(copy), force=False, on_progress=ignore)
    failures: list[str] = []
    for step in (store.repairs.references, store.repairs.fulltext):
        with suppress(MemoryDamaged):  # The last check names it.
            await step()
    try:
        await _embed_missing(store, embedder)
    except MemoryDamaged:
        pass
    except RagMemoryError as error:
        failures.append(f"Embeddings were not repaired. {error} {error.hint}".rstrip())
    with suppress(MemoryDamaged):
        while await store.hidden.sweep():
            continue
    await store.repairs.invalidate_indexes()
    after = await store.engine.verify(on_progress)
    repaired = [problem for problem in before.problems if problem not in after.problems]
    return Repaired(after.ok, [*after.problems, *failures], repaired, copy)


async def _embed_missing(store: Store, embedder: Embedder) -> None:
    """Embed the chunks whose embeddings are missing or damaged. Raises EmbedderMismatch."""
    stored = await store.embedder()
    if stored is None:
        return
    last = 0
    while True:
        last, missing = await store.repairs.without_embedding(last, stored[1])
        if missing:
            if stored[0] != embedder.identity:
                raise EmbedderMismatch(*stored, embedder.identity, embedder.dimensions)
            await store.repairs.put_embeddings(embedder.identity, await embed(embedder, missing))
        if not last:
            return
