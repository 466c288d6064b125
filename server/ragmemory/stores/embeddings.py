"""The embeddings of documents; and those, with texts, of a sample of which a map is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ragmemory.stores.chunks import SEARCHED
from ragmemory.stores.engine import StorePart, one_of
from ragmemory.types.writes import Embedding

# Title, heading, surroundings, text after its context, embedding: of one stored chunk.
Embedded = tuple[str, str, str, str, Embedding]


class Sampled(NamedTuple):
    number: int
    document_id: str
    uri: str
    title: str


class EmbeddingStore(StorePart):
    """The embeddings of one memory.

    Chunks at regular distances represent a long document: about `most`, but no fewer than half as many.
    """

    async def sample(self, limit: int) -> list[Sampled]:
        """At most `limit` documents, which are the same ones while they are in memory."""
        rows = await self._engine.read(
            "SELECT number, document_id, uri, title FROM documents WHERE hidden = 0"
            # Knuth's multiplicative hash: in random order, whatever was written together.
            " ORDER BY (number * 2654435761) % 4294967296, number LIMIT ?",
            [limit],
        )
        return [Sampled(*row) for row in rows]

    async def of_documents(self, uris: Sequence[str]) -> Sequence[Embedded]:
        """The embedded chunks of some documents."""
        condition, parameters = one_of("uri", uris)
        return await self._engine.read(
            f"SELECT {SEARCHED}, vector"
            f" FROM documents {self._engine.dialect.ordered_join} chunks ON document = number"
            " JOIN embeddings USING(chunk_id)"
            f" WHERE {condition} AND hidden = 0",
            parameters,
        )

    async def vectors(self, numbers: Sequence[int], most: int) -> list[tuple[int, bytes]]:
        """Embeddings of some documents, each with its document's number."""
        return await self._of_chunks("vector", "JOIN embeddings USING(chunk_id)", numbers, most)

    async def texts(self, numbers: Sequence[int], most: int) -> list[tuple[int, str]]:
        """Texts of some documents, each with its document's number."""
        return await self._of_chunks("text", "", numbers, most)

    async def _of_chunks(
        self, column: str, join: str, numbers: Sequence[int], most: int
    ) -> list[tuple[int, Any]]:
        among, parameters = self._engine.dialect.among("document", numbers)
        rows = await self._engine.read(
            f"SELECT document, {column} FROM chunks JOIN documents ON number = document {join}"
            f" WHERE {among} AND chunk_id % (documents.chunks / ? + 1) = 0",
            [*parameters, most],
        )
        return [(row[0], row[1]) for row in rows]
