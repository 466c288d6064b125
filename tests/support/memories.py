"""Memories to test with: real ones in each engine, and the real local embedder that can be turned off."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from ragcommon.contract.documents import Injected, Metadata
from ragcommon.contract.history import Origin
from ragconfig.settings import Settings, load_settings
from ragmemory.app import make_service
from ragmemory.embedders import WordWeights
from ragmemory.embedders.local import LocalEmbedder
from ragmemory.errors import EmbedderUnavailable, TextRefused
from ragmemory.ingest.documents import make_document
from ragmemory.service import MemoryService
from ragmemory.stores.store import Store
from ragmemory.types.history import Previous, Selection
from ragmemory.types.writes import Chunk, Embedding, Write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ORIGIN = Origin("tests", "session-1")
LOCAL = LocalEmbedder()
FOX = "# Animals\n\nThe quick brown fox jumps over the lazy dog.\n"
PIE = "# Kitchen\n\nBake the apple pie for forty minutes.\n"
# A chunk for each section: more than are prepared in a batch.
LONG = "".join(f"# Part {number}\n\nSentence{number} stands here alone.\n\n" for number in range(1_500))
# What the embeddings of `write_of` come from: identity and dimensions.
EMBEDDER = ("tests:two", 2)


database = ""
"""The URL of the database with the memories of a test that runs on PostgreSQL; "": they are SQLite files."""


def place_of(path: Path) -> str:
    """The memory that a test has at a path: the file itself, or a schema of its own."""
    return f"{database}&schema=test_{sha256(bytes(path)).hexdigest()[:16]}" if database else str(path)


class SwitchableEmbedder:
    """The local embedder, which a test can turn off, and which counts what it is asked."""

    def __init__(self, identity: str = LOCAL.identity) -> None:
        self.identity = identity
        self.dimensions = LOCAL.dimensions
        self.scale = LOCAL.scale
        self.is_costly = LOCAL.is_costly
        self.is_down = False
        self.calls = 0

    def _check(self) -> None:
        if self.is_down:
            raise EmbedderUnavailable(self.identity, "it was turned off")

    def warm_up(self) -> None:
        LOCAL.warm_up()

    def pieces(self, word: str) -> int:
        return LOCAL.pieces(word)

    def longest_text(self) -> int | None:
        return LOCAL.longest_text()

    def count_tokens(self, texts: list[str]) -> list[int]:
        return LOCAL.count_tokens(texts)

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        self._check()
        self.calls += 1
        return await LOCAL.embed_documents(texts, titles)

    async def embed_query(self, text: str, weights: WordWeights) -> NDArray[np.float32] | None:
        self._check()
        return await LOCAL.embed_query(text, weights)

    async def word_matches(self, words: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32] | None:
        return await LOCAL.word_matches(words, texts)

    async def aclose(self) -> None:
        pass


class InterruptedEmbedder(SwitchableEmbedder):
    """Embeds its first query after something else has happened."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def embed_query(self, text: str, weights: WordWeights) -> NDArray[np.float32] | None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()
        return await super().embed_query(text, weights)


class GatedEmbedder(SwitchableEmbedder):
    """Embeds the texts of LONG only while `gate` is open, and refuses texts with the word "refused"."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = anyio.Event()
        self.reached = anyio.Event()

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        if any("refused" in text for text in texts):
            self.calls += 1
            raise TextRefused(self.identity, "it is too long")
        if any("Sentence1200 " in text for text in texts):
            self.reached.set()
            await self.gate.wait()
        return await super().embed_documents(texts, titles)


def settings_for(folder: Path, **flags: object) -> Settings:
    """Packaged settings with everything under `folder`; keys with "__" for the dot."""
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return load_settings(None, dotted, {"RAGCHAT_HOME": str(folder)}, folder)


def service_for(
    folder: Path,
    embedder: SwitchableEmbedder | None = None,
    *,
    undo_depth: int = 1000,
    roots: Sequence[str] = (),
    url: str = "",
    index: str = "",
    **more: object,
) -> MemoryService:
    """A memory at `place_of(folder / "memory.db")`, or in another database; enter it to use it.

    `index` is as in index.url; `more` settings are as in `settings_for`.
    """
    flags = {
        "index__url": index,
        "memory__path": url or place_of(folder / "memory.db"),
        "memory__undo_depth": undo_depth,
        "memory__roots": list(roots),
    }
    settings = settings_for(folder, **flags, **more)
    return make_service(settings, embedder or SwitchableEmbedder())


async def put(memory: MemoryService, text: str, **metadata: object) -> Injected:
    return await memory.writer.inject(text, metadata, ORIGIN)


async def uris(memory: MemoryService, question: str, filter: Metadata | None = None) -> list[str]:
    return [hit.uri for hit in (await memory.search.query(question, 8, filter)).hits]


def restore(copy: Path, memory: Path) -> None:
    """Put a copy in a memory's place, as a careful user does: whole, in one move."""
    shutil.copy(copy, copy.with_suffix(".restored"))
    copy.with_suffix(".restored").replace(memory)


async def backup_of(folder: Path) -> Path:
    """A memory of two documents in `folder`, whose index knows both, and a copy from when there was one."""
    path = folder / "memory.db"
    async with service_for(folder) as memory:
        await put(memory, FOX, uri="fox")
        await memory.search.query("fox", 8)
    shutil.copy(path, folder / "copy.db")
    async with service_for(folder) as memory:
        await put(memory, PIE, uri="pie")
        await memory.search.query("fox", 8)
    return folder / "copy.db"


def write_of(
    text: str, metadata: Metadata | None = None, *, origin: Origin = ORIGIN, size: int = 20
) -> Write:
    """A write as the store takes it: chunks of `size` characters, with made-up embeddings."""
    chunks = [
        Chunk(start, min(start + size, len(text)), 1, 1, "Heading") for start in range(0, len(text), size)
    ]
    return Write(make_document(text, metadata or {}), origin, chunks, [b"\0" * 4] * len(chunks))


async def before_last_write(store: Store) -> Previous:
    """The document before the last write that is not undone."""
    changes, _ = await store.journal.change(Selection())
    return (await store.versions.before_writes([changes[0].seq]))[changes[0].seq]
