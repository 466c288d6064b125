"""The documents in memory as trees of blocks: list, search and edit them.

An edit is one write of its document: it is in the journal, makes a version, and can be undone.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from ragconfig.files.uris import path_of
from ragconfig.places import Place
from ragconfig.text_rules import searchable
from ragmemory.blocks.editing import Edited, Position, delete, insert, update
from ragmemory.blocks.labels import find, labels
from ragmemory.blocks.outline import Entry, changed, outline
from ragmemory.blocks.tree import Format, Kind, Tree
from ragmemory.errors import (
    BadArgument,
    BlockNotFound,
    DocumentExists,
    DocumentNotFound,
    NotWrittenBack,
    RagMemoryError,
    StaleVersion,
)
from ragmemory.files.ingestions import OUTSIDE, may_use
from ragmemory.files.reading import title_of
from ragmemory.files.rewriting import Rewriting, common
from ragmemory.ingest.documents import MARKDOWN, complete, is_csv, is_markdown, make_document
from ragmemory.stores.outlines import StoredOutline
from ragmemory.stores.values import check_unicode
from ragmemory.types.blocks import EditedBlock, EditedDocument, ShownBlock
from ragmemory.types.documents import DocumentInfo, DocumentText, Metadata
from ragmemory.types.search import QueryResult
from ragmemory.types.writes import Edit, Injected, Origin, Write

if TYPE_CHECKING:
    from ragmemory.stores.sqlite import Store

logger = logging.getLogger(__name__)

# Search: a text, the most hits, a filter.
Query = Callable[[str, int, Metadata | None], Awaitable[QueryResult]]
# Write a document; returns after the commit.
Submit = Callable[[Write], Awaitable[Injected]]
# Called with a document's id, and the ids of its blocks that have changed or are gone.
OnChange = Callable[[str, Sequence[str]], None]

# Blocks that the outcome of an edit describes.
MOST_EDITED = 50
_PHRASE = re.compile(r'"([^"]*)"|(\S+)')
_GLOB = re.compile(r"[*?\[]")
_WORD = re.compile(r"[^\W_]+")


class Opened(NamedTuple):
    """A document and its blocks: the lists are in their order."""

    stored: DocumentText
    tree: Tree
    outline: list[Entry]
    labels: list[str]
    new_outline: str  # as it is stored

    def place(self, name: str) -> int:
        """The place of a block by its id, label or number. Raises BlockNotFound."""
        place = find(name, [entry.id for entry in self.outline], self.labels)
        if place is None:
            raise BlockNotFound(self.stored.info.uri, name)
        return place

    def places_in(self, start_line: int, end_line: int, kind: Kind | None) -> list[int]:
        """The places of the blocks with some of these lines: of one kind, or no headings and lists."""
        return [
            place
            for place, node in enumerate(self.tree.nodes)
            if (node.kind == kind if kind else node.kind not in ("heading", "list"))
            and (lines := self.tree.own_lines(place))[0] <= end_line
            and lines[1] >= start_line
        ]

    def shown(self, place: int, *, whole: bool = False) -> ShownBlock:
        """A block; with `whole`, its text includes the blocks below it."""
        node, info = self.tree.nodes[place], self.stored.info
        start, end = self.tree.span(place, section=True)
        first, last = self.tree.lines(start, end)
        return ShownBlock(
            document_id=info.document_id,
            uri=info.uri,
            title=info.title,
            version=self.stored.version,
            block_id=self.outline[place].id,
            number=place + 1,
            label=self.labels[place],
            kind=node.kind,
            level=node.level,
            heading=node.heading,
            start_line=first,
            end_line=last,
            text=self.tree.text[start:end] if whole else self.tree.own(place),
        )


class Library:
    """The blocks of one memory's documents."""

    def __init__(
        self, store: Store, query: Query, submit: Submit, roots: Sequence[str], on_change: OnChange
    ) -> None:
        """`roots`: the folders whose files may be written."""
        self._store = store
        self._query = query
        self._submit = submit
        self._roots = roots
        self._on_change = on_change

    # Read

    async def block(self, document: str, block: str) -> tuple[DocumentInfo, ShownBlock]:
        """A block with all that is below it, and its document. Raises DocumentNotFound, BlockNotFound."""
        opened = await self._open(document)
        return opened.stored.info, opened.shown(opened.place(block), whole=True)

    async def blocks(self, document: str, below: str = "", kind: Kind | None = None) -> list[ShownBlock]:
        """The blocks of a document in its order: all, or one with those below it; of one kind.

        Raises DocumentNotFound, BlockNotFound.
        """
        opened = await self._open(document)
        places = opened.tree.below(opened.place(below)) if below else range(len(opened.outline))
        return [opened.shown(place) for place in places if kind in (None, opened.tree.nodes[place].kind)]

    async def search(
        self, query: str, document: str = "", kind: Kind | None = None, passages: int = 10
    ) -> tuple[list[ShownBlock], str]:
        """The blocks in the best passages for a query, best first, and the notice of the search.

        Without a kind, headings and lists are left out. Raises DocumentNotFound and what a query raises.
        """
        filter = None
        if document:
            uri = (await self._store.documents.find(document)).uri
            filter = {"uri": _GLOB.sub(r"[\g<0>]", uri)}
        result = await self._query(query, passages, filter)
        found: dict[tuple[str, int], ShownBlock] = {}
        opened: dict[str, Opened] = {}
        for hit in result.hits:
            with suppress(DocumentNotFound):  # It was removed in the meantime.
                if hit.document_id not in opened:
                    opened[hit.document_id] = await self._open(hit.document_id)
                one = opened[hit.document_id]
                for place in one.places_in(hit.start_line, hit.end_line, kind):
                    found.setdefault((hit.document_id, place), one.shown(place))
        return list(found.values()), result.notice

    async def containing(
        self, query: str, document: str = "", start: tuple[int, int] = (0, 0)
    ) -> AsyncGenerator[tuple[tuple[int, int], ShownBlock], None]:
        """The blocks that hold all words of a query, in their text or in the headings above; by uri.

        Words in double quotes must stand together. `start` is where the search begins: it skips as many
        documents, and as many matching blocks of the next one. Each block comes with the start of a search
        that goes on after it. Raises BadArgument, DocumentNotFound.
        """
        folds = (folded(phrase or word) for phrase, word in _PHRASE.findall(query))
        phrases = list(dict.fromkeys(phrase for phrase in folds if phrase.strip()))
        if not phrases:
            raise BadArgument("query", "holds no words")
        document_id = (await self._store.documents.find(document)).document_id if document else ""
        documents = await self._store.documents.holding(phrases, document_id)
        skipped = start[1]
        for number in range(start[0], len(documents)):
            try:
                opened = await self._open(documents[number])
            except DocumentNotFound:  # It was removed in the meantime.
                continue
            places = await to_thread.run_sync(_holding, opened, phrases)
            for count, place in enumerate(places[skipped:], skipped + 1):
                yield (number, count), opened.shown(place)
            skipped = 0

    async def block_ids(self, document_id: str, prefix: str) -> list[str]:
        """The ids of a document's blocks that begin with `prefix`; none if there is no such document."""
        try:
            opened = await self._open(document_id)
        except DocumentNotFound:
            return []
        return [entry.id for entry in opened.outline if entry.id.startswith(prefix)]

    # Edit

    async def create(self, title: str, content: str, uri: str, origin: Origin) -> EditedDocument:
        """Store a new document; without `uri` it is Markdown, and its uri is made from the title.

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
        tree = await to_thread.run_sync(Tree, document.text, _format(document.uri, metadata))
        entries = outline(tree)
        try:
            done = await self._submit(Write(document, origin, edit=Edit(version, _encoded(entries))))
        except StaleVersion:  # Another client has created it in the meantime.
            raise DocumentExists(document.uri) from None
        edited = Edited(tree, entries, list(range(len(entries))))
        return await self._outcome(done, edited, version, [], document.digest)

    async def insert(
        self,
        document: str,
        version: int,
        content: str,
        block: str,
        position: Position,
        origin: Origin,
        *,
        write_back: bool = False,
    ) -> EditedDocument:
        """Insert blocks: see `editing.insert`; without `block`, at the end of the document.

        Raises DocumentNotFound, BlockNotFound, StaleVersion, BadArgument, NotWrittenBack.
        """
        check_unicode("content", content)

        def change(opened: Opened) -> Edited:
            place = opened.place(block) if block else None
            return insert(opened.tree, opened.outline, place, position, content)

        return await self._edit(document, version, change, origin, write_back=write_back)

    async def update(
        self,
        document: str,
        version: int,
        block: str,
        content: str,
        origin: Origin,
        *,
        section: bool = False,
        write_back: bool = False,
    ) -> EditedDocument:
        """Replace a block: see `editing.update`. Raises what `insert` raises."""
        check_unicode("content", content)

        def change(opened: Opened) -> Edited:
            return update(opened.tree, opened.outline, opened.place(block), content, section=section)

        return await self._edit(document, version, change, origin, write_back=write_back)

    async def delete(
        self,
        document: str,
        version: int,
        block: str,
        origin: Origin,
        *,
        section: bool = False,
        write_back: bool = False,
    ) -> EditedDocument:
        """Remove a block: see `editing.delete`. Raises what `insert` raises."""

        def change(opened: Opened) -> Edited:
            return delete(opened.tree, opened.outline, opened.place(block), section=section)

        return await self._edit(document, version, change, origin, write_back=write_back)

    async def note_changes(self, document_ids: Sequence[str]) -> None:
        """Call `on_change` for the blocks of documents that were written or removed as a whole."""
        try:
            await self._note_changes(document_ids)
        except RagMemoryError as error:
            logger.warning("Changes of blocks were not announced: %s", error)

    async def _note_changes(self, document_ids: Sequence[str]) -> None:
        for before in await self._store.outlines.find(document_ids):
            try:
                await self._open(before.document_id)
            except DocumentNotFound:
                self._on_change(before.document_id, [entry.id for entry in _decoded(before.blocks)])

    async def _open(self, document: str) -> Opened:
        stored = await self._store.documents.whole(document)
        opened = await to_thread.run_sync(_opened, stored)
        if opened.new_outline != stored.outline and self._store.is_writable:
            await self._keep(opened)
        return opened

    async def _keep(self, opened: Opened) -> None:
        """Keep the ids of blocks from when they are first seen: then a block that changes is recognised."""
        info = opened.stored.info
        try:
            row = StoredOutline(info.document_id, opened.stored.digest, opened.new_outline)
            await self._store.outlines.save([row])
        except RagMemoryError as error:
            logger.info("The ids of the blocks of %s were not kept: %s", info.uri, error)
            return
        if different := changed(_decoded(opened.stored.outline), opened.outline):
            self._on_change(info.document_id, different)

    async def _edit(
        self,
        document: str,
        version: int,
        change: Callable[[Opened], Edited],
        origin: Origin,
        *,
        write_back: bool,
    ) -> EditedDocument:
        opened = await self._open(document)
        stored, info = opened.stored, opened.stored.info
        if version != stored.version:
            raise StaleVersion(info.uri, version, stored.version)
        edited = await to_thread.run_sync(change, opened)
        text = edited.tree.text
        metadata = _metadata(stored, text)
        new = await to_thread.run_sync(complete, text, metadata)
        places = moved_places(stored.places, stored.text, text) if stored.places else []
        rewriting: Rewriting | None = None
        if write_back:
            if info.uri.startswith("file:") and not may_use(self._store.path, info.uri):
                raise NotWrittenBack(info.uri, f"it {OUTSIDE}")
            rewriting = await to_thread.run_sync(Rewriting, info.uri, self._roots, stored.text, text)
        try:
            # The file keeps its stamp, so that the next sync does not take back an edit of memory alone.
            stamp = "" if rewriting else stored.stamp
            edit = Edit(version, _encoded(edited.outline), rewriting.replace if rewriting else None)
            new = replace(new, stamp=stamp, places=places)
            done = await self._submit(Write(new, origin, edit=edit))
        finally:
            if rewriting:
                rewriting.discard()
        if different := changed(opened.outline, edited.outline):
            self._on_change(info.document_id, different)
        kept = {entry.id for entry in edited.outline}
        removed = [entry.id for entry in opened.outline if entry.id not in kept]
        path = str(rewriting.path) if rewriting and done.status != "unchanged" else ""
        return await self._outcome(done, edited, version, removed, new.digest, path)

    async def _outcome(
        self, done: Injected, edited: Edited, version: int, removed: list[str], digest: bytes, file: str = ""
    ) -> EditedDocument:
        # If another client has written the document in the meantime, the next edit must be refused.
        with suppress(DocumentNotFound):
            current = await self._store.documents.whole(done.document_id)
            if current.digest == digest:
                version = current.version
        names = labels(edited.tree)
        blocks = []
        for place in edited.written[:MOST_EDITED]:
            lines = edited.tree.lines(*edited.tree.span(place, section=True))
            entry = edited.outline[place]
            blocks.append(EditedBlock(entry.id, place + 1, names[place], entry.kind, *lines))
        return EditedDocument(done.document_id, done.uri, done.status, version, blocks, removed, file)


def _opened(stored: DocumentText) -> Opened:
    tree = Tree(stored.text, _format(stored.info.uri, stored.info.metadata))
    entries = outline(tree, _decoded(stored.outline))
    return Opened(stored, tree, entries, labels(tree), _encoded(entries))


def _format(uri: str, metadata: Metadata) -> Format:
    if is_markdown(uri, metadata.get("media_type")):
        return "markdown"
    return "csv" if is_csv(uri) else "plain"


def _metadata(stored: DocumentText, text: str) -> Metadata:
    """The metadata after an edit: the uri stays, though it may be a hash; the title of a file follows."""
    info = stored.info
    metadata: dict[str, Any] = {**info.metadata, "uri": info.uri}
    if info.uri.startswith("file:"):
        path = path_of(info.uri)
        if metadata.get("title") == title_of(path, stored.text):
            metadata["title"] = title_of(path, text)
    return metadata


def moved_places(places: Sequence[Place], before: str, after: str) -> list[Place]:
    """The places of a text after an edit: those below the changed lines move with them."""
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


def _holding(opened: Opened, phrases: Sequence[str]) -> list[int]:
    """The places of the blocks that hold all phrases."""
    places = []
    title = folded(opened.stored.info.title)
    for place, node in enumerate(opened.tree.nodes):
        text = folded(opened.tree.own(place)) if node.kind != "list" else ""
        above = "" if node.level else title + folded(node.heading)
        # A match in the headings alone would name every block below them.
        if any(phrase in text for phrase in phrases) and all(phrase in text + above for phrase in phrases):
            places.append(place)
    return places


def folded(text: str) -> str:
    """The words of a text as FTS5 sees them, without case and accents, with a space around each."""
    plain = unicodedata.normalize("NFKD", searchable(text).casefold())
    words = _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))
    return f" {' '.join(words)} "


def _encoded(entries: Sequence[Entry]) -> str:
    return msgspec.json.encode(entries).decode()


def _decoded(stored: str) -> list[Entry]:
    """A stored outline; a damaged one is as none, since ids can be derived again."""
    try:
        return msgspec.json.decode(stored, type=list[Entry]) if stored else []
    except msgspec.DecodeError:
        return []
