"""Recompute the embeddings of all chunks with the configured embedder; texts and ids do not change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from anyio import from_thread, lowlevel

from ragcommon.contract.maintenance import Prepared, Reembedded
from ragmemory.embedders import Embedder
from ragmemory.errors import ReembeddingEnded
from ragmemory.ingest.bulk import context
from ragmemory.ingest.preparation import input_digest
from ragmemory.stores.reembedding import Missing, New
from ragmemory.stores.store import Store

# Called with the chunks done and the chunks in all.
OnProgress = Callable[[int, int], Awaitable[None]]

# Chunks that are read and embedded at a time: a kill loses the work on one page.
_PAGE = 250
# Reports of progress while a model is downloaded.
_STEPS = 200


async def prepare(embedder: Embedder, on_progress: OnProgress) -> Prepared:
    """Embed a word. Progress is counted in the bytes of a download. Raises EmbedderUnavailable."""
    from ragmemory.embedders.onnx_files import on_bytes

    token, told = lowlevel.current_token(), 0

    async def report(done: int, total: int) -> None:
        await on_progress(done, max(done, total))

    def tell(done: int, total: int) -> None:
        nonlocal told
        if done - told >= total / _STEPS or done >= total:
            told = done
            from_thread.run(report, done, total, token=token)

    reset = on_bytes.set(tell)
    try:
        [embedding] = await embedder.embed_documents(["word"], [""])
    finally:
        on_bytes.reset(reset)
    return Prepared(embedder.identity, len(embedding) // 2)


async def reembed(
    store: Store, embedder: Embedder, on_progress: OnProgress, *, switch: bool = True
) -> Reembedded:
    """Embed all chunks again, and switch to the new embeddings at once: see `stores.reembedding`.

    Without `switch` they are collected only, and the next call with the same embedder switches. Chunks that
    are added meanwhile are embedded as well. Raises EmbedderUnavailable, ReembeddingEnded.
    """
    identity = embedder.identity
    done = await store.reembedding.begin(identity)
    total = (await store.stats()).chunks
    computed = after = 0
    is_switched: bool | None = None
    while is_switched is None:
        if page := await store.reembedding.missing(after, _PAGE):
            if not await store.reembedding.collect(identity, await embed(embedder, page)):
                break
            after = page[-1].chunk_id
            computed += len(page)
            await on_progress(done + computed, max(done + computed, total))
        if len(page) < _PAGE:
            if not switch:
                return Reembedded(done + computed, identity, computed)
            is_switched = await store.reembedding.switch(identity, after)
    stats = await store.stats()
    if not is_switched and (stats.embedder, stats.next_embedder) != (identity, ""):
        raise ReembeddingEnded(identity)
    return Reembedded(stats.chunks, identity, computed, stats.kept_embedder, stats.kept_bytes)


async def embed(embedder: Embedder, page: list[Missing]) -> list[New]:
    """Embed stored chunks. Raises EmbedderUnavailable."""
    texts = [one.text for one in page]
    above = [context(one.title, one.heading, one.surroundings) for one in page]
    embeddings = await embedder.embed_documents(texts, above)
    inputs = [
        input_digest(embedder.identity, *pair) if embedder.is_costly else None
        for pair in zip(texts, above, strict=True)
    ]
    ids = (one.chunk_id for one in page)
    return [New(*new) for new in zip(ids, embeddings, inputs, strict=True)]
