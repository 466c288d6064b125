"""What comes before the commit: seeing what is new, cutting it into chunks, embedding them in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from anyio import to_thread
from msgspec.structs import replace

from ragmemory.chunking import Source, split
from ragmemory.drafts import is_markdown
from ragmemory.embedders import Embedder
from ragmemory.errors import EmbedderMismatch, RagMemoryError
from ragmemory.stores.sqlite import Store
from ragmemory.stores.writing import difference
from ragmemory.types import Chunk, Injected, Write, names

# Chunks cut and embedded at a time: most batches are one such page, a very long text is many.
_PAGE = 2_000


class Preparation:
    """`max_tokens` is the longest chunk, in the embedder's tokens."""

    def __init__(self, store: Store, embedder: Embedder, max_tokens: int) -> None:
        self._store = store
        self._embedder = embedder
        self._max_tokens = max_tokens

    async def prepare(self, writes: Sequence[Write]) -> list[Write | Injected | Exception]:
        """For each: the outcome if nothing is new, the error if it failed, else what is to be written.

        A document whose text is known needs no embedder, and does not fail with it.
        """
        known = await self._store.find([write.draft.uri for write in writes])
        outcomes: list[Write | Injected | Exception] = []
        fresh: list[int] = []
        for index, write in enumerate(writes):
            draft, old = write.draft, known.get(write.draft.uri)
            new = difference(draft, old)
            if new == "nothing" and old and write.undoes is None:
                outcomes.append(Injected(draft.document_id, draft.uri, "unchanged", old.chunks))
            else:
                outcomes.append(write)
            if new == "everything":
                fresh.append(index)
        if fresh:
            for index, outcome in zip(fresh, await self._embed([writes[i] for i in fresh]), strict=True):
                outcomes[index] = outcome
        return outcomes

    async def _embed(self, writes: Sequence[Write]) -> Sequence[Write | Exception]:
        try:
            await self._check_embedder()
            return await self._with_chunks(writes)
        except RagMemoryError as error:
            return [error] * len(writes)

    async def _with_chunks(self, writes: Sequence[Write]) -> list[Write]:
        full = [replace(write, chunks=[], embeddings=[]) for write in writes]
        rest = self._split(full)
        while page := await to_thread.run_sync(list, islice(rest, _PAGE)):
            embeddings = await self._embedder.embed_documents(
                [write.draft.text[chunk.start : chunk.end] for write, chunk in page],
                [context(write.draft.title, chunk.heading) for write, chunk in page],
            )
            for (write, chunk), embedding in zip(page, embeddings, strict=True):
                assert write.chunks is not None
                write.chunks.append(chunk)
                write.embeddings.append(embedding)
        return full

    async def _check_embedder(self) -> None:
        # The commit checks it again; this saves the work, and the price of a service.
        stored = await self._store.embedder()
        if stored and stored[0] != self._embedder.identity:
            raise EmbedderMismatch(*stored, self._embedder.identity, self._embedder.dimensions)

    def _split(self, writes: Sequence[Write]) -> Iterator[tuple[Write, Chunk]]:
        sources = (Source(write.draft.text, is_markdown(write.draft.uri)) for write in writes)
        count, max_tokens = self._embedder.count_tokens, self._max_tokens
        for source, chunk in split(sources, max_tokens=max_tokens, count=count):
            yield writes[source], chunk


def context(title: str, heading: str) -> str:
    """What stands above a chunk, to be embedded with it."""
    return " ".join(names(title, heading))
