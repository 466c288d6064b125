"""Metrics for Prometheus, in a registry of their own, with a bounded number of series."""

from __future__ import annotations

from functools import partial
from math import nan
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from ragconfig.errors import SettingsError
from ragmemory.errors import RagMemoryError
from ragmemory.mcp.errors import Memory

if TYPE_CHECKING:
    from ragmcp.http.asgi import Endpoint
    from ragmcp.http.dispatch import RequestRecord
    from ragmcp.http.errors import HttpError
    from ragmemory.service import MemoryService

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

# Buckets: a query takes a millisecond, a document tens of milliseconds, a reembedding minutes.
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30, 120)


class Metrics:
    """Counts requests; reads the memory's state when the metrics are requested."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock_seconds = 0.0
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        self._requests = counter("ragmemory_requests", "Requests answered", ["method", "tool"])
        self._errors = counter("ragmemory_errors", "Requests that failed", ["code"])
        self._seconds = Histogram(
            *("ragmemory_request_seconds", "Time from a request to its answer", ["method"]),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._sessions = gauge("ragmemory_sessions", "Open legacy sessions")
        self._streams = gauge("ragmemory_streams", "Open event streams")
        self._documents = gauge("ragmemory_documents", "Documents in memory")
        self._chunks = gauge("ragmemory_chunks", "Chunks in memory")
        self._waiting = gauge("ragmemory_intake_waiting", "Documents that wait to be written")
        self._lag = gauge("ragmemory_follower_lag_seconds", "Time since all changes of the memory were known")
        self._lock = counter("ragmemory_lock_wait_seconds", "Time waited for the lock on the memory")
        self._pool = gauge("ragmemory_database_connections", "Connections to the database", ["state"])
        self._connecting = gauge("ragmemory_database_waiting", "Uses that wait for a connection")

    def count(self, record: RequestRecord) -> None:
        """Count a request."""
        self._requests.labels(record.method, record.tool).inc()
        self._seconds.labels(record.method).observe(record.seconds)
        if record.error_code:
            self._errors.labels(record.error_code).inc()

    def count_refused(self, error: HttpError) -> None:
        """Count a request without access."""
        self._requests.labels("", "").inc()
        self._errors.labels(error.code).inc()

    async def text(self, *endpoints: Endpoint) -> bytes:
        """All metrics in Prometheus' text format; documents and chunks are NaN if memory cannot be read."""
        self._sessions.set(sum(endpoint.session_count for endpoint in endpoints))
        self._streams.set(sum(endpoint.stream_count for endpoint in endpoints))
        try:
            memory = await self._memory()
            self._set_state_of(memory)
            stats = await memory.maintenance.stats()
        except (RagMemoryError, SettingsError):
            documents = chunks = nan
        else:
            documents, chunks = stats.documents, stats.chunks
        self._documents.set(documents)
        self._chunks.set(chunks)
        return generate_latest(self._registry)

    def _set_state_of(self, memory: MemoryService) -> None:
        """What is known without reading the memory."""
        engine = memory.engine
        self._waiting.set(memory.writer.queue.waiting)
        self._lag.set(memory.follower.lag_seconds)
        self._lock.inc(engine.lock_seconds - self._lock_seconds)
        self._lock_seconds = engine.lock_seconds
        if connections := engine.connections:
            self._pool.labels("allowed").set(connections.allowed)
            self._pool.labels("in use").set(connections.in_use)
            self._connecting.set(connections.waiting)
