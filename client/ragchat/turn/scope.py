"""A view of memory in which only some documents are searched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from ragchat.errors import NoDocumentMatches
from ragchat.memory.matching import MAX_UNNAMED, filter_of
from ragchat.memory.types import DocumentText, ToolResult
from ragchat.turn.retrieval import Memory
from ragchat.uris import folder_globs, is_glob, path_globs
from ragcommon.contract.documents import DocumentInfo, DocumentPage, DocumentPart
from ragcommon.contract.search import Comparison, QueryResult
from ragmcp.protocol.schema.tools import ToolInfo

QUERY = "Query"
EVERYTHING = "*"


class Scope:
    """Forwards calls to `memory`, but searches only the documents chosen by `narrow`; initially all.

    `name` is the user's name for them, "" for all. `whole` is the name of the documents that `*` means, those
    of a notebook; "" for all.
    """

    def __init__(self, memory: Memory) -> None:
        self.name = self.whole = ""
        self._memory = memory
        self._filter: dict[str, Any] = {}

    @property
    def searched(self) -> Memory:
        """This view, or memory itself while all documents are searched."""
        return self if self._filter else self._memory

    def use(self, memory: Memory) -> None:
        """Search another memory, all of it."""
        self.name, self._memory, self._filter = "", memory, {}

    @contextmanager
    def unchanged_on_error(self) -> Iterator[None]:
        before = self.name, self.whole, self._filter
        try:
            yield
        except BaseException:
            self.name, self.whole, self._filter = before
            raise

    async def narrow(self, name: str) -> None:
        """Search only the documents that `name` means; for `*` those that `whole` means.

        Raises NoDocumentMatches, SeveralDocumentsMatch.
        """
        name = self.whole if name == EVERYTHING else name
        try:
            self._filter = await filter_of(self._memory, name) if name else {}
        except NoDocumentMatches:
            if name != self.whole:
                raise
            # They may be loaded later.
            self._filter = {"uri": (path_globs if is_glob(name) else folder_globs)(name)[0]}
        self.name = name

    async def query(self, text: str, top_k: int = 8, filter: dict[str, Any] | None = None) -> QueryResult:
        return await self._memory.query(text, top_k, {**(filter or {}), **self._filter} or None)

    async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ()) -> Comparison:
        return await self._memory.compare(query, texts, words)

    async def documents(self, limit: int | None = 100, filter: dict[str, Any] | None = None) -> DocumentPage:
        if not self._filter:
            return await self._memory.documents(limit, filter)
        page = await self._memory.documents(MAX_UNNAMED, filter)
        held = [document for document in page.documents if self._holds(document)]
        return DocumentPage(held[:limit], len(held))

    async def show(self, document: str) -> DocumentText:
        return await self._memory.show(document)

    async def part(
        self, document: str, start_line: int, end_line: int | None, cursor: str, tokens: int
    ) -> DocumentPart:
        return await self._memory.part(document, start_line, end_line, cursor, tokens)

    async def tools(self) -> list[ToolInfo]:
        return await self._memory.tools()

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        if name == QUERY and self._filter:
            # A model may narrow the search further, but not widen it.
            chosen = arguments.get("filter")
            own = chosen if isinstance(chosen, dict) else {}
            arguments = {**arguments, "filter": {**own, **self._filter}}
        return await self._memory.call(name, arguments)

    def _holds(self, document: DocumentInfo) -> bool:
        """Whether a document matches the filter, which has no other keys than `uri` and `tags`."""
        wanted, tags = self._filter.get("tags", []), document.metadata.get("tags") or []
        return fnmatchcase(document.uri, self._filter.get("uri", "*")) and set(wanted) <= set(tags)
