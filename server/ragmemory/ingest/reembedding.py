"""All chunks embedded anew with the embedder that is configured now; texts and ids stay as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ragmemory.embedders import Embedder
from ragmemory.ingest.preparation import context
from ragmemory.stores.sqlite import Store
from ragmemory.types import Mark, Reembedded

# Chunks done and chunks in all.
OnProgress = Callable[[int, int], Awaitable[None]]

# Chunks read and embedded at a time.
_PAGE = 1_000


async def reembed(store: Store, embedder: Embedder, on_progress: OnProgress) -> Reembedded:
    """Until the last moment everybody sees the old embeddings, also if this is interrupted.

    Chunks that are added meanwhile are embedded, too. Raises EmbedderUnavailable.
    """
    await store.begin_reembedding()
    total = (await store.stats()).chunks
    mark, done = Mark(), 0
    chunks: int | None = None
    while chunks is None:
        page = await store.changes_since(mark, _PAGE)
        if page.chunk_ids:
            titles = [context(*above) for above in zip(page.titles, page.headings, strict=True)]
            embeddings = await embedder.embed_documents(page.texts, titles)
            await store.gather(page.chunk_ids, embeddings)
            done += len(page.chunk_ids)
            await on_progress(done, max(done, total))
        mark = page.mark
        if len(page.chunk_ids) < _PAGE:
            chunks = await store.switch_embeddings(mark, embedder.identity)
    return Reembedded(chunks, embedder.identity)
