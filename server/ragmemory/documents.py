"""The documents in memory: list them, read them, and read what is around a passage."""

from __future__ import annotations

from typing import Any

from ragcommon.contract.documents import DocumentInfo, DocumentPart, Passage
from ragmemory.errors import ChunkNotFound
from ragmemory.stores.filters import compile_filter
from ragmemory.stores.sqlite import Store
from ragmemory.types.documents import DocumentOrder, DocumentText


class Documents:
    """A document is named by its id or uri."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self,
        limit: int,
        offset: int = 0,
        filter: dict[str, Any] | None = None,
        order: DocumentOrder = "uri",
        *,
        descending: bool = False,
    ) -> tuple[list[DocumentInfo], int]:
        """A page of the documents that match a filter, and how many match in all. Raises BadArgument."""
        condition = compile_filter(filter or {})
        return await self._store.documents.page(limit, offset, condition, order, descending=descending)

    async def part(
        self, document: str, lines: tuple[int, int | None], first_chunk: int, size: int
    ) -> DocumentPart:
        """Some lines of a document: see `stores.parts`. Raises DocumentNotFound, BadArgument."""
        return await self._store.documents.part(document, lines, first_chunk, size)

    async def read(self, document: str) -> tuple[DocumentInfo, str]:
        """A document and its text. Raises DocumentNotFound."""
        info = await self._store.documents.find(document)
        return info, await self._store.documents.text(info.document_id)

    async def whole(self, document: str) -> DocumentText:
        """A document with its text and places. Raises DocumentNotFound."""
        return await self._store.documents.whole(document)

    async def named(self, words: str, limit: int) -> list[DocumentInfo]:
        """The documents whose uri or title contains `words`: see `stores.documents`."""
        return await self._store.documents.named(words, limit)

    async def ids(self, prefix: str) -> list[str]:
        """The ids that begin with `prefix`, most recently changed first."""
        return await self._store.documents.ids(prefix)

    async def of_chunk(self, chunk_id: int) -> DocumentInfo:
        """The document of a chunk. Raises ChunkNotFound."""
        [passage] = await self.passages_around(chunk_id)
        return await self._store.documents.find(passage.document_id)

    async def passages_around(self, chunk_id: int, before: int = 0, after: int = 0) -> list[Passage]:
        """A chunk with as many chunks before and after it, in the order of their document.

        Raises ChunkNotFound.
        """
        found = await self._store.passages.around(chunk_id, before, after)
        if not found:
            raise ChunkNotFound(chunk_id)
        return found
