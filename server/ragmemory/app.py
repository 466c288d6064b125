"""The composition root: from settings to a running memory, and the only place that knows every part."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ragmcp.settings import Settings
from ragmemory.chunking import ChunkingSettings
from ragmemory.embedders import make_embedder
from ragmemory.indexing import Indexing
from ragmemory.ranking import RankingSettings
from ragmemory.retriever import Retriever
from ragmemory.service import MemoryService
from ragmemory.stores.sqlite import Store


class MemorySettings(Struct, frozen=True):
    """The table [memory]."""

    path: str
    toolsets: list[str]
    busy_seconds: float


def make_service(settings: Settings) -> MemoryService:
    """The memory that the settings describe; nothing is opened yet. Raises SettingsError."""
    memory = settings.table("memory", MemorySettings)
    ranking = settings.table("ranking", RankingSettings)
    path = memory_path(settings)
    store = Store(path, memory.busy_seconds)
    embedder = make_embedder(settings)
    # Derived from the memory, so beside it; whoever deletes it loses nothing but time.
    index = path.with_name(path.name + "-index")
    indexing = Indexing(store, embedder.identity, lambda dimensions: Retriever(index, dimensions, ranking))
    return MemoryService(store, embedder, indexing, settings.table("chunking", ChunkingSettings).max_tokens)


def memory_path(settings: Settings) -> Path:
    """The memory's file, absolute."""
    path = settings.table("memory", MemorySettings).path
    return Path(path).expanduser().absolute() if path else settings.home.data / "memory.db"
