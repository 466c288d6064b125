"""What a search returns, and what its index reads of the store."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from ragcommon.text.places import Place
from ragmemory.types.documents import Metadata
from ragmemory.types.writes import Embedding


class Hit(Struct, frozen=True):
    """One found chunk. `score` is in [0, 1] and comparable between queries."""

    rank: int  # from 1
    score: float
    chunk_id: int
    document_id: str
    uri: str
    title: str
    heading: str
    start_line: int
    end_line: int
    text: str
    metadata: Metadata
    context: str = ""  # the header of the table that `text` continues; "" if it needs none
    location: str = ""  # such as "thesis.pdf p. 12" or "notes.md:3–5"
    places: list[Place] = []  # those of its lines
    surroundings: str = ""  # the neighbours of a turn in a conversation, by which it was found as well
    written_by: str | None = None  # the program that stored the text, as the journal names it
    headings: list[Place] = []  # those inside it: first lines, and paths below `heading`
    rerank_score: float | UnsetType = UNSET  # in [0, 1]; by it hits are ordered, if there is a reranker


class QueryResult(Struct, frozen=True):
    """The outcome of one `query`."""

    hits: list[Hit]  # best first
    empty: bool  # the memory holds no documents
    notice: str = ""  # how this search differs from an ordinary one, such as "Searched by words alone. …"
    corrections: dict[str, str] = {}  # of misspelt words of the query, which was searched for corrected
    missing: list[str] = []  # the content words of the query that no hit contains
    weights: dict[str, float] = {}  # of its content words, in (0, 1], by rarity: 1 is in no chunk at all


class Comparison(Struct, frozen=True):
    """Texts compared with a query, and with single words. Numbers are in [-1, 1]."""

    similarities: list[float]  # in the order of the texts
    matches: list[list[float]] | None  # (texts, words); None if the model has no vectors of single words


class Checkpoint(Struct, frozen=True):
    """How far an index has followed the store: chunk ids and removal numbers only ever grow.

    It includes the number and time of the journal's last entry: a store without that entry, such as one that
    was restored from an older copy, was never at this checkpoint.
    """

    chunk_id: int = 0
    removal: int = 0
    entry: int = 0
    entry_at: str = ""


class Changes(Struct, frozen=True):
    """The changes between two checkpoints, for an index. The lists of chunks are parallel."""

    checkpoint: Checkpoint
    chunk_ids: list[int]
    titles: list[str]
    headings: list[str]
    texts: list[str]  # each after its context
    surroundings: list[str]
    embeddings: list[Embedding]
    removed: list[int]  # chunk ids, some of which the index may never have seen
    hidden: list[tuple[int, int]] = []  # ranges of ids, inclusive, that no search may return
