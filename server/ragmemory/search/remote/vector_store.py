"""What a remote index needs of a server that stores vectors and terms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections import Counter

    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.stores.engine import Condition, Connection
    from ragmemory.types.changes import Checkpoint

# Terms by which candidates are chosen, the rarest; the others hardly change the order.
MAX_TERMS = 64
# The parameters of a graph of vectors (HNSW). The vectors of questions are not distributed like those of
# passages: with ef_construction 64 and ef_search 200, pgvector finds .76 of the nearest ten among 59,000
# passages, with these values .998.
EDGES, EF_CONSTRUCTION, EF_SEARCH = 16, 400, 1000


class Held(NamedTuple):
    """What some chunks add to the statistics."""

    chunks: int
    length: float
    vector_sum: NDArray[np.float64]  # (d,)
    terms: Counter[int]  # how many of them contain each term


class StoredChunk(NamedTuple):
    """A chunk as a server holds it."""

    chunk_id: int
    document: int
    length: float  # in weighted terms
    vector: NDArray[np.float16]  # (d,)
    terms: NDArray[np.uint32]  # (t,) distinct
    frequencies: NDArray[np.float32]  # (t,) weighted


class ChangePage(NamedTuple):
    """Some changes. Those of `removed` that the server does not hold are ignored."""

    name: str
    checkpoint: Checkpoint
    chunks: Sequence[StoredChunk]
    removed: Sequence[int]
    counted: int  # chunks with higher ids are in no statistics yet, even if the server holds them
    average_length: float  # of all chunks


class SoughtTerm(NamedTuple):
    term: int
    times: int  # in the query
    holding: int  # chunks that contain it
    weight: float  # its inverse document frequency, `times` that


class Sought(NamedTuple):
    """What candidates are wanted for. `terms` begin with the rarest, and are all in some chunk."""

    name: str
    vector: NDArray[np.float32] | None  # (d,) of unit length
    terms: Sequence[SoughtTerm]
    filter: Condition | None  # on `documents`
    wanted: int  # by meaning, and as many by words
    average_length: float


# Both raise an error, which rolls the transaction back, if the lease was lost.
# Records that the index is empty.
Begin = Callable[["Connection"], Awaitable[None]]
# Records that a page was applied, and what it removed.
Commit = Callable[["Connection", Held], Awaitable[None]]


class VectorStore(Protocol):
    """Every method raises IndexUnavailable."""

    kind: str
    """Begins the name of an index."""

    async def has(self, name: str, has_passed: Callable[[Checkpoint], Awaitable[bool]]) -> bool:
        """Whether the server still holds an index of this memory, and of no later state of it."""

    async def create(self, name: str, dimensions: int, begin: Begin) -> None:
        """Create an empty index in place of all earlier ones of this memory."""

    async def apply(self, page: ChangePage, commit: Commit) -> None:
        """Add and remove chunks; what is repeated changes nothing."""

    async def is_complete(self, name: str) -> bool:
        """Whether `complete` was called."""

    async def complete(self, name: str) -> None:
        """Called when the server holds all chunks."""

    async def candidates(self, sought: Sought) -> list[int]:
        """The ids of chunks that may be among the best by meaning or by words."""

    async def aclose(self) -> None:
        """Close the connections."""
