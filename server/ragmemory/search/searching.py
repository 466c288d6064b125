"""One search of the memory: from the text of a query to its hits. Start here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from anyio import to_thread
from msgspec import UNSET
from msgspec.structs import replace

from ragcommon.contract.search import Comparison, Hit, QueryResult
from ragcommon.text.rules import MAX_QUERY_CHARACTERS, query_part, with_words_replaced
from ragmemory.embedders import Embedder
from ragmemory.errors import EmbedderUnavailable, MemoryDamaged, RerankerUnavailable
from ragmemory.limits import MAX_HITS, MAX_SOUGHT_PASSAGES
from ragmemory.search.index.errors import DamagedFile
from ragmemory.search.indexing import Indexing, Searcher
from ragmemory.search.queries import ParsedQuery, SearchRequest, parse
from ragmemory.search.result_text import MAX_TURNS, MORE_FACTOR, TEXT_CHARACTERS, more_turns, readable
from ragmemory.stores.code import IS_CODE
from ragmemory.stores.engine import Condition
from ragmemory.stores.filters import compile_filter
from ragmemory.stores.store import Store
from ragmemory.text.analysis import content_words, telling_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.reranking import Reranker

Outcome = TypeVar("Outcome")

# Weight of the matches of single words against the cosine. Results hardly change from .25 to .5.
MATCH_WEIGHT = 1 / 3
NO_MATCH = "No document matches the filter."
# Attempts of a query while the index loses chunks, or its hits are replaced.
_ATTEMPTS = 3
# Seconds after which the model is loaded, even without a query.
_LOAD_AFTER_SECONDS = 1.0


@dataclass(eq=False)
class Search:
    """`previous_embedder` makes the embedder with an identity, if possible: used during a reembedding."""

    _store: Store
    _embedder: Embedder
    _indexing: Indexing
    _reranker: Reranker | None
    _previous_embedder: Callable[[str], Embedder | None]
    _is_asked: anyio.Event = field(default_factory=anyio.Event, init=False)

    async def load_embedder(self) -> None:
        """Load the model at the first query, while the store is opened; without a query, after a second."""
        # A command that only lists documents has exited by then.
        with anyio.move_on_after(_LOAD_AFTER_SECONDS):
            await self._is_asked.wait()
        with suppress(Exception):  # The query that needs it raises the error.
            await to_thread.run_sync(self._embedder.warm_up, abandon_on_cancel=True)

    async def query(
        self,
        text: str,
        top_k: int,
        filter: dict[str, Any] | None = None,
        min_score: float = 0.0,
        *,
        only_code: bool = False,
    ) -> QueryResult:
        """Search everything committed before the call; with `only_code`, only source code.

        Misspelt words are corrected by those of this memory. Hits below `min_score` are left out.
        Without the embedder it searches by words alone, and the notice says so, as it does if no document
        matches the filter. Hits on damaged pages are left out. Raises BadArgument, EmbedderMismatch.
        """
        condition = self._condition(filter, only_code=only_code)
        self._is_asked.set()
        found = await self._retry_after_repair(partial(self._query, text, top_k, condition, min_score))
        if filter and not found.hits and not found.empty:
            _, matching = await self._store.documents.page(0, filter=filter)
            if not matching:
                found = replace(found, notice=f"{NO_MATCH} {found.notice}".rstrip())
        return found

    async def _query(
        self,
        text: str,
        top_k: int,
        condition: Condition | None,
        min_score: float,
        attempts: int = _ATTEMPTS,
    ) -> QueryResult:
        if not await self._indexing.bring_up_to_date():
            await self._store.documents.ensure_empty()
            return QueryResult([], empty=True)
        searched = self._state
        notices: list[str] = []
        if len(text) > MAX_QUERY_CHARACTERS:
            notices.append(f"Only the first {MAX_QUERY_CHARACTERS:,} characters of the question were used.")
        parsed = parse(text)
        # Before the corrections: `pieces` needs the loaded embedder.
        embedder = self._searching(notices)
        searcher = await self._indexing.searcher(parsed.text)
        vector = await self._embed(embedder, parsed.text, searcher, notices)
        if corrections := await self._corrections(parsed):
            parsed = parse(with_words_replaced(query_part(text), corrections))
            searcher = await self._indexing.searcher(parsed.text)
            vector = await self._embed(embedder, parsed.text, searcher, []) if vector is not None else None
        boosted: set[int] = set()
        if parsed.phrases or parsed.prefixes:
            boosted = await self._store.passages.holding(parsed.phrases, parsed.prefixes)
        wanted = max(top_k, self._reranker.settings.passages) if self._reranker else top_k
        request = SearchRequest(parsed, vector, embedder or self._embedder, condition, boosted, wanted)
        best = await searcher.search(request, notices)
        scores = {one.chunk_id: one.score for one in best if one.score >= min_score}
        hits, damage = await self._store.passages.hits(scores)
        is_whole = self._state == searched and (damage or len(hits) == len(scores))
        if not is_whole and attempts > 1:
            return await self._query(text, top_k, condition, min_score, attempts - 1)
        if scores and not hits:
            await self._store.documents.ensure_empty()
        if damage:
            notices.append(f"Some passages were left out. {damage} {damage.hint}")
        hits = (await self._rerank(parsed.text, hits, boosted, notices))[:top_k]
        words = content_words(parsed.text)
        shown = {hit.chunk_id for hit in hits}
        held = frozenset().union(*(one.words for one in best if one.chunk_id in shown))
        return QueryResult(
            hits,
            empty=False,
            notice=" ".join(notices),
            missing=[word for word in words if word not in held],
            weights=searcher.retriever.weights(words),
            corrections=corrections,
        )

    @property
    def _state(self) -> tuple[int, int]:
        """Changes when the index loses chunks, or the file of the memory is replaced."""
        return self._indexing.losses, self._store.engine.openings

    async def text_of(
        self, found: QueryResult, text: str, top_k: int, filter: dict[str, Any] | None, min_score: float
    ) -> str:
        """The text of a result for a model; a short result of conversations gets more of their turns.

        These come from a second, larger search. Raises what `query` raises.
        """
        shown = readable(found)
        known = [hit.chunk_id for hit in found.hits]
        turns: dict[int, dict[int, str]] = {}
        if len(shown) < TEXT_CHARACTERS:
            with suppress(MemoryDamaged):
                turns = await self._store.passages.turns_around(known, MAX_TURNS)
        if not turns:
            return shown
        more = await self.query(text, min(MAX_HITS, MORE_FACTOR * top_k), filter, min_score)
        further = [hit for hit in more.hits if hit.chunk_id not in known]
        return readable(found, more_turns(turns, further, TEXT_CHARACTERS - len(shown)))

    async def documents(self, text: str, limit: int) -> QueryResult:
        """The best documents, each with its best passage. Raises what `query` raises."""
        wanted = 4 * limit
        while True:
            result = await self.query(text, wanted)
            best: dict[str, Hit] = {}
            for hit in result.hits:
                best.setdefault(hit.document_id, hit)
            if len(best) >= limit or len(result.hits) < wanted or wanted >= MAX_SOUGHT_PASSAGES:
                hits = [replace(hit, rank=rank) for rank, hit in enumerate(best.values(), 1)]
                return replace(result, hits=hits[:limit])
            wanted *= 4

    async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ()) -> Comparison:
        """Compare texts with a query by meaning, and with each of some words.

        Similarities are on the scale of the local embedder's cosines. If the model has vectors of single
        words, the cosine is averaged with the match of the query's words. Raises EmbedderUnavailable.
        """
        similarities = await self._retry_after_repair(partial(self._similarities, query, texts))
        matches = await self._embedder.word_matches(words, texts) if words else None
        return Comparison(similarities, UNSET if matches is None else matches.astype(float).round(4).tolist())

    async def _similarities(self, query: str, texts: Sequence[str]) -> list[float]:
        import numpy as np

        query = query_part(query)
        searcher = await self._indexing.searcher(query)
        vector = await self._embedder.embed_query(query, searcher.retriever.word_weights)
        if vector is None or not texts:
            return [0.0] * len(texts)
        embeddings = await self._embedder.embed_documents(texts, [""] * len(texts))
        matrix = np.frombuffer(b"".join(embeddings), "<f2").reshape(len(texts), -1).astype(np.float32)
        similar = self._embedder.scale.to_local(np.vecdot(matrix, vector))
        asked = telling_words(query)
        weights = np.asarray(searcher.retriever.word_weights(asked), np.float32)
        matches = await self._embedder.word_matches(asked, texts) if weights.any() else None
        if matches is not None:
            similar = (1 - MATCH_WEIGHT) * similar + MATCH_WEIGHT * np.average(
                matches, axis=1, weights=weights
            )
        similarities: list[float] = similar.tolist()
        return similarities

    async def _retry_after_repair(self, search: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Search; on damage, repair the index and retry."""
        while True:
            try:
                return await search()
            except DamagedFile as error:
                await self._indexing.repair(error)

    def _searching(self, notices: list[str]) -> Embedder | None:
        """The embedder of the index; None if it can be searched by words alone."""
        identity = self._indexing.identity
        if identity == self._embedder.identity:
            return self._embedder
        embedder = self._previous_embedder(identity)
        how = f"with {identity}" if embedder else "by words alone"
        notices.append(
            f"Searched {how}, because the memory is not yet embedded with {self._embedder.identity}."
            " `ragchat memory reembed` completes that."
        )
        return embedder

    async def _corrections(self, query: ParsedQuery) -> dict[str, str]:
        """Unknown words of a query, and the similar words of memory that replace them."""
        similar = await self._indexing.corrections(content_words(query.text), self._embedder.pieces)
        return await self._store.passages.with_words(similar) if similar else {}

    async def _embed(
        self, embedder: Embedder | None, text: str, searcher: Searcher, notices: list[str]
    ) -> NDArray[np.float32] | None:
        if embedder is None:
            return None
        try:
            return await embedder.embed_query(text, searcher.retriever.word_weights)
        except EmbedderUnavailable as error:
            notices.append(f"Searched by words alone. {error} {error.hint}")
            return None

    async def _rerank(self, query: str, hits: list[Hit], first: set[int], notices: list[str]) -> list[Hit]:
        if self._reranker is None or len(hits) < 2:
            return hits
        try:
            return await self._reranker.rerank(query, hits, first)
        except RerankerUnavailable as error:
            notices.append(f"In the order of the search. {error} {error.hint}".rstrip())
            return hits

    def _condition(self, filter: dict[str, Any] | None, *, only_code: bool) -> Condition | None:
        """Raises BadArgument."""
        if not filter and not only_code:
            return None
        sql, parameters = compile_filter(filter or {}, self._store.engine.dialect)
        return (f"{sql} AND {IS_CODE[0]}", [*parameters, *IS_CODE[1]]) if only_code else (sql, parameters)
