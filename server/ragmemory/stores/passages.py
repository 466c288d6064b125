"""The reads of a search: the ids of allowed chunks, and the chunks of its hits."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from ragcommon.contract.documents import Passage
from ragcommon.contract.search import Hit
from ragcommon.errors import DECODE_ERRORS
from ragcommon.text.places import file_name, location
from ragmemory.errors import ChunkNotFound, MemoryDamaged
from ragmemory.stores import chunks
from ragmemory.stores.engine import Condition, StorePart
from ragmemory.stores.journal import WRITTEN_BY
from ragmemory.stores.values import decode_metadata
from ragmemory.text.analysis import plain_words, words

logger = logging.getLogger(__name__)

# Columns that are fields of a passage and of a hit.
_FIELDS = ("chunk_id", "document_id", "uri", "title", "heading", "start_line", "end_line", "text", "context")


class PassageStore(StorePart):
    """The chunks of one memory, as a search returns them."""

    async def allowed(self, filter: Condition, after: int = 0) -> list[int]:
        """The ids, ascending and above `after`, of the chunks whose documents match the filter."""
        condition, parameters = filter
        return await self._column(
            "SELECT chunk_id FROM chunks WHERE document IN"
            f" (SELECT number FROM documents WHERE hidden = 0 AND {condition})"
            " AND chunk_id > ? ORDER BY chunk_id",
            [*parameters, after],
        )

    async def documents(self, condition: Condition, limit: int) -> list[int]:
        """The numbers of at most `limit` documents that match a condition, also of hidden ones."""
        sql, parameters = condition
        return await self._column(f"SELECT number FROM documents WHERE {sql} LIMIT ?", [*parameters, limit])

    async def documents_of(self, chunk_ids: Sequence[int]) -> dict[int, int]:
        """The numbers of the documents of these chunks."""
        condition, parameters = self._engine.dialect.among("chunk_id", chunk_ids)
        sql = f"SELECT chunk_id, document FROM chunks WHERE {condition}"
        return {row[0]: row[1] for row in await self._engine.read(sql, parameters)}

    async def holding_some(self, words: Sequence[str], limit: int) -> list[int]:
        """The ids of about `limit` chunks that contain some of the words, which begin with the rarest.

        From the full text alone: those with all words, else with the rarest ones, come first.
        """
        dialect = self._engine.dialect
        together = [words[:count] for count in range(len(words), 1, -1)]
        found: dict[int, None] = {}
        for sought in (*together, *([word] for word in words)):
            rows = await self._engine.read(dialect.holding_some, [dialect.fulltext_query(sought), limit])
            found |= dict.fromkeys(row[0] for row in rows)
            if len(found) >= limit:
                break
        return list(found)

    async def holding(self, phrases: Sequence[str], prefixes: Sequence[str]) -> set[int]:
        """The ids of the chunks that contain every phrase, and a word with every prefix."""
        dialect = self._engine.dialect
        return set(
            await self._column(
                f"SELECT rowid FROM fulltext WHERE {dialect.fulltext_condition}",
                [dialect.fulltext_query(phrases, prefixes)],
            )
        )

    async def with_words(self, candidates: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """For each key the first candidate that is a word of any chunk, not only a form of its stem.

        The candidates are without accents; the result has those of the chunk.
        """
        dialect = self._engine.dialect
        chosen: dict[str, str] = {}
        for word, others in candidates.items():
            for other in others:
                rows = await self._engine.read(dialect.holding_some, [dialect.fulltext_query([other]), 1])
                if rows:
                    chosen[word] = await self._spelling(other, rows[0][0])
                    break
        return chosen

    async def _spelling(self, word: str, chunk_id: int) -> str:
        """A word as a chunk has it, in lower case with its accents."""
        with suppress(MemoryDamaged):
            for hit in await self._hits({chunk_id: 0.0}):
                text = unicodedata.normalize("NFC", f"{hit.title} {hit.heading} {hit.full_text}")
                return next((plain for plain in plain_words(text) if words(plain) == [word]), word)
        return word

    async def hits(self, scores: dict[int, float]) -> tuple[list[Hit], MemoryDamaged | None]:
        """The chunks with these ids in this order; a chunk that was removed in the meantime is left out.

        A chunk that cannot be read is left out, too, and the error is returned. It is raised if none can be.
        """
        try:
            return await self._hits(scores), None
        except MemoryDamaged as error:
            damage = error
        hits: list[Hit] = []
        for chunk_id, score in scores.items():
            with suppress(MemoryDamaged):
                hits += await self._hits({chunk_id: score})
        if not hits:
            raise damage
        logger.warning("Passages were left out of an answer. %s %s", damage, damage.hint)
        return [replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)], damage

    async def around(self, chunk_id: int, before: int = 0, after: int = 0) -> list[Passage]:
        """A chunk with its neighbours, in the order of their document. Raises ChunkNotFound."""
        rows = await self._engine.read(
            "WITH same AS (SELECT chunk_id FROM chunks"
            " WHERE document = (SELECT document FROM chunks WHERE chunk_id = ?1))"
            f" SELECT {', '.join(_FIELDS)}"
            " FROM chunks JOIN documents ON number = document WHERE hidden = 0 AND chunk_id IN ("
            " SELECT * FROM (SELECT chunk_id FROM same WHERE chunk_id <= ?1"
            " ORDER BY chunk_id DESC LIMIT ?2) AS before UNION ALL"
            " SELECT * FROM (SELECT chunk_id FROM same WHERE chunk_id > ?1"
            " ORDER BY chunk_id LIMIT ?3) AS after"
            ") ORDER BY chunk_id",
            [chunk_id, before + 1, after],
        )
        if not rows:
            raise ChunkNotFound(chunk_id)
        return [Passage(**dict(zip(_FIELDS, row, strict=True))) for row in rows]

    async def turns_around(self, chunk_ids: Sequence[int], distance: int) -> dict[int, dict[int, str]]:
        """The texts around each of these chunks that is a turn of a conversation, by chunk id, in order."""
        condition, parameters = self._engine.dialect.among("turn.chunk_id", chunk_ids)
        rows = await self._engine.read(
            "SELECT turn.chunk_id, near.chunk_id, near.text FROM chunks turn"
            " JOIN chunks near ON near.chunk_id BETWEEN turn.chunk_id - ? AND turn.chunk_id + ?"
            " AND near.document = turn.document AND near.chunk_id <> turn.chunk_id"
            f" WHERE {condition} AND turn.surroundings <> '' ORDER BY near.chunk_id",
            [distance, distance, *parameters],
        )
        turns: dict[int, dict[int, str]] = {chunk_id: {} for chunk_id in chunk_ids}
        for chunk_id, near, text in rows:
            turns[chunk_id][near] = text
        return {chunk_id: near for chunk_id, near in turns.items() if near}

    async def _hits(self, scores: dict[int, float]) -> list[Hit]:
        """The chunks that are found, in the order of the scores. Raises MemoryDamaged."""
        condition, parameters = self._engine.dialect.among("chunk_id", list(scores))
        rows = await self._engine.read(
            f"SELECT {', '.join(_FIELDS)}, surroundings, {WRITTEN_BY}, places, headings, metadata"
            " FROM chunks JOIN documents ON number = document"
            f" WHERE {condition} AND hidden = 0",
            parameters,
        )
        found = {row[0]: row for row in rows}
        ids = filter(found.get, scores)
        return [self._hit(rank, scores[one], found[one]) for rank, one in enumerate(ids, 1)]

    def _hit(self, rank: int, score: float, row: Sequence[Any]) -> Hit:
        """Raises MemoryDamaged."""
        *columns, surroundings, written_by, stored_places, stored_headings, metadata = row
        fields = dict(zip(_FIELDS, columns, strict=True))
        try:
            places = chunks.decode_places(stored_places)
            headings = chunks.decode_places(stored_headings)
        except (*DECODE_ERRORS, TypeError) as error:
            raise MemoryDamaged(self._engine.place, str(error), "the places of a chunk") from error
        name, lines = file_name(fields["uri"], fields["title"]), (fields["start_line"], fields["end_line"])
        return Hit(
            rank=rank,
            score=score,
            **fields,
            metadata=decode_metadata(metadata, self._engine.place, "the metadata of a document"),
            location=location(name, [lines], places),
            places=places,
            surroundings=surroundings,
            written_by=written_by,
            headings=headings,
        )
