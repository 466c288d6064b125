"""The documents in memory as trees of blocks: list, search and edit them.

An edit is one write of its document: it is in the journal, makes a version, and can be undone.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.documents import DocumentInfo, Injected, Metadata
from ragcommon.contract.history import Origin
from ragcommon.contract.search import QueryResult
from ragcommon.files.uris import path_in
from ragcommon.text.places import Place
from ragmemory.blocks.block_view import (
    BlockView,
    decoded,
    encoded,
    format_of,
    fulltext_words,
    matching_blocks,
    view_of,
)
from ragmemory.blocks.editing import Edited, Position, delete, insert, update
from ragmemory.blocks.labels import labels
from ragmemory.blocks.outline import changed, outline
from ragmemory.blocks.tree import Tree
from ragmemory.errors import (
    BadArgument,
    DocumentExists,
    DocumentNotFound,
    NotWrittenBack,
    RagMemoryError,
    StaleVersion,
)
from ragmemory.files.formats.text import title_of
from ragmemory.files.ingestions import OUTSIDE, may_use
from ragmemory.files.rewriting import Rewriting, common
from ragmemory.files.roots import of_stored
from ragmemory.ingest.documents import MARKDOWN, complete, make_document
from ragmemory.stores.outlines import StoredOutline
from ragmemory.stores.values import check_unicode
from ragmemory.types.blocks import BlockKind, EditedBlock, EditedDocument, ShownBlock
from ragmemory.types.documents import DocumentText
from ragmemory.types.writes import Edit, Write

if TYPE_CHECKING:
    from ragmemory.stores.store import Store

logger = logging.getLogger(__name__)

# Search: a text, the number of hits, a filter.
Query = Callable[[str, int, Metadata | None], Awaitable[QueryResult]]
# Write a document; returns after the commit.
Submit = Callable[[Write], Awaitable[Injected]]
# Edits a document. It runs in a thread.
Change = Callable[[BlockView], Edited]
# Called with a document's id, and the ids of its changed or removed blocks.
OnChange = Callable[[str, Sequence[str]], None]

# Blocks that the outcome of an edit lists.
MAX_REPORTED = 50
_PHRASE = re.compile(r'"([^"]*)"|(\S+)')
_GLOB = re.compile(r"[*?\[]")


@dataclass(eq=False)
class BlockEditor:
    """Lists, searches and edits the blocks of the documents in one memory.

    `roots`: the folders whose files may be written.
    """

    _store: Store
    _query: Query
    _submit: Submit
    _roots: Sequence[str]
    _on_change: OnChange

    # Read

    async def block(self, document: str, block: str) -> tuple[DocumentInfo, ShownBlock]:
        """A block with its descendants, and its document. Raises DocumentNotFound, BlockNotFound."""
        view = await self._view(document)
        return view.stored.info, view.shown(view.find(block), whole=True)

    async def blocks(self, document: str, below: str = "", kind: BlockKind | None = None) -> list[ShownBlock]:
        """The blocks of a document in order: all, or one and its descendants; optionally of one kind.

        Raises DocumentNotFound, BlockNotFound.
        """
        view = await self._view(document)
        indexes = view.tree.below(view.find(below)) if below else range(len(view.outline))
        return [view.shown(index) for index in indexes if kind in (None, view.tree.nodes[index].kind)]

    async def search(
        self, query: str, document: str = "", kind: BlockKind | None = None, passages: int = 10
    ) -> tuple[list[ShownBlock], str]:
        """The blocks in the best passages for a query, best first, and the notice of the search.

        Without a kind, headings and lists are omitted. Raises DocumentNotFound and the errors of a query.
        """
        filter = None
        if document:
            uri = (await self._store.documents.find(document)).uri
            filter = {"uri": _GLOB.sub(r"[\g<0>]", uri)}
        result = await self._query(query, passages, filter)
        found: dict[tuple[str, int], ShownBlock] = {}
        views: dict[str, BlockView] = {}
        for hit in result.hits:
            with suppress(DocumentNotFound):  # removed in the meantime
                if hit.document_id not in views:
                    views[hit.document_id] = await self._view(hit.document_id)
                view = views[hit.document_id]
                for index in view.indexes_in(hit.start_line, hit.end_line, kind):
                    found.setdefault((hit.document_id, index), view.shown(index))
        return list(found.values()), result.notice

    async def containing(
        self, query: str, document: str = "", start: tuple[int, int] = (0, 0)
    ) -> AsyncGenerator[tuple[tuple[int, int], ShownBlock], None]:
        """The blocks that contain all words of a query, in their text or the headings above, by uri.

        Words in double quotes are a phrase. `start` is the number of documents to skip, and of matching
        blocks in the next one. Each block comes with the `start` that continues after it. Raises BadArgument,
        DocumentNotFound.
        """
        folds = (fulltext_words(phrase or word) for phrase, word in _PHRASE.findall(query))
        phrases = list(dict.fromkeys(phrase for phrase in folds if phrase.strip()))
        if not phrases:
            raise BadArgument("query", "contains no words")
        document_id = (await self._store.documents.find(document)).document_id if document else ""
        documents = await self._store.documents.holding(phrases, document_id)
        skipped = start[1]
        for number in range(start[0], len(documents)):
            try:
                view = await self._view(documents[number])
            except DocumentNotFound:  # removed in the meantime
                continue
            indexes = await to_thread.run_sync(matching_blocks, view, phrases)
            for count, index in enumerate(indexes[skipped:], skipped + 1):
                yield (number, count), view.shown(index)
            skipped = 0

    async def block_ids(self, document_id: str, prefix: str) -> list[str]:
        """The ids of a document's blocks that begin with `prefix`; none if there is no such document."""
        try:
            view = await self._view(document_id)
        except DocumentNotFound:
            return []
        return [entry.id for entry in view.outline if entry.id.startswith(prefix)]

    # Edit

    async def create(self, title: str, content: str, uri: str, origin: Origin) -> EditedDocument:
        """Store a new document; without `uri` it is Markdown, and its uri is derived from the title.

        Raises BadArgument, DocumentExists.
        """
        if not title.strip():
            raise BadArgument("title", "is empty")
        metadata: Metadata = {"uri": uri, "title": title.strip()}
        if not uri:
            metadata |= {"uri": f"note:{quote(title.strip(), safe='')}", "media_type": MARKDOWN}
        document = await to_thread.run_sync(make_document, content, metadata)
        if await self._store.find([document.uri]):
            raise DocumentExists(document.uri)
        version = await self._store.journal.current_version(document.uri)
        tree = await to_thread.run_sync(Tree, document.text, format_of(document.uri, metadata))
        entries = outline(tree)
        try:
            done = await self._submit(Write(document, origin, edit=Edit(version, encoded(entries))))
        except StaleVersion:  # Another client created it in the meantime.
            raise DocumentExists(document.uri) from None
        edited = Edited(tree, entries, list(range(len(entries))))
        return await self._outcome(done, edited, version, [], document.digest)

    async def edit(
        self, document: str, version: int, change: Change, origin: Origin, *, write_back: bool = False
    ) -> EditedDocument:
        """Change the blocks of a document: see `insertion`, `replacement` and `removal`.

        Raises DocumentNotFound, BlockNotFound, StaleVersion, BadArgument, NotWrittenBack.
        """
        view = await self._view(document)
        stored, info = view.stored, view.stored.info
        if version != stored.version:
            raise StaleVersion(info.uri, version, stored.version)
        edited = await to_thread.run_sync(change, view)
        text = edited.tree.text
        metadata = _metadata(stored, text)
        new = await to_thread.run_sync(complete, text, metadata)
        places = moved_places(stored.places, stored.text, text) if stored.places else []
        rewriting = await self._rewriting(stored, text) if write_back else None
        try:
            # An edit of memory alone keeps the stamp, so that the next sync does not revert it.
            stamp = "" if rewriting else stored.stamp
            edit = Edit(version, encoded(edited.outline), rewriting.replace if rewriting else None)
            new = replace(new, stamp=stamp, places=places)
            done = await self._submit(Write(new, origin, edit=edit))
        except RagMemoryError:
            if rewriting:  # The commit may have failed after the file was replaced.
                await rewriting.put_back()
            raise
        finally:
            if rewriting:
                rewriting.discard()
        if different := changed(view.outline, edited.outline):
            self._on_change(info.document_id, different)
        kept = {entry.id for entry in edited.outline}
        removed = [entry.id for entry in view.outline if entry.id not in kept]
        path = str(rewriting.path) if rewriting and done.status != "unchanged" else ""
        return await self._outcome(done, edited, version, removed, new.digest, path)

    async def _rewriting(self, stored: DocumentText, text: str) -> Rewriting:
        """The rewriting of a document's file to its new text. Raises NotWrittenBack."""
        info = stored.info
        if info.machine:
            raise NotWrittenBack(info.uri, f"its file is on {info.machine}")
        if info.uri.startswith("file:") and not may_use(self._store.path, info.uri):
            raise NotWrittenBack(info.uri, f"it {OUTSIDE}")
        roots = of_stored(self._store.path, self._roots)
        return await to_thread.run_sync(Rewriting, info.uri, roots, stored.text, text)

    async def note_changes(self, document_ids: Sequence[str]) -> None:
        """Call `on_change` for the blocks of documents that were rewritten or removed as a whole."""
        try:
            for before in await self._store.outlines.find(document_ids):
                try:
                    await self._view(before.document_id)  # Announces the changed blocks.
                except DocumentNotFound:
                    self._on_change(before.document_id, [entry.id for entry in decoded(before.blocks)])
        except RagMemoryError as error:
            logger.warning("Changes of blocks were not announced: %s", error)

    async def _view(self, document: str) -> BlockView:
        stored = await self._store.documents.whole(document)
        view = await to_thread.run_sync(view_of, stored)
        if view.encoded_outline != stored.outline and self._store.engine.is_writable:
            await self._keep(view)
        return view

    async def _keep(self, view: BlockView) -> None:
        """Store the ids of blocks when they are first seen, so that a changed block keeps its id."""
        info = view.stored.info
        try:
            row = StoredOutline(info.document_id, view.stored.digest, view.encoded_outline)
            await self._store.outlines.save([row])
        except RagMemoryError as error:
            logger.info("The ids of the blocks of %s were not kept: %s", info.uri, error)
            return
        if different := changed(decoded(view.stored.outline), view.outline):
            self._on_change(info.document_id, different)

    async def _outcome(
        self, done: Injected, edited: Edited, version: int, removed: list[str], digest: bytes, file: str = ""
    ) -> EditedDocument:
        # Return the old version if another client has written since, so that the next edit is refused.
        with suppress(DocumentNotFound):
            current = await self._store.documents.whole(done.document_id)
            if current.digest == digest:
                version = current.version
        names = labels(edited.tree)
        blocks = []
        for index in edited.written[:MAX_REPORTED]:
            lines = edited.tree.lines(*edited.tree.span(index, section=True))
            entry = edited.outline[index]
            blocks.append(EditedBlock(entry.id, index + 1, names[index], entry.kind, *lines))
        return EditedDocument(done.document_id, done.uri, done.status, version, blocks, removed, file)


def insertion(content: str, block: str = "", position: Position = "after") -> Change:
    """Insert blocks: see `editing.insert`; without `block`, at the end of the document."""
    check_unicode("content", content)
    return lambda view: insert(
        view.tree, view.outline, view.find(block) if block else None, position, content
    )


def replacement(block: str, content: str, *, section: bool = False) -> Change:
    """Replace a block: see `editing.update`."""
    check_unicode("content", content)
    return lambda view: update(view.tree, view.outline, view.find(block), content, section=section)


def removal(block: str, *, section: bool = False) -> Change:
    """Remove a block: see `editing.delete`."""
    return lambda view: delete(view.tree, view.outline, view.find(block), section=section)


def _metadata(stored: DocumentText, text: str) -> Metadata:
    """The metadata after an edit: the uri stays, even if it is a hash; a title from the text is updated."""
    info = stored.info
    metadata: dict[str, Any] = {**info.metadata, "uri": info.uri}
    path = path_in(info.uri)
    if path is not None and metadata.get("title") == title_of(path, stored.text):
        metadata["title"] = title_of(path, text)
    return metadata


def moved_places(places: Sequence[Place], before: str, after: str) -> list[Place]:
    """The places of a text after an edit: those below the changed lines are shifted."""
    old, new = before.split("\n"), after.split("\n")
    first = common(old, new)
    end = len(old) - common(old[first:][::-1], new[first:][::-1])  # the last line that was changed
    shift = len(new) - len(old)
    moved: dict[int, str] = {}
    for line, label in places:
        if line > end:
            line += shift
        elif line > first:
            line = max(first + 1, min(line, end + shift))
        moved[line] = label
    return sorted(moved.items())
