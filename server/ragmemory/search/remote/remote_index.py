"""Searches a remote index, and what is newer than it: the tail, a small index in this process.

A query asks the server for candidates, reads their texts from the store, and scores them together with the
tail. So what was committed before a query is found, however far the server is behind.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import numpy as np
from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.search import INDEX_IN_PROGRESS
from ragmemory.errors import IndexUnavailable, RagMemoryError
from ragmemory.search.index.bm25 import inverse_frequency
from ragmemory.search.index.candidates import CandidateIndex, Collection, term_ids, terms_of_query
from ragmemory.search.index.chunk_index import ChunkIndex, Removed
from ragmemory.search.indexing import BuiltSegment, source_of
from ragmemory.search.remote.updating import LeaseLost, RemoteUpdater, name_of
from ragmemory.search.remote.vector_store import MAX_TERMS, Sought, SoughtTerm, VectorStore
from ragmemory.search.retriever import Retriever
from ragmemory.search.spelling import edits, is_correctable
from ragmemory.stores import leases
from ragmemory.stores.remote import RemoteState, RemoteStore
from ragmemory.text.analysis import content_words, query_terms, stemmer
from ragmemory.types.changes import Checkpoint

if TYPE_CHECKING:
    from ragmemory.search.index.errors import DamagedFile
    from ragmemory.search.index.segments import Segment
    from ragmemory.search.queries import SearchRequest
    from ragmemory.search.ranking import Scored
    from ragmemory.settings import RankingSettings
    from ragmemory.stores.store import Store

logger = logging.getLogger(__name__)

# Chunks read from the store at a time.
_PAGE = 2_000
# The longest tail, 20 MB. Of what is older and not on the server yet, only words are found.
MAX_TAIL = 16_000
# Chunks by which the server may lag before a large write waits for it.
_MAX_BEHIND = 8_000
# Seconds between looks for what other processes wrote, or for a lease that has ended.
_FOLLOW_SECONDS = 1.0
# Seconds after a failure during which queries do not ask the server.
_DOWN_SECONDS = 5.0
# The server is asked for this many times the candidates that are ranked: it is approximate.
_MORE = 1.5
# Unknown words of a query that are corrected; each asks for the frequencies of up to 500 other words.
_CORRECTED = 8
# Without the server, the full text of the store is searched for this many words of a query, the rarest. Each
# takes about two statements.
_SOUGHT_WORDS = 8
# Equals no version of a store.
_UNKNOWN = (0, 0)


class RemoteIndex:
    """See `Indexing`. `identity` is that of the configured embedder."""

    def __init__(
        self, store: Store, identity: str, vectors: VectorStore, ranking: RankingSettings, *, read_only: bool
    ) -> None:
        self.store = store
        self.remote = RemoteStore(store.engine)
        self.vectors = vectors
        self.ranking = ranking
        self._configured = identity
        self.identity = identity
        self._read_only = read_only
        self.losses = 0
        self.lock = anyio.Lock(fast_acquire=True)
        self.tail: ChunkIndex | None = None
        self.name = ""
        self.is_filtered = False
        """Whether some chunks must not be found although they are stored."""
        self._is_empty = True
        self._fingerprint = ""
        self.version = _UNKNOWN
        self._updater = RemoteUpdater(store, vectors, ranking)
        self._has_written = False
        self._stalled_at = -1  # the checkpoint of a server that did not come closer
        self._down: IndexUnavailable | None = None
        self._down_until = 0.0
        self._warned = ""

    def check(self) -> None:
        """Nothing is kept on this machine."""

    def stop(self) -> None:
        """Every step is short."""

    async def repair(self, error: DamagedFile) -> None:
        """There are no files."""
        raise error

    # Follow the store

    def note_write(self, chunks: int = 0) -> None:  # noqa: ARG002
        self._has_written = True

    @property
    def segment_settings(self) -> None:
        """The tail is short."""

    def offer(self, built: BuiltSegment) -> None:
        """None is built."""

    def note_change(self) -> None:
        """`follow` looks by itself."""

    async def keep_up(self) -> None:
        """Return also if the server does not come closer: it may be away."""
        before = -1
        while name := self._updater.name:
            state, _ = await self.remote.state(name)
            done = state.checkpoint.chunk_id if state else 0
            is_close = await self.store.changes.last_chunk_id() - done <= _MAX_BEHIND
            if done == before:
                self._stalled_at = done
            if is_close or done == self._stalled_at:
                return
            before = done
            await anyio.sleep(2 * _FOLLOW_SECONDS)

    async def follow(self, idle: Callable[[], Awaitable[None]]) -> None:  # noqa: ARG002
        if self._read_only:
            await anyio.sleep_forever()
        while True:
            await anyio.sleep(_FOLLOW_SECONDS)
            if self.store.engine.openings:  # Do not open a memory that nothing uses.
                await self._catch_up()

    async def _catch_up(self) -> None:
        try:
            while await self._updater.step():
                pass
            self._warned = ""
        except LeaseLost:
            logger.info("Another process updates the remote index by now.")
        except Exception as error:  # Searches go on without the server.
            if self._warned != str(error):  # Log it once, not at every attempt.
                ours = isinstance(error, RagMemoryError)
                logger.warning("The remote index could not be updated: %s", error, exc_info=not ours)
            self._warned = str(error)

    async def maintain(self) -> None:
        """Renew the lease, also while the server takes long."""
        while True:
            await anyio.sleep(leases.SECONDS / 4)
            with suppress(RagMemoryError):  # The updater meets the same error.
                if self._updater.leads:
                    await self._updater.renew_lease()

    async def close(self) -> None:
        try:
            with anyio.move_on_after(_FOLLOW_SECONDS):
                if self._has_written and not self._read_only:
                    await self._catch_up()
            with anyio.move_on_after(_FOLLOW_SECONDS), suppress(RagMemoryError):
                if self._updater.leads:
                    await self._updater.release_lease()
        finally:
            await self.vectors.aclose()

    async def bring_up_to_date(self) -> bool:
        """Read the tail; what the server holds is not waited for."""
        async with self.lock:
            version = await self.store.engine.version()
            if version != self.version:
                await self._read_tail()
                self._is_empty = self.tail is None or not await self.store.documents.have_chunks()
                self.version = version
            return not self._is_empty

    async def _read_tail(self) -> None:
        changes = self.store.changes
        fingerprint, embedder = await source_of(self.store, self._configured)
        if embedder is None:
            self.tail = None
            return
        identity, dimensions = embedder
        self.name = name_of(self.vectors.kind, fingerprint, self.ranking)
        state, _ = await self.remote.state(self.name)
        done = state.checkpoint if state else Checkpoint()
        last = await changes.last_chunk_id()
        tail = self.tail
        if (
            tail is None
            or fingerprint != self._fingerprint
            or not await changes.has_passed(tail.checkpoint)
            or (done.chunk_id < start_of(tail) and last - done.chunk_id <= MAX_TAIL)
        ):
            tail = ChunkIndex(dimensions, self.ranking)
            self.losses += 1
        start = max(done.chunk_id, start_of(tail))
        if last - start > MAX_TAIL:
            start = last - MAX_TAIL // 2
        tail.adopt(replace(done, chunk_id=start), [], Removed.none())
        is_whole = False
        while not is_whole:
            # All removals since the state of the server, every time: they exclude its candidates as well.
            page = await changes.since(replace(tail.checkpoint, removal=done.removal), _PAGE)
            if page.fingerprint != fingerprint:
                await self._read_tail()
                return
            await to_thread.run_sync(tail.apply, page)
            is_whole = len(page.chunk_ids) < _PAGE
        self.tail, self._fingerprint, self.identity = tail, fingerprint, identity
        self.is_filtered = bool(page.hidden)

    # Search

    async def searcher(self, text: str) -> RemoteSearcher:
        return await self.search_with(terms_of_query(text))

    async def corrections(self, words: list[str], pieces: Callable[[str], int]) -> dict[str, list[str]]:
        doubtful = [word for word in words if is_correctable(word, pieces)]
        if not doubtful:
            return {}
        stems = dict(zip(doubtful, stemmer().stemWords(doubtful), strict=True))
        known = (await self.search_with(list(stems.values()))).collection.frequencies
        unknown = [word for word in doubtful if not known.get(stems[word])][:_CORRECTED]
        if not unknown:
            return {}
        others = stemmer().stemWords([other for word in unknown for other in edits(word)])
        retriever = (await self.search_with([*others, *(stems[word] for word in unknown)])).retriever
        return retriever.corrections(unknown, pieces)

    async def search_with(self, terms: Sequence[str]) -> RemoteSearcher:
        """A search with the frequencies of these terms."""
        ids = term_ids(terms)
        while True:
            state, counts = await self.remote.state(self.name, ids)
            state = state or RemoteState(self.name)
            done, tail = state.checkpoint.chunk_id, self.tail
            if tail is not None and done < start_of(tail) <= tail.checkpoint.chunk_id <= done + MAX_TAIL:
                # The index on the server was made again, and the tail can close the gap.
                self.version = _UNKNOWN
                await self.bring_up_to_date()
                continue
            async with self.lock:
                if tail is not None and tail is self.tail and done > start_of(tail):
                    tail.adopt(state.checkpoint, [], Removed.none())
                frequencies = {term: counts.get(number, 0) for term, number in zip(terms, ids, strict=True)}
                return RemoteSearcher(self, state, tail, frequencies)

    async def candidates(self, sought: Sought) -> list[int]:
        """Candidates of the server. Raises IndexUnavailable, after a failure at once."""
        if self._down is not None and anyio.current_time() < self._down_until:
            raise self._down
        try:
            found = await self.vectors.candidates(sought)
        except IndexUnavailable as error:
            self._down, self._down_until = error, anyio.current_time() + _DOWN_SECONDS
            raise
        self._down = None
        return found


def start_of(tail: ChunkIndex) -> int:
    """The tail holds the chunks with ids above this one."""
    return tail.segments[0].after if tail.segments else tail.checkpoint.chunk_id


class RemoteSearcher:
    """One query; see `Searcher`. `frequencies` are those of the server."""

    def __init__(
        self, index: RemoteIndex, state: RemoteState, tail: ChunkIndex | None, frequencies: dict[str, int]
    ) -> None:
        if tail is None:
            tail = ChunkIndex(0, index.ranking)
        self._index = index
        self._state = state
        self._tail = tail
        # They are never changed, only replaced.
        self._segments, rows, newer = tail.segments, tail.rows, tail.bm25
        self._after = start_of(tail)
        self._excluded = np.empty(0, np.int64)
        if len(rows.excluded):
            self._excluded = rows.take(rows.excluded, lambda segment: segment.chunk_ids)
        vector_sum = np.frombuffer(state.vector_sum) if state.vector_sum else np.zeros(tail.dimensions)
        chunks = state.chunks + newer.texts
        counted = zip(frequencies.items(), newer.count_many(list(frequencies)), strict=True)
        self.collection = Collection(
            chunks,
            state.length + newer.length,
            vector_sum + tail.vectors.total if len(rows) else vector_sum,
            {term: min(chunks, count + more) for (term, count), more in counted},
        )
        self.retriever = Retriever(self._searched(()))

    def _searched(self, candidates: Sequence[Segment]) -> CandidateIndex:
        segments = [*candidates, *self._segments]
        return CandidateIndex(segments, self._excluded, self._index.ranking, self.collection)

    async def search(self, request: SearchRequest, notices: list[str]) -> list[Scored]:
        index, store, filter = self._index, self._index.store, request.filter
        request = request.for_index(index.identity, self._tail.dimensions)
        found = await self._candidates(request, notices)
        ids = {one for one in found if one <= self._after}
        ids.update(sorted(one for one in request.boosted if one <= self._after)[: index.ranking.candidates])
        chunks = await store.changes.of(sorted(ids), filter, self._tail.dimensions)
        if len(chunks.chunk_ids) < len(ids) and await store.engine.version() != index.version:
            index.losses += 1  # A document may have been replaced meanwhile: the query is repeated.
        allowed = None
        if filter:
            newer = await store.passages.allowed(filter, self._after) if self._segments else []
            allowed = np.array([*chunks.chunk_ids, *newer], np.int64)

        def search() -> list[Scored]:
            searched = self._searched([self._tail.segment(0, self._after, chunks)])
            return Retriever(searched).search(request, allowed)

        async with index.lock:  # The tail knows the words of earlier candidates.
            return await to_thread.run_sync(search)

    async def _candidates(self, request: SearchRequest, notices: list[str]) -> list[int]:
        index, filter, found = self._index, request.filter, list[int]()
        wanted = round(_MORE * index.ranking.candidates)
        try:
            if self._state.chunks:
                if index.is_filtered or filter:
                    condition, parameters = filter or ("TRUE", [])
                    filter = (f"hidden = 0 AND {condition}", parameters)
                sought = Sought(
                    name=self._state.name,
                    vector=request.vector,
                    terms=self._sought_terms(request.query.text),
                    filter=filter,
                    wanted=wanted,
                    average_length=self._state.length / self._state.chunks,
                )
                found = await index.candidates(sought)
            gap = self._after - self._state.checkpoint.chunk_id
            if gap <= 0:
                return found
            notices.append(f"{gap:,}".join(INDEX_IN_PROGRESS))
        except IndexUnavailable as error:
            notices.append(f"Searched by some of the words alone. {error} {error.hint}")
        words = content_words(request.query.text)
        weights = dict(zip(words, self.retriever.word_weights(words), strict=True))
        rarest = sorted(words, key=weights.__getitem__)[::-1]
        return found + await index.store.passages.holding_some(rarest[:_SOUGHT_WORDS], wanted)

    def _sought_terms(self, text: str) -> list[SoughtTerm]:
        counted = Counter(query_terms(text))
        holding = self.collection.frequencies
        terms = sorted((term for term in counted if holding.get(term)), key=holding.__getitem__)[:MAX_TERMS]
        return [
            SoughtTerm(
                number,
                counted[term],
                holding[term],
                counted[term] * inverse_frequency(holding[term], self.collection.chunks),
            )
            for term, number in zip(terms, term_ids(terms), strict=True)
        ]
