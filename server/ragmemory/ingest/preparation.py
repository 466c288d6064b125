"""What comes before the commit: compare with the store, cut what is new into chunks, and embed them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragmemory.embedders import Embedder
from ragmemory.errors import EmbedderMismatch, RagMemoryError, TextRefused
from ragmemory.ingest.chunking import Source, split
from ragmemory.ingest.documents import is_markdown
from ragmemory.ingest.write_queue import LONG, Prepared
from ragmemory.stores.sqlite import Store
from ragmemory.stores.writing import PAGE, difference
from ragmemory.types import Built, Chunk, Embedding, Injected, Write, names

# Chunks prepared at a time, and committed in one transaction.
_BATCH = 1_000
# A text of more characters has more chunks than a batch in any case that matters.
_LONG_CHARACTERS = 1_000_000

Page = tuple[list[Chunk], list[Embedding]]


class Preparation:
    """`max_tokens` is the longest chunk, in the embedder's tokens.

    `on_page` is awaited with the number of chunks after each page of a long document that was written;
    `on_abandoned` is called when hidden chunks were left to be swept.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        max_tokens: int,
        on_page: Callable[[int], Awaitable[None]],
        on_abandoned: Callable[[], None],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._max_tokens = max_tokens
        self._on_page = on_page
        self._on_abandoned = on_abandoned
        # First in, first out: long documents take turns, page by page.
        self._turn = anyio.Lock()

    async def prepare(self, writes: Sequence[Write]) -> list[Prepared]:
        """For each: the outcome if nothing is new, the error if it failed, else what is to be written.

        None where the batch is full; LONG where a document alone is more than a batch. A document whose text
        is known needs no embedder, and does not fail with it.
        """
        known = await self._store.find([write.draft.uri for write in writes])
        outcomes: list[Prepared] = []
        fresh: list[int] = []
        for index, write in enumerate(writes):
            draft, old = write.draft, known.get(write.draft.uri)
            new = difference(draft, old)
            if new == "nothing" and old and write.undoes is None:
                outcomes.append(Injected(draft.document_id, draft.uri, "unchanged", old.chunks))
            elif new == "everything" and len(draft.text) > _LONG_CHARACTERS:
                outcomes.append(LONG)
            else:
                outcomes.append(write)
                if new == "everything":
                    fresh.append(index)
        if fresh:
            for index, outcome in zip(fresh, await self._prepare([writes[i] for i in fresh]), strict=True):
                outcomes[index] = outcome
        return outcomes

    async def build(self, write: Write) -> Write | None:
        """Write the chunks of a long document, hidden; the write that is returned makes it visible.

        None if the hidden document vanished: begin again. Raises EmbedderUnavailable, EmbedderMismatch.
        """
        await self._check_embedder()
        built = await self._store.begin(write.draft)
        try:
            async for chunks, embeddings in self._pages(write):
                added = await self._store.add(built, write.draft, chunks, embeddings, self._embedder.identity)
                if added is None:
                    return None
                built = added
                await self._on_page(len(chunks))
        except BaseException:
            await self.abandon(built)
            raise
        return replace(write, built=built)

    async def abandon(self, built: Built) -> None:
        """Give up what `build` has written, unless it is visible by now. Cannot be cancelled."""
        # If this fails, a later sweep removes it all the same.
        with anyio.move_on_after(1, shield=True), suppress(RagMemoryError):
            await self._store.abandon(built)
        self._on_abandoned()

    async def _pages(self, write: Write) -> AsyncIterator[Page]:
        """All chunks of a text, so many at a time as are written in one transaction."""
        rest = self._split([write])
        while True:
            async with self._turn:
                group = await to_thread.run_sync(next, rest, None)
            if group is None:
                return
            for start in range(0, len(group), PAGE):
                chunks = [chunk for _, chunk in group[start : start + PAGE]]
                async with self._turn:
                    embeddings = await self._embed([(write, chunk) for chunk in chunks])
                yield chunks, embeddings

    async def _prepare(self, writes: Sequence[Write]) -> Sequence[Prepared]:
        try:
            await self._check_embedder()
        except RagMemoryError as error:
            return [error] * len(writes)
        chunks: list[list[Chunk]] = [[] for _ in writes]
        groups = self._split(writes)
        count = 0
        while count < _BATCH and (group := await to_thread.run_sync(next, groups, None)):
            count += len(group)
            for number, chunk in group:
                chunks[number].append(chunk)
        outcomes: list[Prepared] = []
        total = 0
        for write, found in zip(writes, chunks, strict=True):
            total += len(found)
            is_whole = bool(found) and found[-1].end == len(write.draft.text)
            outcomes.append(replace(write, chunks=found) if is_whole and total <= _BATCH else None)
        if outcomes[0] is None:
            outcomes[0] = LONG
        whole = [write for write in outcomes if isinstance(write, Write)]
        embedded = iter(await self._with_embeddings(whole) if whole else ())
        return [next(embedded) if isinstance(one, Write) else one for one in outcomes]

    async def _with_embeddings(self, writes: Sequence[Write]) -> list[Write | Exception]:
        """A text that the embedder refuses fails alone; whatever else fails concerns all of them."""
        try:
            pairs = [(write, chunk) for write in writes for chunk in write.chunks or ()]
            embeddings = iter(await self._embed(pairs))
        except TextRefused as error:
            if len(writes) == 1:
                return [error]
            middle = len(writes) // 2
            first = await self._with_embeddings(writes[:middle])
            return first + await self._with_embeddings(writes[middle:])
        except RagMemoryError as error:
            return [error] * len(writes)
        return [replace(write, embeddings=[next(embeddings) for _ in write.chunks or ()]) for write in writes]

    async def _embed(self, chunks: Sequence[tuple[Write, Chunk]]) -> list[Embedding]:
        return await self._embedder.embed_documents(
            [write.draft.text[chunk.start : chunk.end] for write, chunk in chunks],
            [context(write.draft.title, chunk.heading) for write, chunk in chunks],
        )

    async def _check_embedder(self) -> None:
        # The commit checks it again; this saves the work, and the price of a service.
        stored = await self._store.embedder()
        if stored and stored[0] != self._embedder.identity:
            raise EmbedderMismatch(*stored, self._embedder.identity, self._embedder.dimensions)

    def _split(self, writes: Sequence[Write]) -> Iterator[list[tuple[int, Chunk]]]:
        sources = (Source(write.draft.text, is_markdown(write.draft.uri)) for write in writes)
        return split(sources, max_tokens=self._max_tokens, count=self._embedder.count_tokens)


def context(title: str, heading: str) -> str:
    """What stands above a chunk, to be embedded with it."""
    return " ".join(names(title, heading))
