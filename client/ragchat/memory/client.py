"""Typed calls to the memory server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from ragchat.errors import DocumentUnknown
from ragchat.memory.answers import decoded, mapped_errors, passages, prompt_parts, refusal
from ragchat.memory.types import DocumentText, FilledPrompt, ToolResult
from ragchat.uris import references
from ragcommon.contract.code import TracePage
from ragcommon.contract.documents import (
    DOCUMENT_URIS,
    DocumentInfo,
    DocumentPage,
    DocumentPart,
    FolderPage,
    Forgotten,
    Injected,
    MapPage,
)
from ragcommon.contract.files import (
    AddedSource,
    AddedSources,
    Ingestion,
    IngestionList,
    IngestionStatus,
    RemovedSource,
    Source,
    SourcePage,
)
from ragcommon.contract.history import (
    Difference,
    DifferencePart,
    Entry,
    JournalPage,
    Restored,
    Undone,
    Versions,
)
from ragcommon.contract.maintenance import (
    Backup,
    EmbedderModels,
    ExportPage,
    Imported,
    ImportOutcome,
    PortableDocument,
    Prepared,
    Reembedded,
    Repaired,
    Stats,
    Verified,
)
from ragcommon.contract.search import Comparison, QueryResult
from ragmcp.protocol.schema.tools import ToolCallResult, ToolInfo

if TYPE_CHECKING:
    from ragmcp.client.features import Client, OnProgress
    from ragmcp.protocol.schema.prompts import PromptInfo

T = TypeVar("T")
P = TypeVar("P", DocumentPage, ExportPage, JournalPage, MapPage, SourcePage)

# Reads take milliseconds, but the first query to a large memory builds its index.
READ_SECONDS = 300.0
# The limits of one call: larger results come in pages.
MAX_TOKENS, MAX_DOCUMENTS = 1_000_000, 10_000
# Calls that are repeated when the server dies: reads, and upserts such as Inject.
REPEATABLE = frozenset(
    {
        *("Query", "Inject", "compare_texts", "list_embedders"),
        *("list_documents", "list_folders", "get_document", "map_documents"),
        *("list_journal", "list_versions", "diff_versions", "get_memory_stats", "verify_memory"),
        *("export_documents", "import_documents"),
        *("start_ingestion", "get_ingestion_status", "list_ingestions", "cancel_ingestion"),
        *("add_sources", "list_sources", "sync_sources", "trace_symbol"),
    }
)


class Server(Protocol):
    """A connection that may survive restarts of the server."""

    async def ask(
        self,
        what: str,
        request: Callable[[Client], Awaitable[T]],
        *,
        repeatable: bool = ...,
        timeout: float | None = ...,
    ) -> T: ...


class Mirror(NamedTuple):
    """A memory of this machine that has read the files of this machine for a server on another one.

    Jobs and sources are those of the mirror; `ragchat.ingest.uploading` sends its documents to the server.
    """

    memory: MemoryClient
    machine: str  # the name of this machine
    path: Path  # of the file of the mirror


class MemoryClient:
    """Every method raises MemoryUnavailable, MemoryTimedOut, or MemoryRefused with the server's message."""

    def __init__(self, server: Server, url: str = "", mirror: Mirror | None = None) -> None:
        """`url` is the address of the server; "": it is a process of our own.

        `mirror` is needed if the server is on another machine, whose files are others.
        """
        self._server = server
        self.url = url
        self.mirror = mirror
        self._files = self if mirror is None else mirror.memory

    async def query(self, text: str, top_k: int = 8, filter: dict[str, Any] | None = None) -> QueryResult:
        arguments: dict[str, Any] = {"query": text, "top_k": top_k}
        if filter:
            arguments["filter"] = filter
        return await self._typed("Query", arguments, QueryResult)

    async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ()) -> Comparison:
        """Compare texts with a query by meaning (unless it is ""), and with each of the words."""
        arguments = {"query": query, "texts": texts, **({"words": words} if words else {})}
        return await self._typed("compare_texts", arguments, Comparison)

    async def inject(self, text: str, metadata: dict[str, Any] | None = None, group: str = "") -> Injected:
        """Store a document; returns once it is on disk. No timeout: a large document may take minutes.

        Writes with the same `group` are undone together.
        """
        arguments = {"text": text, "metadata": metadata or {}, "group": group}
        return await self._typed("Inject", arguments, Injected, timeout=None)

    async def start_ingestion(self, paths: list[str], *, prune: bool = False, group: str = "") -> Ingestion:
        """Start loading files and folders (paths or file URIs) in the background."""
        arguments = {"paths": paths, "prune": prune, "group": group}
        return await self._files._typed("start_ingestion", arguments, Ingestion)

    async def sync_sources(self, paths: list[str], within: list[str], group: str = "") -> Ingestion:
        """Start syncing memory with files and folders, by default all sources, in the background.

        `within` limits the sync to these files and folders.
        """
        arguments = {"paths": paths, "within": within, "group": group}
        return await self._files._typed("sync_sources", arguments, Ingestion)

    async def add_sources(self, paths: list[str]) -> list[AddedSource]:
        """Register files and folders (paths or file URIs) as sources."""
        return (await self._files._typed("add_sources", {"paths": paths}, AddedSources)).sources

    async def sources(self) -> list[Source]:
        """The registered files and folders."""
        pages = self._files._pages("list_sources", {"max_tokens": MAX_TOKENS}, SourcePage)
        return [source async for page in pages for source in page.sources]

    async def remove_source(
        self, source: str, *, forget: bool, group: str = "", machine: str = ""
    ) -> RemovedSource:
        """Unregister a path or file URI, of this machine or of another one.

        `forget` also removes its documents.
        """
        arguments = {"source": source, "forget": forget, "group": group, "machine": machine}
        return await self._files._typed("remove_source", arguments, RemovedSource, timeout=None)

    async def ingestion(self, job_id: str, after: int, wait_seconds: float) -> IngestionStatus:
        """The status of a job, with the outcomes of its files from number `after` on.

        Waits up to `wait_seconds` for its end.
        """
        arguments = {"job_id": job_id, "after": after, "wait_seconds": wait_seconds}
        return await self._files._typed("get_ingestion_status", arguments, IngestionStatus)

    async def ingestions(self, limit: int) -> list[Ingestion]:
        """The last jobs, also those that other programs have started, newest first."""
        arguments = {"limit": limit, "max_tokens": MAX_TOKENS}
        return (await self._files._typed("list_ingestions", arguments, IngestionList)).ingestions

    async def cancel_ingestion(self, job_id: str) -> Ingestion:
        """Cancel a job; documents that it has stored remain."""
        return await self._files._typed("cancel_ingestion", {"job_id": job_id}, Ingestion)

    async def documents(self, limit: int | None = 100, filter: dict[str, Any] | None = None) -> DocumentPage:
        """The first `limit` documents by URI (None: all) that match a filter as for `query`."""
        most = MAX_DOCUMENTS if limit is None else min(limit, MAX_DOCUMENTS)
        arguments = {"filter": filter, "max_tokens": MAX_TOKENS, "limit": most}
        documents: list[DocumentInfo] = []
        async for page in self._pages("list_documents", arguments, DocumentPage):
            documents += page.documents
            if limit is not None and len(documents) >= limit:
                break
        return DocumentPage(documents[:limit], page.total)

    async def document_page(
        self,
        limit: int,
        filter: dict[str, Any] | None,
        sort: str,
        cursor: str,
        *,
        descending: bool,
    ) -> DocumentPage:
        """A page of the documents that match; `cursor` is the next_cursor of the page before."""
        arguments = {"limit": limit, "filter": filter, "sort": sort, "descending": descending}
        arguments |= {"cursor": cursor, "max_tokens": MAX_TOKENS}
        return await self._typed("list_documents", arguments, DocumentPage)

    async def folders(self, place: str = "") -> FolderPage:
        """The first folders of the documents' URIs below a place, which ends with a slash; "" for all."""
        return await self._typed("list_folders", {"place": place, "max_tokens": MAX_TOKENS}, FolderPage)

    async def map(self, limit: int) -> MapPage:
        """The map of at most `limit` documents; no timeout: the first one of a large memory takes a while."""
        arguments = {"limit": limit, "max_tokens": MAX_TOKENS}
        pages = [page async for page in self._pages("map_documents", arguments, MapPage, timeout=None)]
        return MapPage([point for page in pages for point in page.points], pages[-1].clusters)

    async def show(self, document: str) -> DocumentText:
        """A document by its id, its URI or its file's path."""
        part = await self._about("get_document", document, DocumentPart, max_tokens=MAX_TOKENS)
        texts, places = [part.text], part.places
        arguments: dict[str, Any] = {"document": part.document_id, "max_tokens": MAX_TOKENS}
        while part.next_cursor:
            arguments["cursor"] = part.next_cursor
            part = await self._typed("get_document", arguments, DocumentPart)
            texts.append(part.text)
            places = [*places, *part.places]
        whole = replace(part, text="".join(texts), places=list(dict.fromkeys(places)))
        return msgspec.convert(whole, DocumentText, from_attributes=True)

    async def part(
        self, document: str, start_line: int, end_line: int | None, cursor: str, tokens: int
    ) -> DocumentPart:
        """Some lines of a document, named by its id, in parts of about `tokens`: see `DocumentPart`."""
        lines = {"start_line": start_line, **_given(end_line=end_line)}
        arguments = {"document": document, **lines, "cursor": cursor, "max_tokens": tokens}
        return await self._typed("get_document", arguments, DocumentPart)

    async def forget(self, document: str, group: str = "", machine: str = "") -> Forgotten:
        """Remove a document, named as for `show`; with `machine`, one that it has loaded.

        Writes with the same `group` are undone together.
        """
        return await self._about("delete_document", document, Forgotten, group=group, machine=machine)

    async def versions(self, document: str, limit: int = 100) -> Versions:
        """The newest versions of a document, named as for `show`, even after its removal."""
        return await self._about("list_versions", document, Versions, limit=limit, max_tokens=MAX_TOKENS)

    async def difference(self, document: str, before: int | None, after: int | None) -> Difference:
        """The diff between two versions of a document; by default of its last write."""
        numbers = _given(before=before, after=after)
        arguments: dict[str, Any] = {"max_tokens": MAX_TOKENS, **numbers}
        diffs: list[str] = []
        while True:
            part = await self._about("diff_versions", document, DifferencePart, **arguments)
            diffs.append(part.diff)
            if not part.next_cursor:
                return msgspec.convert(replace(part, diff="".join(diffs)), Difference, from_attributes=True)
            arguments["cursor"] = part.next_cursor

    async def restore(self, document: str, version: int | None) -> Restored:
        """Restore a version of a document; by default the previous one."""
        return await self._about("restore_version", document, Restored, **_given(version=version))

    async def journal(self, limit: int = 100) -> list[Entry]:
        """The last writes, newest first."""
        entries: list[Entry] = []
        arguments = {"limit": limit, "max_tokens": MAX_TOKENS}
        async for page in self._pages("list_journal", arguments, JournalPage):
            entries += page.entries
            if len(entries) >= limit:
                break
        return entries[:limit]

    async def undo(
        self,
        on_progress: OnProgress | None = None,
        *,
        numbers: Sequence[int] = (),
        origin: str = "",
        since: str = "",
    ) -> Undone:
        """Undo the last write that is not undone yet, with its group; no timeout.

        Alternatively, the writes with these numbers, or those of a client or session since a time. Progress
        is counted in writes.
        """
        arguments = {"origin": origin, "since": since, **({"numbers": numbers} if numbers else {})}
        return await self._typed("undo_writes", arguments, Undone, timeout=None, on_progress=on_progress)

    async def backup(
        self, path: str, on_progress: OnProgress | None = None, *, force: bool = False
    ) -> Backup:
        """Copy the memory to a file; no timeout. Progress is counted in pages."""
        arguments = {"path": path, "force": force}
        return await self._typed("backup_memory", arguments, Backup, timeout=None, on_progress=on_progress)

    def export(self, *, vectors: bool = False, uris: Sequence[str] = ()) -> AsyncIterator[ExportPage]:
        """The documents with their texts, in pages; with `uris`, only these."""
        arguments = {"vectors": vectors, **({"uris": uris} if uris else {})}
        return self._pages("export_documents", arguments, ExportPage)

    async def import_documents(
        self, documents: Sequence[PortableDocument], group: str
    ) -> list[ImportOutcome]:
        """Store exported documents; no timeout. The outcomes are in the same order."""
        arguments = {"documents": documents, "group": group}
        return (await self._typed("import_documents", arguments, Imported, timeout=None)).outcomes

    async def trace(self, name: str) -> TracePage:
        """The definitions and the first uses of a symbol of source code."""
        return await self._typed("trace_symbol", {"name": name}, TracePage)

    async def stats(self) -> Stats:
        return await self._typed("get_memory_stats", {}, Stats)

    async def embedders(self) -> EmbedderModels:
        """The models that can embed on the machine of the memory."""
        return await self._typed("list_embedders", {}, EmbedderModels, timeout=None)

    async def prepare_embedder(self, on_progress: OnProgress | None = None) -> Prepared:
        """Embed a word, for which a model may be downloaded; no timeout. Progress is counted in bytes."""
        return await self._typed("prepare_embedder", {}, Prepared, timeout=None, on_progress=on_progress)

    async def reembed(self, on_progress: OnProgress | None = None, *, switch: bool = True) -> Reembedded:
        """Embed all documents again; no timeout. Progress is counted in chunks.

        Without `switch`, memory goes on with the old embeddings until the next call.
        """
        arguments: dict[str, Any] = {} if switch else {"switch": False}
        return await self._typed(
            "reembed_memory", arguments, Reembedded, timeout=None, on_progress=on_progress
        )

    async def discard_embeddings(self) -> Stats:
        """Delete the previous embeddings kept by a reembedding, or those of an incomplete one."""
        return await self._typed("discard_embeddings", {}, Stats, timeout=None)

    async def verify(self, on_progress: OnProgress | None = None) -> Verified:
        """Check the whole file for damage; no timeout."""
        return await self._typed("verify_memory", {}, Verified, timeout=None, on_progress=on_progress)

    async def repair(self, on_progress: OnProgress | None = None) -> Repaired:
        """Rebuild what can be derived from the texts; no timeout."""
        return await self._typed("repair_memory", {}, Repaired, timeout=None, on_progress=on_progress)

    async def tools(self) -> list[ToolInfo]:
        return await self._ask("tools/list", lambda client: client.list_tools())

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call any tool for a model. A tool error is a result that is not `ok`."""
        result = await self._called(name, arguments)
        hits = [] if result.is_error else passages(name, result)
        return ToolResult(not result.is_error, result.text, hits)

    async def prompts(self) -> list[PromptInfo]:
        return await self._ask("prompts/list", lambda client: client.list_prompts())

    async def fill_in(self, prompt: str, arguments: Mapping[str, str]) -> FilledPrompt:
        """A prompt with its arguments."""
        filled = await self._ask("prompts/get", lambda client: client.get_prompt(prompt, arguments))
        text, resources = prompt_parts(filled)
        documents: list[str] = []
        changes: list[DocumentText] = []
        for resource in resources:
            document, _, versions = resource.uri.removeprefix(DOCUMENT_URIS).partition("/")
            if not versions:
                documents.append(document)
            elif resource.text:  # equal versions have no changes
                changes.append(DocumentText.loose(resource.uri, resource.text, document_id=document))
        return FilledPrompt(text, documents, changes)

    async def complete_argument(
        self, prompt: str, argument: str, typed: str, others: Mapping[str, str]
    ) -> list[str]:
        """Completions for an argument of a prompt; `others` are the arguments given so far."""
        from ragmcp.protocol.schema.completion import PromptReference

        reference = PromptReference(name=prompt)
        completion = await self._ask(
            "completion/complete", lambda client: client.complete(reference, argument, typed, others)
        )
        return completion.values

    async def _about(self, tool: str, document: str, type: type[T], **arguments: str | int) -> T:
        """A call about one document. If there is none, the error has the user's name for it."""
        unknown: DocumentUnknown | None = None
        for reference in references(document):
            try:
                return await self._typed(tool, {"document": reference, **arguments}, type)
            except DocumentUnknown as error:
                unknown = unknown or error
        assert unknown is not None
        raise unknown

    async def _pages(
        self, tool: str, arguments: dict[str, Any], type: type[P], *, timeout: float | None = READ_SECONDS
    ) -> AsyncIterator[P]:
        page = await self._typed(tool, arguments, type, timeout=timeout)
        yield page
        while page.next_cursor:
            page = await self._typed(tool, arguments | {"cursor": page.next_cursor}, type, timeout=timeout)
            yield page

    async def _typed(
        self,
        tool: str,
        arguments: dict[str, Any],
        type: type[T],
        *,
        timeout: float | None = READ_SECONDS,
        on_progress: OnProgress | None = None,
    ) -> T:
        result = await self._called(tool, arguments, timeout, on_progress)
        if result.is_error:
            raise refusal(result)
        return decoded(tool, result, type)

    async def _called(
        self,
        tool: str,
        arguments: dict[str, Any],
        timeout: float | None = READ_SECONDS,
        on_progress: OnProgress | None = None,
    ) -> ToolCallResult:
        def request(client: Client) -> Awaitable[ToolCallResult]:
            # The limit of `ask` includes the start of the server.
            return client.call_tool(tool, arguments, timeout=None, on_progress=on_progress)

        with mapped_errors(tool):
            return await self._server.ask(tool, request, repeatable=tool in REPEATABLE, timeout=timeout)

    async def _ask(self, method: str, request: Callable[[Client], Awaitable[T]]) -> T:
        with mapped_errors(method):
            return await self._server.ask(method, request)


def _given(**arguments: int | None) -> dict[str, int]:
    """The arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}
