"""Recompute the embeddings of all chunks with the configured embedder; texts and ids do not change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ragmemory.embedders import Embedder
from ragmemory.ingest.preparation import context
from ragmemory.stores.sqlite import Store
from ragmemory.types import Checkpoint, Reembedded

# Called with the chunks done and the chunks in all.
OnProgress = Callable[[int, int], Awaitable[None]]

# Chunks that are read and embedded at a time.
_PAGE = 1_000


async def reembed(store: Store, embedder: Embedder, on_progress: OnProgress) -> Reembedded:
    """Replace all embeddings in one transaction at the end: readers see all old ones or all new ones.

    Chunks that are added meanwhile are embedded as well. Raises EmbedderUnavailable.
    """
    await store.begin_reembedding()
    total = (await store.stats()).chunks
    checkpoint, done = Checkpoint(), 0
    chunks: int | None = None
    while chunks is None:
        page = await store.changes_since(checkpoint, _PAGE)
        if page.chunk_ids:
            titles = [
                context(*above) for above in zip(page.titles, page.headings, page.surroundings, strict=True)
            ]
            embeddings = await embedder.embed_documents(page.texts, titles)
            await store.collect_embeddings(page.chunk_ids, embeddings)
            done += len(page.chunk_ids)
            await on_progress(done, max(done, total))
        checkpoint = page.checkpoint
        if len(page.chunk_ids) < _PAGE:
            chunks = await store.switch_embeddings(checkpoint, embedder.identity)
    return Reembedded(chunks, embedder.identity)
