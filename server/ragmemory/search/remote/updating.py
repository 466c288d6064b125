"""Sends the changes of the store to a vector store, from the one process that holds the lease."""

from __future__ import annotations

import secrets
from collections import Counter
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio
import numpy as np
from anyio import to_thread

from ragmemory.search.index.candidates import term_bits
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.index.postings import frequencies_of, rows_of
from ragmemory.search.remote.vector_store import ChangePage, Held, StoredChunk, VectorStore
from ragmemory.stores import leases, remote
from ragmemory.stores.remote import RemoteState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragmemory.settings import RankingSettings
    from ragmemory.stores.engine import Connection
    from ragmemory.stores.store import Store
    from ragmemory.types.changes import Changes, Checkpoint

# Chunks sent at a time.
PAGE = 1_000
# Version of the stored form; a new one rebuilds every remote index.
FORMAT = 3
_LEASE = "remote index"


class LeaseLost(Exception):
    """Another process updates the index by now. Nothing was committed."""


def name_of(kind: str, fingerprint: str, ranking: RankingSettings) -> str:
    """Names the index of a memory: by the memory's id, and by all that its content is derived from."""
    store_id = fingerprint.rpartition("store_id=")[2].split(" ")[0]
    parts = (FORMAT, fingerprint, ranking.title_weight, ranking.surroundings_weight)
    return f"{kind}_{store_id}_{sha256(repr(parts).encode()).hexdigest()[:16]}"


class RemoteUpdater:
    """Call `step` until it returns False, then again when the store may have changed."""

    def __init__(self, store: Store, vectors: VectorStore, ranking: RankingSettings) -> None:
        self._store = store
        self._remote = remote.RemoteStore(store.engine)
        self._leases = leases.LeaseStore(store.engine)
        self._vectors = vectors
        self._ranking = ranking
        self._holder = secrets.token_hex(8)
        self._step = anyio.Lock()
        self.leads = False
        self.name = ""
        """Of the index that was last updated."""

    async def step(self) -> bool:
        """Send one page of changes; False if there are none, or another process sends them.

        Raises IndexUnavailable, LeaseLost.
        """
        async with self._step:
            try:
                return await self._send_page()
            except Exception:
                self.leads = False  # The lease lapses, if it was not lost already.
                raise

    async def _send_page(self) -> bool:
        store = self._store
        fingerprint, embedders = await store.changes.source()
        if not embedders:
            return False
        dimensions = next(iter(embedders.values()))
        name = name_of(self._vectors.kind, fingerprint, self._ranking)
        self.name = name
        # First without the lease: every write to an SQLite file changes its version.
        if not (self.leads or await self._is_behind(name)) or not await self.lead():
            return False
        state, _ = await self._remote.state(name)
        if state is None or not await self._vectors.has(name, store.changes.has_passed):
            state = RemoteState(name)
            await self._vectors.create(name, dimensions, partial(self._begin, name))
        changes = await store.changes.since(state.checkpoint, PAGE)
        if not changes.chunk_ids and not changes.removed:
            await self._vectors.complete(name)
            await self.release_lease()
            return False
        documents = await store.passages.documents_of(changes.chunk_ids)
        chunks, added = await to_thread.run_sync(self._analysed, changes, documents, dimensions)
        average = (state.length + added.length) / max(1, state.chunks + added.chunks)
        page = ChangePage(
            name=name,
            checkpoint=changes.checkpoint,
            chunks=chunks,
            removed=changes.removed,
            counted=state.checkpoint.chunk_id,
            average_length=average,
        )
        await self._vectors.apply(page, partial(self._commit, state, added, changes.checkpoint))
        return True

    async def _is_behind(self, name: str) -> bool:
        """Whether the server lacks anything. Raises IndexUnavailable."""
        changes = self._store.changes
        state, _ = await self._remote.state(name)
        if not await self._vectors.has(name, changes.has_passed) or state is None:
            return True
        newer = await changes.since(state.checkpoint, 1)
        return bool(newer.chunk_ids or newer.removed) or not await self._vectors.is_complete(name)

    async def _begin(self, name: str, connection: Connection) -> None:
        """Record that the server has an empty index. Raises LeaseLost."""
        await self._keep_lease(connection)
        await remote.clear(connection, name)

    async def _commit(
        self, state: RemoteState, added: Held, checkpoint: Checkpoint, connection: Connection, removed: Held
    ) -> None:
        """Record that the server is at a checkpoint, and what it holds now. Raises LeaseLost."""
        await self._keep_lease(connection)
        vector_sum = added.vector_sum - removed.vector_sum
        if state.vector_sum:
            vector_sum += np.frombuffer(state.vector_sum)
        new = RemoteState(
            name=state.name,
            checkpoint=checkpoint,
            chunks=state.chunks + added.chunks - removed.chunks,
            length=state.length + added.length - removed.length,
            vector_sum=vector_sum.tobytes(),
        )
        terms = Counter(added.terms)
        terms.subtract(removed.terms)
        await remote.put(connection, new, terms)

    async def _keep_lease(self, connection: Connection) -> None:
        if not await leases.renew(connection, _LEASE, self._holder):
            raise LeaseLost

    def _analysed(
        self, changes: Changes, documents: Mapping[int, int], dimensions: int
    ) -> tuple[list[StoredChunk], Held]:
        """The new chunks with the numbers of their `documents`, without those removed meanwhile."""
        segment = ChunkIndex(dimensions, self._ranking).segment(0, 1, changes)
        packed, ends = segment.postings.packed.all, segment.postings.ends.all
        names = term_bits(segment.postings.terms.all)
        # From term by term to chunk by chunk.
        order = np.argsort(rows_of(packed), kind="stable")
        terms = np.repeat(names, np.diff(ends, prepend=0))[order]
        frequencies = frequencies_of(packed)[order]
        bounds = rows_of(packed)[order].searchsorted(np.arange(len(segment) + 1))
        lengths, vectors = segment.lengths.all, segment.vectors.all
        rows = [row for row, chunk_id in enumerate(changes.chunk_ids) if chunk_id in documents]
        chunks = []
        for row in rows:
            chunk_id, own = changes.chunk_ids[row], slice(bounds[row], bounds[row + 1])
            chunk = StoredChunk(
                chunk_id=chunk_id,
                document=documents[chunk_id],
                length=float(lengths[row]),
                vector=vectors[row],
                terms=terms[own],
                frequencies=frequencies[own],
            )
            chunks.append(chunk)
        counted = Counter(term for chunk in chunks for term in set(chunk.terms.tolist()))
        vector_sum = vectors[rows].sum(axis=0, dtype=np.float64)
        return chunks, Held(len(chunks), sum(chunk.length for chunk in chunks), vector_sum, counted)

    async def lead(self) -> bool:
        """Acquire the lease, or renew it; False if another process has it."""
        self.leads = await self._leases.acquire(_LEASE, self._holder)
        return self.leads

    async def renew_lease(self) -> None:
        """Renew the lease unless it has ended: another process may have had it since a step began."""
        async with self._store.engine.transaction(ordered=False) as connection:
            if not await leases.renew(connection, _LEASE, self._holder):
                self.leads = False

    async def release_lease(self) -> None:
        """Let another process acquire the lease at once."""
        self.leads = False
        await self._leases.release(_LEASE, self._holder)
