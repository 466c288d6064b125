"""What the memory needs of an index: `sync` keeps one in this process, `remote` one on a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ragmemory.errors import EmbedderMismatch

if TYPE_CHECKING:
    from ragmemory.search.index.errors import DamagedFile
    from ragmemory.search.index.segments import Segment
    from ragmemory.search.queries import SearchRequest
    from ragmemory.search.ranking import Scored
    from ragmemory.search.retriever import Retriever
    from ragmemory.settings import RankingSettings
    from ragmemory.stores.store import Store
    from ragmemory.types.changes import Changes


class BuiltSegment(NamedTuple):
    """The segment of chunks that have no ids yet, and the digest of what it was built from."""

    digest: bytes
    segment: Segment

    def segment_of(self, changes: Changes) -> Segment | None:
        """The segment, if it was built from the same chunks."""
        is_same = len(self.segment) == len(changes.chunk_ids) and changes.digest == self.digest
        return self.segment if is_same else None


class Searcher(Protocol):
    """The index for one query."""

    @property
    def retriever(self) -> Retriever:
        """Weighs the words of the query."""

    async def search(self, request: SearchRequest, notices: list[str]) -> list[Scored]:
        """Search the index as it is now; see `Retriever.search`.

        `notices` gets what the user should know about the result. Raises DamagedFile: call `repair`, then
        search again.
        """


class Indexing(Protocol):
    """Follows the store. Every method may raise what a store raises."""

    losses: int
    """Number of times that the index lost chunks: a search misses them until it is up to date again."""

    identity: str
    """Of the embedder whose embeddings the index holds: during a reembedding not the configured one."""

    def check(self) -> None:
        """Raises NotAnIndex if the index cannot be where it belongs."""

    def note_write(self, chunks: int = 0) -> None:
        """Note a commit, which `follow` will read."""

    @property
    def segment_settings(self) -> RankingSettings | None:
        """The settings to build the segment of a batch with, before it is committed; None: not worthwhile."""

    def offer(self, built: BuiltSegment) -> None:
        """Take the segment of a batch that is about to be committed."""

    def note_change(self) -> None:
        """Note that there may be commits of other processes, which `follow` will read."""

    async def keep_up(self) -> None:
        """Return when the index does not lag far behind the writes of this process."""

    async def follow(self, idle: Callable[[], Awaitable[None]]) -> None:
        """Apply writes to the index, until cancelled. `idle` returns when no writes are in progress."""

    async def maintain(self) -> None:
        """Keep the index in good order, until cancelled."""

    async def bring_up_to_date(self) -> bool:
        """Make what was committed until now searchable; False if the memory is empty.

        Raises EmbedderMismatch.
        """

    async def corrections(self, words: list[str], pieces: Callable[[str], int]) -> dict[str, list[str]]:
        """Corrections of misspelt words; see `Retriever.corrections`. Raises DamagedFile."""

    async def searcher(self, text: str) -> Searcher:
        """What searches for this text. Raises DamagedFile."""

    async def repair(self, error: DamagedFile) -> None:
        """Rebuild from the store what a damaged file held."""

    def stop(self) -> None:
        """Stop long work. Call it before the tasks are cancelled."""

    async def close(self) -> None:
        """Apply the last writes if that is quick, and save what is not saved yet."""


async def source_of(store: Store, configured: str) -> tuple[str, tuple[str, int] | None]:
    """The fingerprint of a store, and the identity and the dimensions of its embeddings; None without any.

    Raises EmbedderMismatch if the configured embedder is neither theirs nor that of a reembedding.
    """
    fingerprint, embedders = await store.changes.source()
    current = next(iter(embedders.items()), None)
    if current and configured not in embedders:
        raise EmbedderMismatch(*current, configured)
    return fingerprint, current
