"""Prepare documents for the commit: compare them with the store, chunk and embed new ones."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import anyio
from anyio import from_thread, to_thread
from msgspec.structs import replace

from ragcommon.contract.documents import Injected
from ragmemory.code.apart import apart
from ragmemory.embedders import Embedder
from ragmemory.embedders.local import LocalEmbedder
from ragmemory.errors import EmbedderMismatch, RagMemoryError, TextRefused
from ragmemory.ingest.blocks import Block
from ragmemory.ingest.bulk import BulkWorker, context, embedder_input, split_batch
from ragmemory.ingest.chunking import ChunkerInput, split
from ragmemory.ingest.documents import has_headings, is_bibtex, is_csv, is_prose
from ragmemory.ingest.write_queue import LONG, Prepared
from ragmemory.stores.chunks import Cut, cut_of
from ragmemory.stores.embeddings import Embedded
from ragmemory.stores.store import Store
from ragmemory.stores.writing import PAGE, REWRITTEN, StoredDocument, difference
from ragmemory.text.languages import language_of
from ragmemory.types.writes import Chunk, Document, Embedding, StagedDocument, Write

if TYPE_CHECKING:
    from ragmemory.search.indexing import Indexing

# A longer text almost certainly exceeds a batch. One with more lines may not, but splitting it would delay
# other documents by 0.1 s or more.
_LONG_CHARACTERS = 1_000_000
_MANY_LINES = 20_000

# Embeddings by the digests of what was embedded: see `input_digest`.
Known = dict[bytes, Embedding]
# Some chunks of a long document, their embeddings, and the digests of these.
ChunkPage = tuple[list[Chunk], list[Embedding], list[bytes]]


@dataclass(eq=False)
class Preparation:
    """Makes of documents what is committed."""

    _store: Store
    _embedder: Embedder
    _indexing: Indexing
    _max_tokens: int  # of a chunk; the embedder may lower it
    _on_abandoned: Callable[[], None]  # called when hidden chunks must be swept

    def __post_init__(self) -> None:
        # A FIFO lock: long documents take turns, page by page.
        self._turn = anyio.Lock()
        self.worker: BulkWorker | None = BulkWorker()
        """None: everything is prepared in this process; set before the start."""

    async def prepare(self, writes: Sequence[Write]) -> list[Prepared]:
        """For each document: its outcome if nothing is new, its error, or the write to commit.

        None if the batch is full; LONG if the document alone exceeds a batch. A document whose text is stored
        already needs no embedder, and does not fail if the embedder does.
        """
        known = await self._store.find([write.document.uri for write in writes])
        short = [write.document for write in writes if not _is_long(write.document.text)]
        outdated = await self._outdated(short, known)
        outcomes: list[Prepared] = []
        fresh: dict[int, Write] = {}
        for index, write in enumerate(writes):
            document, old = write.document, known.get(write.document.uri)
            if document.uri in outdated:
                document = replace(document, is_outdated=True)
                write = replace(write, document=document)
            new = difference(document, old)
            is_again = old is not None and _is_of_another_reader(document, old)
            if _is_long(document.text) and (is_again or new in REWRITTEN):
                outcomes.append(LONG)
            elif new == "nothing" and old and write.undoes is None:
                outcomes.append(Injected(document.document_id, document.uri, "unchanged", old.chunks))
            else:
                outcomes.append(write)
                if new in REWRITTEN:
                    fresh[index] = write
        if fresh:
            for index, outcome in zip(fresh, await self._prepare(list(fresh.values())), strict=True):
                outcomes[index] = outcome
        return outcomes

    async def build(self, write: Write) -> Write | None:
        """Store the chunks of a long document, hidden. Committing the returned write makes it visible.

        None if the hidden document has vanished: start again. Raises EmbedderUnavailable, EmbedderMismatch.
        """
        max_tokens = await self._longest_chunk()
        uri = write.document.uri
        known = await self._store.find([uri])
        async with self._turn:
            if await self._outdated([write.document], known):
                write = replace(write, document=replace(write.document, is_outdated=True))
        if difference(write.document, known.get(uri)) not in REWRITTEN:
            return write
        staged = await self._store.hidden.begin(write.document)
        try:
            async for chunks, embeddings, inputs in self._pages(write, max_tokens):
                added = await self._store.hidden.add(
                    staged, write.document, chunks, embeddings, inputs, self._embedder.identity
                )
                if added is None:
                    return None
                staged = added
                self._indexing.note_write(len(chunks))
                await self._indexing.keep_up()
                if write.on_progress:
                    done, total = chunks[-1].end, len(write.document.text)
                    await write.on_progress(done, total, f"{done:,} of {total:,} characters")
        except BaseException:
            await self.abandon(staged)
            raise
        return replace(write, staged=staged)

    async def abandon(self, staged: StagedDocument) -> None:
        """Abandon the chunks that `build` stored, unless they are visible by now. Cannot be cancelled."""
        # If this fails, a later sweep removes them.
        with anyio.move_on_after(1, shield=True), suppress(RagMemoryError):
            await self._store.hidden.abandon(staged)
        self._on_abandoned()

    async def _outdated(self, documents: Sequence[Document], known: Mapping[str, StoredDocument]) -> set[str]:
        """The uris of those with a stored text that an earlier release cut otherwise."""
        pairs = [(one, known[one.uri]) for one in documents if one.uri in known]
        again = [
            (document, old)
            for document, old in pairs
            if _is_of_another_reader(document, old) and difference(document, old) not in REWRITTEN
        ]
        if not again:
            return set()
        stored = await self._store.documents.cuts([old.number for _, old in again])
        try:
            max_tokens = await self._longest_chunk()
            cuts = await to_thread.run_sync(
                _cuts, [one for one, _ in again], max_tokens, self._embedder, from_thread.check_cancelled
            )
        except RagMemoryError:  # Reported by what splits them again.
            return {document.uri for document, _ in again}
        compared = zip(again, cuts, strict=True)
        return {document.uri for (document, old), new in compared if new != stored[old.number]}

    async def _pages(self, write: Write, max_tokens: int) -> AsyncIterator[ChunkPage]:
        """All chunks of a text, in pages that fit into one transaction."""
        count = self._embedder.count_tokens
        rest = split([_source(write.document)], max_tokens=max_tokens, count=count, blocks=_blocks)
        known = await self._known([write])
        while True:
            async with self._turn:
                group = await to_thread.run_sync(next, rest, None)
            if group is None:
                return
            for start in range(0, len(group), PAGE):
                chunks = [chunk for _, chunk in group[start : start + PAGE]]
                async with self._turn:
                    embedded = await self._embed([(write, chunk) for chunk in chunks], known)
                yield chunks, *embedded

    async def _prepare(self, writes: Sequence[Write]) -> Sequence[Prepared]:
        """A text that cannot be prepared fails on its own; an error of memory fails all writes."""
        try:
            return await self._prepare_together(writes)
        except Exception as error:
            is_of_one = isinstance(error, TextRefused) or not isinstance(error, RagMemoryError)
            if len(writes) == 1 or not is_of_one:
                return [error] * len(writes)
        middle = len(writes) // 2
        return [*await self._prepare(writes[:middle]), *await self._prepare(writes[middle:])]

    async def _prepare_together(self, writes: Sequence[Write]) -> Sequence[Prepared]:
        max_tokens = await self._longest_chunk()
        sources = [_source(write.document) for write in writes]
        outcomes = await self._in_worker(writes, sources, max_tokens)
        if outcomes is None:
            batch = await to_thread.run_sync(
                split_batch,
                *(sources, max_tokens, self._embedder.count_tokens, from_thread.check_cancelled, _blocks),
            )
            whole = [replace(write, chunks=one) for write, one in zip(writes, batch, strict=True) if one]
            embedded = iter(await self._with_embeddings(whole) if whole else ())
            outcomes = [next(embedded) if one else None for one in batch]
        if outcomes[0] is None:
            outcomes[0] = LONG
        return outcomes

    async def _in_worker(
        self, writes: Sequence[Write], sources: Sequence[ChunkerInput], max_tokens: int
    ) -> list[Prepared] | None:
        """The writes with chunks and embeddings, None for each without room; None if no worker takes them.

        Stored embeddings are not looked up: this embedder computes the same ones in less time.
        """
        worker = self.worker if isinstance(self._embedder, LocalEmbedder) else None
        # Embeddings that come with a document are kept.
        if not worker or any(write.known for write in writes) or not worker.takes(sources):
            return None
        names = [(write.document.uri, write.document.title) for write in writes]
        batch = await worker.prepare(sources, names, max_tokens, self._indexing.segment_settings)
        if batch is None:
            return None
        if batch.built:
            self._indexing.offer(batch.built)
        return [
            replace(write, chunks=one[0], embeddings=one[1]) if one else None
            for write, one in zip(writes, batch.texts, strict=True)
        ]

    async def _with_embeddings(self, writes: Sequence[Write]) -> list[Write]:
        pairs = [(write, chunk) for write in writes for chunk in write.chunks or ()]
        embeddings, inputs = map(iter, await self._embed(pairs, await self._known(writes)))
        return [
            replace(write, embeddings=list(islice(embeddings, count)), inputs=list(islice(inputs, count)))
            for write in writes
            for count in [len(write.chunks or ())]
        ]

    async def _known(self, writes: Sequence[Write]) -> Known:
        """The embeddings supplied with documents, and those of their stored versions."""
        given = {digest: vector for write in writes for digest, vector in write.known.items()}
        stored = await self._store.embedder()
        if self._embedder.is_costly or stored is None or stored[0] != self._embedder.identity:
            return given  # For a costly embedder, `_embed` looks up all stored embeddings.
        rows = await self._store.embeddings.of_documents([write.document.uri for write in writes])
        return given | await to_thread.run_sync(by_digest, stored[0], rows) if rows else given

    async def _embed(
        self, chunks: Sequence[tuple[Write, Chunk]], known: Known
    ) -> tuple[list[Embedding], list[bytes]]:
        """The embeddings of chunks, computed unless known, and their digests.

        No digests are returned if they need not be stored.
        """
        pairs = [embedder_input(write.document.text, write.document.title, chunk) for write, chunk in chunks]
        texts, above = [text for text, _ in pairs], [above for _, above in pairs]
        is_costly = self._embedder.is_costly
        if not (known or is_costly):
            return await self._embedder.embed_documents(texts, above), []
        inputs = [input_digest(self._embedder.identity, *one) for one in pairs]
        if is_costly:
            # Only for costly embedders: a digest takes 15 µs per new chunk in a memory of 300,000, against
            # 60 µs of the embedder `local`.
            known = known | await self._store.embeddings_of(inputs)
        dimensions = (await self._store.embedders()).get(self._embedder.identity, 0)
        # A service's dimensions are known after its first answer; until then those of an import are used.
        dimensions = dimensions or self._embedder.dimensions or max(map(len, known.values()), default=0) // 2
        # Ignore an embedding that was truncated on disk. A float16 has two bytes.
        found = {one: known[one] for one in inputs if len(known.get(one, b"")) == 2 * dimensions > 0}
        numbers = {one: number for number, one in enumerate(inputs) if one not in found}
        if numbers:
            fresh = await self._embedder.embed_documents(
                [texts[number] for number in numbers.values()], [above[number] for number in numbers.values()]
            )
            found |= zip(numbers, fresh, strict=True)
        return [found[one] for one in inputs], inputs if is_costly else []

    async def _longest_chunk(self) -> int:
        """In tokens. Raises EmbedderMismatch, and EmbedderUnavailable if the model cannot be loaded."""
        # The commit checks this again. Checking it here saves the embedding, which a service may charge for.
        stored = await self._store.embedders()
        if stored and self._embedder.identity not in stored:
            current = next(iter(stored.items()))
            raise EmbedderMismatch(*current, self._embedder.identity, self._embedder.dimensions)
        # The model may have to be downloaded: let the caller cancel.
        longest = await to_thread.run_sync(self._embedder.longest_text, abandon_on_cancel=True)
        return min(self._max_tokens, longest or self._max_tokens)


def _source(document: Document) -> ChunkerInput:
    return ChunkerInput(
        document.text,
        document.is_markdown,
        is_csv(document.uri) and not document.is_markdown,
        document.is_markdown or is_prose(document.uri),
        None if document.is_markdown else language_of(document.uri),
        not document.is_markdown and has_headings(document.uri),
        is_bibtex(document.uri),
    )


def _blocks(source: ChunkerInput) -> Iterable[Block]:
    """The blocks of a text, in a thread of the event loop: those of code come from a worker."""
    if not source.is_risky:
        return source.blocks()
    blocks = from_thread.run(apart, _all_blocks, source)
    return replace(source, language=None).blocks() if blocks is None else blocks


def _all_blocks(source: ChunkerInput) -> list[Block]:
    return list(source.blocks())


def _is_of_another_reader(document: Document, old: StoredDocument) -> bool:
    """Whether an earlier or later release read the file of a stored document."""
    readers = {stamp.partition(":")[0] for stamp in (document.stamp, old.stamp)}
    return "" not in readers and len(readers) > 1


def _cuts(
    documents: Sequence[Document], max_tokens: int, embedder: Embedder, check_cancelled: Callable[[], object]
) -> list[list[Cut]]:
    """How this release cuts each document."""
    cuts: list[list[Cut]] = [[] for _ in documents]
    sources, count = map(_source, documents), embedder.count_tokens
    for group in split(sources, max_tokens=max_tokens, count=count, blocks=_blocks):
        for number, chunk in group:
            cuts[number].append(cut_of(documents[number], chunk))
        check_cancelled()
    return cuts


def _is_long(text: str) -> bool:
    return len(text) > _LONG_CHARACTERS or text.count("\n") > _MANY_LINES


def by_digest(identity: str, rows: Sequence[Embedded]) -> Known:
    """Stored embeddings of this embedder by the digests of what was embedded."""
    return {input_digest(identity, text, context(*above)): vector for *above, text, vector in rows}


def input_digest(identity: str, text: str, above: str) -> bytes:
    """The digest of an embedder's input: 16 bytes. `above` is the `context` of the text."""
    embedded = f"{identity}\n{len(above)}\n{above}{text}".encode()
    return hashlib.blake2b(embedded, digest_size=16).digest()
