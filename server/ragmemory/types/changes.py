"""What an index reads of the store."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcommon.text.places import file_name
from ragmemory.types.writes import Embedding


class Checkpoint(Struct, frozen=True):
    """How far an index has followed the store: chunk ids and removal numbers only ever grow.

    It includes the number and time of the journal's last entry: a store without that entry, such as one that
    was restored from an older copy, was never at this checkpoint.
    """

    chunk_id: int = 0
    removal: int = 0
    entry: int = 0
    entry_at: str = ""


class Changes(Struct, frozen=True):
    """The changes between two checkpoints, for an index. The lists of chunks are parallel."""

    checkpoint: Checkpoint
    chunk_ids: list[int]
    titles: list[str]  # each with the name of the file, see `indexed_title`
    headings: list[str]
    texts: list[str]  # each after its context
    surroundings: list[str]
    embeddings: list[Embedding]
    removed: list[int]  # chunk ids, some of which the index may never have seen
    hidden: list[tuple[int, int]] = []  # ranges of ids, inclusive, that no search may return
    fingerprint: str = ""  # of the store, read after the chunks

    def first(self, count: int) -> Changes:
        """The first chunks, and all removals."""
        return replace(
            self,
            checkpoint=replace(self.checkpoint, chunk_id=self.chunk_ids[count - 1]),
            chunk_ids=self.chunk_ids[:count],
            titles=self.titles[:count],
            headings=self.headings[:count],
            texts=self.texts[:count],
            surroundings=self.surroundings[:count],
            embeddings=self.embeddings[:count],
        )

    @property
    def digest(self) -> bytes:
        """The digest of the chunks without their ids: 16 bytes."""
        chunks = [self.titles, self.headings, self.texts, self.surroundings, self.embeddings]
        return hashlib.blake2b(msgspec.msgpack.encode(chunks), digest_size=16).digest()


def indexed_title(uri: str, title: str) -> str:
    """The title by which the chunks of a document are found: with the name of its file, if that says more."""
    if "/" not in uri or uri.startswith(("http://", "https://")):
        return title
    name = file_name(uri)
    name = (name.rpartition(".")[0] or name).replace("_", " ")
    return title if f" {name.lower()} " in f" {title.lower()} " else f"{title} {name}".lstrip()
