"""The composition root: builds a memory from settings. The only module that knows every part."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragconfig.repository import OPTION, make_memory, root_of
from ragconfig.settings import PGVECTOR, Settings
from ragmemory.embedders import Embedder, EmbedderSettings
from ragmemory.files.ocr import Ocr, OcrSettings
from ragmemory.files.ocr_cache import OcrCache
from ragmemory.ingest.chunking import ChunkingSettings
from ragmemory.search.index.folder import MANIFEST
from ragmemory.search.sync import IndexSync
from ragmemory.service import MemoryService
from ragmemory.settings import MemorySettings, RankingSettings
from ragmemory.stores.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragmemory.embedders.local import LocalEmbedder
    from ragmemory.search.indexing import Indexing
    from ragmemory.search.remote.vector_store import VectorStore
    from ragmemory.search.reranking import Reranker, RerankerSettings
    from ragmemory.stores.engine import Engine


def make_service(settings: Settings, embedder: Embedder | None = None) -> MemoryService:
    """The memory that the settings describe; nothing is opened yet. Raises SettingsError."""
    ranking = settings.table("ranking", RankingSettings)
    if settings.tables["embedder"]["kind"] != "local":
        ranking = replace(ranking, alpha=ranking.alpha_contextual)
    path = settings.memory_path
    memory = settings.table("memory", MemorySettings)
    repository = root_of(path) if settings.origins.get("memory.path") == OPTION else None

    def make() -> None:  # At the first write: a mistyped path to read leaves no file.
        if repository:
            make_memory(repository, settings.home)

    store = Store(make_engine(settings, make), memory.undo_depth)
    embedder = embedder or make_embedder(settings)
    indexing = _indexing(settings, store, embedder.identity, ranking, read_only=memory.read_only)
    max_tokens = settings.table("chunking", ChunkingSettings).max_tokens
    return MemoryService(
        store,
        embedder,
        indexing,
        max_tokens,
        reranker=make_reranker(settings),
        roots=memory.roots,
        repository=None if memory.read_only else repository,
        previous_embedder=previous_embedder,
        models=models_folder(settings),
        ocr=Ocr(settings.table("ocr", OcrSettings), OcrCache(settings.home.cache / "ocr.db")),
    )


def make_engine(settings: Settings, make: Callable[[], object] = lambda: None) -> Engine:
    """The engine of the memory; nothing is opened yet. Raises SettingsError."""
    memory, path = settings.table("memory", MemorySettings), settings.memory_path
    seconds, read_only = memory.busy_seconds, memory.read_only
    if url := settings.store_url:
        from ragconfig.machine import machine_name
        from ragmemory.stores.postgres.database import PostgresEngine

        machine = machine_name(settings.home)
        return PostgresEngine(url, path, seconds, machine=machine, read_only=read_only)
    from ragmemory.stores.sqlite.file import SqliteEngine

    saved_index = _index_folder(path) / MANIFEST
    return SqliteEngine(path, seconds, read_only=read_only, make=make, saved_index=saved_index)


def _indexing(
    settings: Settings, store: Store, identity: str, ranking: RankingSettings, *, read_only: bool
) -> Indexing:
    if url := settings.index_url:
        from ragmemory.search.remote.remote_index import RemoteIndex

        vectors = _vectors(settings, url, store, ranking)
        return RemoteIndex(store, identity, vectors, ranking, read_only=read_only)
    return IndexSync(store, identity, _index_folder(store.path), ranking)


def _index_folder(memory: Path) -> Path:
    """The folder of the index, next to the memory. It is derived: deleting it costs only time."""
    return memory.parent / f"{memory.name}-index"


def _vectors(settings: Settings, url: str, store: Store, ranking: RankingSettings) -> VectorStore:
    if url == PGVECTOR:
        from ragmemory.search.remote.pgvector import PgVector
        from ragmemory.stores.postgres.database import PostgresEngine

        assert isinstance(store.engine, PostgresEngine)  # `index_url` has checked it.
        return PgVector(store.engine, ranking)
    from ragconfig.keys import read_key
    from ragmemory.search.remote.qdrant import KEY_VARIABLE, IndexSettings, Qdrant, connect

    table = settings.table("index", IndexSettings)
    key = partial(read_key, table.key_file, KEY_VARIABLE)
    return Qdrant(store, table, ranking, lambda: connect(table, key()))


def make_embedder(settings: Settings) -> Embedder:
    """The embedder of the table [embedder]; it loads or connects at first need. Raises SettingsError."""
    table = settings.table("embedder", EmbedderSettings)
    if table.kind == "local":
        return _local_embedder()
    if table.kind == "fastembed":
        return _fast_embedder(table, models_folder(settings))
    from ragmemory.embedders.openai import OpenAIEmbedder

    return OpenAIEmbedder(replace(table, model=table.model or table.openai_model))


@cache  # All memories of a process share the model, which has no connections to close.
def _local_embedder() -> LocalEmbedder:
    from ragmemory.embedders.local import LocalEmbedder

    return LocalEmbedder()


@cache  # as above
def _fast_embedder(table: EmbedderSettings, folder: Path) -> Embedder:
    from ragmemory.embedders.fastembed import FastEmbedder

    return FastEmbedder(replace(table, model=table.model or table.fastembed_model), folder)


def previous_embedder(identity: str) -> Embedder | None:
    """The embedder with this identity, if it needs no settings."""
    local = _local_embedder()
    return local if identity == local.identity else None


def make_reranker(settings: Settings) -> Reranker | None:
    """The reranker of the table [reranker], if there is one. Raises SettingsError."""
    if settings.tables["reranker"]["kind"] == "none":  # The usual case, which imports nothing.
        return None
    from ragmemory.search.reranking import RerankerSettings

    return _reranker_here(settings.table("reranker", RerankerSettings), models_folder(settings))


@cache
def _reranker_here(table: RerankerSettings, folder: Path) -> Reranker:
    from ragmemory.search.reranking import Reranker

    return Reranker(table, folder)


def models_folder(settings: Settings) -> Path:
    """Where downloaded models are kept."""
    return settings.home.cache / "models"
