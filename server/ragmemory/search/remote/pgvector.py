"""Candidates from the PostgreSQL database that keeps the memory: vectors in pgvector, terms in an array.

PostgreSQL has no BM25, and an OR of terms reads the chunks of each. So only chunks with the rarest terms, or
with several of them, are ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from ragmemory.errors import DatabaseUnavailable, IndexUnavailable, MemoryDamaged
from ragmemory.search.remote.vector_store import (
    EDGES,
    EF_CONSTRUCTION,
    EF_SEARCH,
    Begin,
    ChangePage,
    Commit,
    Held,
    Sought,
    SoughtTerm,
    StoredChunk,
)
from ragmemory.stores.postgres.connection import READ_SECONDS

if TYPE_CHECKING:
    from ragmemory.settings import RankingSettings
    from ragmemory.stores.engine import Connection
    from ragmemory.stores.postgres.database import PostgresEngine
    from ragmemory.types.changes import Checkpoint

_SEARCH = {"hnsw.ef_search": str(EF_SEARCH), "hnsw.iterative_scan": "relaxed_order"}
# The graph of ten million chunks takes five hours.
GRAPH_SECONDS = 86_400
# PostgreSQL overestimates how many chunks contain rare terms, and would read all until it has enough.
_BY_WORDS = {"enable_seqscan": "off"}
# Chunks that are ranked by their words. Each takes about 10 µs.
RANKED = 1_000
# A weighted frequency is stored as a byte, in these parts of one.
UNITS = 8
# How many of the rarest of the more frequent terms a chunk must have to be ranked.
TOGETHER = (3, 2)
_INSTALL = (
    "Install pgvector on the database server and run CREATE EXTENSION vector in the database as an"
    " administrator, or set index.url to another index."
)


class PgVector:
    """See `VectorStore`."""

    kind = "pgvector"

    def __init__(self, engine: PostgresEngine, ranking: RankingSettings) -> None:
        self._engine = engine
        self._ranking = ranking
        self._schema = ""  # where the extension is

    async def has(self, name: str, has_passed: Callable[[Checkpoint], Awaitable[bool]]) -> bool:  # noqa: ARG002
        """The table is restored together with the memory."""
        rows = await self._engine.read(
            "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'remote_chunks'"
        )
        return bool(rows)

    async def create(self, name: str, dimensions: int, begin: Begin) -> None:  # noqa: ARG002
        schema = await self._extension()
        async with self._engine.transaction(ordered=False) as connection:
            await connection.execute("DROP TABLE IF EXISTS remote_chunks")
            await connection.execute(
                "CREATE TABLE remote_chunks(chunk_id BIGINT PRIMARY KEY, document BIGINT NOT NULL,"
                f" length DOUBLE PRECISION NOT NULL, vector {schema}.halfvec({dimensions}) NOT NULL,"
                " terms INTEGER[] NOT NULL, frequencies BYTEA NOT NULL)"
            )
            await connection.execute("CREATE INDEX remote_chunks_terms ON remote_chunks USING gin(terms)")
            await connection.execute("CREATE INDEX remote_chunks_documents ON remote_chunks(document)")
            await begin(connection)

    async def apply(self, page: ChangePage, commit: Commit) -> None:
        async with self._engine.transaction(ordered=False) as connection:
            # Each once, also if a process that lost the lease sends them again.
            ids = [*page.removed, *(chunk.chunk_id for chunk in page.chunks)]
            removed = await self._delete(connection, ids)
            columns = ("chunk_id", "document", "length", "vector", "terms", "frequencies")
            await connection.insert_many("remote_chunks", columns, map(_row, page.chunks))
            await commit(connection, removed)

    async def _delete(self, connection: Connection, chunk_ids: Sequence[int]) -> Held:
        condition, parameters = connection.dialect.among("chunk_id", chunk_ids)
        schema = await self._extension()
        rows = await connection.execute_fetchall(
            f"DELETE FROM remote_chunks WHERE {condition}"
            f" RETURNING length, CAST(CAST(vector AS {schema}.vector) AS REAL[]), terms",
            parameters,
        )
        terms = Counter(number % 2**32 for row in rows for number in row[2])
        vector_sum = np.array([row[1] for row in rows] or [[0.0]]).sum(axis=0)
        return Held(len(rows), sum(row[0] for row in rows), vector_sum, terms)

    async def is_complete(self, name: str) -> bool:  # noqa: ARG002
        rows = await self._engine.read(
            "SELECT 1 FROM pg_indexes WHERE schemaname = current_schema()"
            " AND indexname = 'remote_chunks_vectors'"
        )
        return bool(rows)

    async def complete(self, name: str) -> None:  # noqa: ARG002
        # Faster for all vectors at once than one by one. Not in a `transaction`, whose end the program would
        # wait for when it stops.
        schema = await self._extension()
        async with self._engine.session({}, GRAPH_SECONDS) as connection:
            await connection.execute(
                "CREATE INDEX IF NOT EXISTS remote_chunks_vectors ON remote_chunks"
                f" USING hnsw (vector {schema}.halfvec_ip_ops)"
                f" WITH (m = {EDGES}, ef_construction = {EF_CONSTRUCTION})"
            )

    async def candidates(self, sought: Sought) -> list[int]:
        try:
            by_words = await self._by_words(sought) if sought.terms else []
            return by_words if sought.vector is None else [*by_words, *await self._by_meaning(sought)]
        except DatabaseUnavailable as error:  # For example, its table was deleted.
            raise IndexUnavailable(self.kind, error.reason) from error

    async def _by_meaning(self, sought: Sought) -> list[int]:
        schema = await self._extension()
        condition, parameters = sought.filter or ("TRUE", [])
        documents = "JOIN documents ON number = document" if sought.filter else ""
        async with self._engine.session(_SEARCH, READ_SECONDS) as connection:
            rows = await connection.execute_fetchall(
                f"SELECT chunk_id FROM remote_chunks {documents} WHERE {condition}"
                f" ORDER BY vector OPERATOR({schema}.<#>) CAST(? AS {schema}.halfvec) LIMIT ?",
                [*parameters, _text(sought.vector), sought.wanted],
            )
        return [row[0] for row in rows]

    async def _by_words(self, sought: Sought) -> list[int]:
        condition, parameters = sought.filter or ("TRUE", [])
        if sought.filter:
            condition = f"document IN (SELECT number FROM documents WHERE {condition})"
        parts, values = [], []
        for operator, terms in _alternatives(sought.terms):
            parts.append(
                "(SELECT chunk_id, length, terms, frequencies FROM remote_chunks"
                f" WHERE terms {operator} CAST(? AS INTEGER[]) AND {condition} LIMIT {RANKED})"
            )
            values += [[_signed(one.term) for one in terms], *parameters]
        k1, b = self._ranking.k1, self._ranking.b
        # Values are parameters, so that the same statement serves all queries with as many terms.
        counts = ", ".join(
            "get_byte(frequencies, array_position(terms, CAST(? AS INTEGER)) - 1)"
            f" / {UNITS}::float8 AS f{number}"
            for number in range(len(sought.terms))
        )
        score = " + ".join(
            f"coalesce(CAST(? AS float8) * f{number} / (f{number} + saturation), 0)"
            for number in range(len(sought.terms))
        )
        async with self._engine.session(_BY_WORDS, READ_SECONDS) as connection:
            rows = await connection.execute_fetchall(
                # OFFSET 0: each count is computed once.
                "SELECT chunk_id FROM (SELECT chunk_id,"
                f" length * CAST(? AS float8) + CAST(? AS float8) AS saturation, {counts}"
                f" FROM ({' UNION '.join(parts)}) AS found OFFSET 0) AS counted"
                f" ORDER BY {score} DESC, chunk_id LIMIT ?",
                [
                    *(k1 * b / max(sought.average_length, 1.0), k1 * (1 - b)),
                    *(_signed(one.term) for one in sought.terms),
                    *values,
                    *(one.weight for one in sought.terms),
                    sought.wanted,
                ],
            )
        return [row[0] for row in rows]

    async def _extension(self) -> str:
        """The schema of the extension, which is made if it may be. Raises IndexUnavailable."""
        if self._schema:
            return self._schema
        sql = (
            "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace"
            " WHERE extname = 'vector'"
        )
        rows = await self._engine.read(sql)
        if not rows:
            refusal: DatabaseUnavailable | MemoryDamaged | None = None
            try:
                async with self._engine.transaction(ordered=False) as connection:
                    await connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            except (DatabaseUnavailable, MemoryDamaged) as error:  # Or another process made it.
                refusal = error
            rows = await self._engine.read(sql)
            if not rows and refusal:
                raise IndexUnavailable(self.kind, refusal.reason, _INSTALL) from refusal
        self._schema = rows[0][0]
        return self._schema

    async def aclose(self) -> None:
        """The engine closes the connections."""


def _alternatives(terms: Sequence[SoughtTerm]) -> Iterator[tuple[str, Sequence[SoughtTerm]]]:
    """Which chunks are ranked: conditions on arrays of terms, at most RANKED chunks for each."""
    few = sum(1 for total in accumulate(one.holding for one in terms) if total <= RANKED)
    rare, common = terms[:few], terms[few:]
    if rare:
        yield "&&", rare
    for count in TOGETHER:
        if len(common) >= count:
            yield "@>", common[:count]
    if not rare:
        yield "@>", common[:1]


def _row(chunk: StoredChunk) -> tuple[Any, ...]:
    frequencies = np.clip(np.rint(chunk.frequencies * UNITS), 1, 255).astype(np.uint8)
    return (
        *(chunk.chunk_id, chunk.document, chunk.length, _text(chunk.vector)),
        *(chunk.terms.view(np.int32).tolist(), frequencies.tobytes()),
    )


def _signed(term: int) -> int:
    return term - 2**32 if term >= 2**31 else term


def _text(vector: Any) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(repr, vector.tolist()))}]"
