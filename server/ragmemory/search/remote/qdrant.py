"""Candidates from a Qdrant: dense vectors, and sparse ones of terms, whose IDF Qdrant itself applies.

A point is a chunk, with the number of its document for filters; other fields could go out of date. The point
0 holds the checkpoint up to which points were sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec
import numpy as np
from anyio import to_thread
from msgspec import Struct

from ragconfig.errors import SettingsError
from ragmemory.errors import IndexUnavailable, first_line
from ragmemory.search.remote.vector_store import (
    EDGES,
    EF_CONSTRUCTION,
    EF_SEARCH,
    Begin,
    ChangePage,
    Commit,
    Held,
    Sought,
    StoredChunk,
)
from ragmemory.types.changes import Checkpoint

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient
    from qdrant_client.models import Filter, PointStruct

    from ragmemory.settings import RankingSettings
    from ragmemory.stores.store import Store

KEY_VARIABLE = "QDRANT_API_KEY"
MEANING, WORDS, DOCUMENT, CHECKPOINT = "meaning", "words", "document", "checkpoint"
# Chunks for one request: with vectors of 3,072 dimensions 16 MB of the 32 that Qdrant accepts.
AT_ONCE = 256
# Documents that a filter may name. Of one that more match, Qdrant is asked for more candidates instead.
MAX_DOCUMENTS = 50_000
MORE = 10


class IndexSettings(Struct, frozen=True):
    """The table [index]."""

    url: str
    key_file: str
    timeout_seconds: float
    shards: int
    replicas: int
    quantization: Literal["none", "int8"]
    on_disk: bool


def connect(settings: IndexSettings, key: str) -> AsyncQdrantClient:
    """A client that connects at first need. Raises IndexUnavailable."""
    try:
        from qdrant_client import AsyncQdrantClient
    except ImportError as error:
        reason = "qdrant-client is not installed"
        raise IndexUnavailable(settings.url, reason, "Try: pip install 'ragchat[qdrant]'") from error
    # It would ask for the server's version at once.
    return AsyncQdrantClient(
        settings.url, api_key=key or None, timeout=_seconds(settings), check_compatibility=False
    )


def _seconds(settings: IndexSettings) -> int:
    """Qdrant takes whole seconds only."""
    return max(1, round(settings.timeout_seconds))


class Qdrant:
    """See `VectorStore`."""

    kind = "ragchat"

    def __init__(
        self,
        store: Store,
        settings: IndexSettings,
        ranking: RankingSettings,
        connect: Callable[[], AsyncQdrantClient],
    ) -> None:
        self._store = store
        self._settings = settings
        self._ranking = ranking
        self._connect = connect
        self._opened: AsyncQdrantClient | None = None
        self._opening = anyio.Lock(fast_acquire=True)

    async def _open(self) -> AsyncQdrantClient:
        async with self._opening:
            if self._opened is None:
                try:
                    # Its import takes seconds.
                    self._opened = await to_thread.run_sync(self._connect)
                except SettingsError as error:
                    reason = str(error).rstrip(".")
                    raise IndexUnavailable(self._settings.url, reason[:1].lower() + reason[1:]) from error
            return self._opened

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[AsyncQdrantClient]:
        """The client; its errors are mapped."""
        opened = await self._open()
        from httpx import TimeoutException
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ApiException, ResponseHandlingException

        try:
            yield opened
        # ValueError: an answer that is not JSON, such as the page of a proxy.
        except (ApiException, QdrantException, ValueError, OSError) as error:
            reason = first_line(error)
            if isinstance(error, ResponseHandlingException) and isinstance(error.source, TimeoutException):
                reason = f"it did not answer within {_seconds(self._settings)} s"
            raise IndexUnavailable(self._settings.url, reason) from error

    async def has(self, name: str, has_passed: Callable[[Checkpoint], Awaitable[bool]]) -> bool:
        async with self._client() as client:
            if not await client.collection_exists(name):
                return False
            points = await client.retrieve(name, [0], with_payload=True)
        if not points or not points[0].payload:
            return False
        # If the memory was restored from a copy, the points of removed chunks may be missing.
        return await has_passed(msgspec.convert(points[0].payload[CHECKPOINT], Checkpoint))

    async def create(self, name: str, dimensions: int, begin: Begin) -> None:
        from qdrant_client import models

        store_id = name.rpartition("_")[0]
        settings = self._settings
        quantization = None
        if settings.quantization == "int8":
            quantization = models.ScalarQuantization(
                scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
            )
        async with self._client() as client:
            for other in (await client.get_collections()).collections:
                if other.name.startswith(f"{store_id}_"):
                    await client.delete_collection(other.name)
            await client.create_collection(
                name,
                vectors_config={
                    MEANING: models.VectorParams(
                        size=dimensions,
                        # They have unit length. With Distance.COSINE, Qdrant would change the last bits.
                        distance=models.Distance.DOT,
                        # As they are stored in the memory.
                        datatype=models.Datatype.FLOAT16,
                        on_disk=settings.on_disk,
                        hnsw_config=models.HnswConfigDiff(m=EDGES, ef_construct=EF_CONSTRUCTION),
                        quantization_config=quantization,
                    )
                },
                sparse_vectors_config={
                    WORDS: models.SparseVectorParams(
                        modifier=models.Modifier.IDF,
                        index=models.SparseIndexParams(on_disk=settings.on_disk),
                    )
                },
                shard_number=settings.shards,
                replication_factor=settings.replicas,
                on_disk_payload=True,
            )
            await client.create_payload_index(name, DOCUMENT, models.PayloadSchemaType.INTEGER)
            await client.upsert(name, [_marker(Checkpoint())], wait=True)
        async with self._store.engine.transaction(ordered=False) as connection:
            await begin(connection)

    async def apply(self, page: ChangePage, commit: Commit) -> None:
        removed = Held(0, 0.0, np.zeros(1), Counter())
        async with self._client() as client:
            for part in _parts(page.chunks):
                await client.upsert(page.name, [self._point(chunk, page) for chunk in part], wait=True)
            for ids in _parts(page.removed):
                points = await client.retrieve(page.name, ids, with_payload=True, with_vectors=True)
                removed = _with(removed, [point for point in points if int(point.id) <= page.counted])
            await client.upsert(page.name, [_marker(page.checkpoint)], wait=True)
        async with self._store.engine.transaction(ordered=False) as connection:
            await commit(connection, removed)
        # Last: if the process is killed before the commit, the page that is repeated finds them again. Points
        # that are left do no harm, since the store has no such chunks.
        async with self._client() as client:
            for ids in _parts(page.removed):
                await client.delete(page.name, list(ids), wait=True)

    def _point(self, chunk: StoredChunk, page: ChangePage) -> PointStruct:
        from qdrant_client.models import PointStruct, SparseVector

        k1, b = self._ranking.k1, self._ranking.b
        saturation = k1 * (1 - b + b * chunk.length / max(page.average_length, 1.0))
        weights = chunk.frequencies * (k1 + 1) / (chunk.frequencies + saturation)
        words = SparseVector(indices=chunk.terms.tolist(), values=weights.tolist())
        vectors = {MEANING: chunk.vector.tolist(), WORDS: words}
        payload = {DOCUMENT: chunk.document, "length": chunk.length}
        return PointStruct(id=chunk.chunk_id, vector=vectors, payload=payload)

    async def is_complete(self, name: str) -> bool:  # noqa: ARG002
        """Qdrant indexes in the background."""
        return True

    async def complete(self, name: str) -> None:
        """See `is_complete`."""

    async def candidates(self, sought: Sought) -> list[int]:
        await self._open()
        from qdrant_client import models

        matching, wanted = await self._filter(sought)
        requests = []
        if sought.vector is not None:
            parameters = models.SearchParams(hnsw_ef=max(EF_SEARCH, wanted))
            requests.append(
                models.QueryRequest(
                    query=sought.vector.tolist(),
                    using=MEANING,
                    filter=matching,
                    limit=wanted,
                    params=parameters,
                )
            )
        if sought.terms:
            words = models.SparseVector(
                indices=[one.term for one in sought.terms], values=[float(one.times) for one in sought.terms]
            )
            requests.append(models.QueryRequest(query=words, using=WORDS, filter=matching, limit=wanted))
        if not requests:
            return []
        async with self._client() as client:
            found = await client.query_batch_points(sought.name, requests)
        return [int(point.id) for response in found for point in response.points]

    async def _filter(self, sought: Sought) -> tuple[Filter | None, int]:
        """The condition on points, and how many candidates are needed."""
        from qdrant_client import models

        if sought.filter is None:
            return None, sought.wanted
        documents = await self._store.passages.documents(sought.filter, MAX_DOCUMENTS + 1)
        if len(documents) > MAX_DOCUMENTS:
            return None, sought.wanted * MORE
        condition = models.FieldCondition(key=DOCUMENT, match=models.MatchAny(any=documents))
        return models.Filter(must=[condition]), sought.wanted

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.close()


def _marker(checkpoint: Checkpoint) -> PointStruct:
    from qdrant_client.models import PointStruct

    return PointStruct(id=0, vector={}, payload={CHECKPOINT: msgspec.to_builtins(checkpoint)})


def _with(held: Held, points: Sequence[Any]) -> Held:
    """The statistics with those of these points."""
    vectors = [point.vector[MEANING] for point in points]
    terms = Counter(held.terms)
    for point in points:
        terms.update(set(point.vector[WORDS].indices))
    return Held(
        held.chunks + len(points),
        held.length + sum(point.payload["length"] for point in points),
        held.vector_sum + (np.sum(vectors, axis=0, dtype=np.float64) if vectors else 0),
        terms,
    )


def _parts(every: Sequence[Any]) -> list[Sequence[Any]]:
    return [every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE)]
