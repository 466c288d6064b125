"""Split, embed and index the texts of a batch, in a worker process while much is written.

In threads the interpreter's lock would let a core wait. Only for the embedder `local`: the others spend their
time elsewhere, and hold connections or large models that cannot be passed on.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import anyio

from ragcommon.text.rules import passage_names
from ragmemory.code.apart import limited
from ragmemory.embedders.local import LocalEmbedder
from ragmemory.ingest.blocks import Block
from ragmemory.ingest.chunking import Blocks, ChunkerInput, TokenCounter, split
from ragmemory.search.indexing import BuiltSegment
from ragmemory.types.changes import Changes, Checkpoint, indexed_title
from ragmemory.types.writes import Chunk, Embedding

if TYPE_CHECKING:
    from ragmemory.search.index.chunk_index import ChunkIndex
    from ragmemory.settings import RankingSettings

logger = logging.getLogger(__name__)

# A batch of this many chunks is full. It is embedded together and committed in one transaction.
BATCH = 1_000
# Texts are split in groups, and the last group may exceed the batch up to this many chunks: otherwise an
# eighth of all texts would be split twice.
MAX_BATCH = 1_250
# Characters that make starting a worker worthwhile: 0.5 s, of which the model takes 0.15. They may be those
# of several batches, if none begins later than PAUSE_SECONDS after the one before.
WORTHWHILE = 500_000
PAUSE_SECONDS = 5.0
# A batch takes 0.4 s.
DEADLINE_SECONDS = 60.0
# Passing a smaller batch to a worker takes about as long as preparing it.
FEW = 10_000
# A worker may end because of hostile source code, or because of something that ends each of them.
MAX_FAILURES = 5

# The chunks of a text and their embeddings.
Embedded = tuple[list[Chunk], list[Embedding]]
# The uri and the title of a text.
Names = tuple[str, str]


class Batch(NamedTuple):
    """What a worker makes of a batch."""

    texts: list[Embedded | None]  # None: it does not fit into the batch
    built: BuiltSegment | None


class BulkWorker:
    """Decides for each batch whether a worker prepares it. After MAX_FAILURES in a row, none does."""

    def __init__(self) -> None:
        self._tries = MAX_FAILURES if (os.cpu_count() or 1) > 1 else 0
        # The default limit is shared with parsers, which may take a minute.
        self._limiter = anyio.CapacityLimiter(1)
        self._recent = 0  # characters
        self._latest = 0.0

    def takes(self, sources: Sequence[ChunkerInput]) -> bool:
        """Note a batch; whether to give it to `prepare`."""
        characters = sum(len(source.text) for source in sources)
        now = time.monotonic()
        self._recent = characters + (self._recent if now - self._latest < PAUSE_SECONDS else 0)
        self._latest = now
        return self._tries > 0 and characters >= FEW and self._recent >= WORTHWHILE

    async def prepare(
        self,
        sources: Sequence[ChunkerInput],
        names: Sequence[Names],
        max_tokens: int,
        ranking: RankingSettings | None,
    ) -> Batch | None:
        """See `split_and_embed`; None if the worker fails, which is logged. Cancelling ends the worker."""
        from anyio import to_process

        try:
            with anyio.fail_after(DEADLINE_SECONDS):
                batch = await to_process.run_sync(
                    split_and_embed,
                    *(sources, names, max_tokens, ranking),
                    cancellable=True,
                    limiter=self._limiter,
                )
        except TimeoutError:  # The machine was asleep, or swaps.
            return None
        except Exception as error:
            logger.warning("A worker process failed; the batch is prepared without it", exc_info=error)
            self._tries -= 1
            return None
        self._tries = MAX_FAILURES
        return batch


def split_and_embed(
    sources: Sequence[ChunkerInput],
    names: Sequence[Names],
    max_tokens: int,
    ranking: RankingSettings | None,
) -> Batch:
    """The chunks and embeddings of each text, and with `ranking` their segment of the index."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The server handles Ctrl-C.
    embedder = _embedder()
    batch = split_batch(sources, max_tokens, embedder.count_tokens, blocks=_blocks)
    every = [
        (source.text, title, chunk)
        for source, (_, title), chunks in zip(sources, names, batch, strict=True)
        for chunk in chunks or ()
    ]
    texts, above = zip(*(embedder_input(*one) for one in every), strict=True) if every else ((), ())
    embeddings = embedder.embed(texts, above)
    rest = iter(embeddings)
    embedded = [None if chunks is None else (chunks, list(islice(rest, len(chunks)))) for chunks in batch]
    if not (ranking and every):
        return Batch(embedded, None)
    changes = Changes(
        checkpoint=Checkpoint(),
        chunk_ids=list(range(len(every))),
        titles=[
            title
            for name, chunks in zip(names, batch, strict=True)
            for title in [indexed_title(*name)] * len(chunks or ())
        ],
        headings=[chunk.heading for *_, chunk in every],
        texts=list(texts),
        surroundings=[chunk.surroundings for *_, chunk in every],
        embeddings=embeddings,
        removed=[],
    )
    segment = _index(embedder.dimensions, ranking).segment(0, len(every), changes)
    return Batch(embedded, BuiltSegment(changes.digest, segment))


@cache
def _embedder() -> LocalEmbedder:
    """The embedder of this worker."""
    return LocalEmbedder()


@cache
def _index(dimensions: int, ranking: RankingSettings) -> ChunkIndex:
    """What builds the segments in this worker."""
    from ragmemory.search.index.chunk_index import ChunkIndex

    return ChunkIndex(dimensions, ranking)


def split_batch(
    sources: Sequence[ChunkerInput],
    max_tokens: int,
    count: TokenCounter,
    check_cancelled: Callable[[], object] = lambda: None,
    blocks: Blocks = ChunkerInput.blocks,
) -> list[list[Chunk] | None]:
    """The chunks of each text; None if it does not fit into the batch."""
    chunks: list[list[Chunk]] = [[] for _ in sources]
    total = 0
    for group in split(sources, max_tokens=max_tokens, count=count, blocks=blocks):
        for number, chunk in group:
            chunks[number].append(chunk)
        total += len(group)
        if total >= BATCH:
            break
        check_cancelled()
    outcomes: list[list[Chunk] | None] = []
    total = 0
    for source, found in zip(sources, chunks, strict=True):
        total += len(found)
        is_whole = bool(found) and found[-1].end == len(source.text)
        outcomes.append(found if is_whole and total <= MAX_BATCH else None)
    return outcomes


def _blocks(source: ChunkerInput) -> Iterable[Block]:
    """The blocks of a text, in a worker."""
    return limited(list, source.blocks()) if source.is_risky else source.blocks()


def embedder_input(text: str, title: str, chunk: Chunk) -> tuple[str, str]:
    """What is embedded of a chunk: its text, and the context above it."""
    above = context(title, chunk.heading, chunk.surroundings)
    return chunk.context + text[chunk.start : chunk.end], above


def context(title: str, heading: str, surroundings: str) -> str:
    """The context embedded with a chunk: the title, the headings above it, and its surroundings."""
    return " ".join([*passage_names(title, heading), surroundings]).rstrip()
