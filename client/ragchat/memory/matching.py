"""Resolves the user's name for documents: a document, a folder, a glob, a tag, or a part of a name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from msgspec import Struct

from ragchat.errors import (
    DocumentUnknown,
    FolderNamed,
    NoDocumentMatches,
    NotOneDocument,
    SeveralDocumentsMatch,
)
from ragchat.memory.client import MAX_DOCUMENTS, MemoryClient
from ragchat.memory.types import DocumentText
from ragchat.uris import (
    exact_glob,
    folder_globs,
    is_glob,
    is_utf_8,
    name_globs,
    part_globs,
    path_globs,
    references,
    short_uri,
)
from ragcommon.contract.documents import DocumentInfo, DocumentPage, Forgotten

DOCUMENT_ID = re.compile(r"[0-9a-f]{16}")
# Documents without a URI of their own are matched by title, up to this many.
UNNAMED, MAX_UNNAMED = "sha256:*", 10_000
MAX_NAMED = 5  # documents in an error

T = TypeVar("T")


class Catalogue(Protocol):
    """The part of `MemoryClient` that finds documents."""

    async def documents(
        self, limit: int | None = ..., filter: dict[str, Any] | None = ...
    ) -> DocumentPage: ...
    async def show(self, document: str) -> DocumentText: ...


class Match(Struct, frozen=True):
    """The first matching documents, their total number, and the filter for a query.

    `filter` is None if no filter can express the match.
    """

    documents: list[DocumentInfo]
    total: int
    filter: dict[str, Any] | None


async def match(memory: Catalogue, words: str, limit: int = 1) -> Match:
    """Up to `limit` documents that `words` match. Raises NoDocumentMatches.

    The first kind with a match is used: an id, a URI, the path of a file or folder, a glob, a tag, a part of
    the displayed name.
    """
    if DOCUMENT_ID.fullmatch(words) and (document := await _by_id(memory, words)):
        return Match([document], 1, {"uri": exact_glob(document.uri)})
    for filter in chain.from_iterable(map(_meanings, _forms(words))):
        page = await memory.documents(limit, filter)
        if page.total:
            return Match(page.documents, page.total, filter)
    unnamed = await memory.documents(MAX_UNNAMED, {"uri": UNNAMED})
    titled = [document for document in unnamed.documents if words.casefold() in document.title.casefold()]
    if not titled:
        raise NoDocumentMatches(words)
    return Match(
        titled[:limit], len(titled), {"uri": exact_glob(titled[0].uri)} if len(titled) == 1 else None
    )


async def to_remove(memory: Catalogue, words: str) -> list[str]:
    """The URIs that a glob matches; `words` themselves if they are not a glob.

    Tags, folders and parts of names do not match here, so that nothing is removed by accident. Raises
    NoDocumentMatches, FolderNamed.
    """
    if not is_glob(words):
        [folder] = folder_globs(words)
        if inside := (await memory.documents(1, {"uri": folder})).total:
            exact = [await memory.documents(1, {"uri": exact_glob(one)}) for one in references(words)]
            if not any(page.total for page in exact):
                raise FolderNamed(words, inside, f"{words.rstrip('/')}/*")
        _, *others = _forms(words)
        for uri in chain.from_iterable(map(references, others)):
            if (await memory.documents(1, {"uri": exact_glob(uri)})).total:
                return [uri]
        return [words]
    globs = ([*map(exact_glob, references(form)), *path_globs(form)] for form in _forms(words))
    for glob in chain.from_iterable(globs):
        if found := (await memory.documents(None, {"uri": glob})).documents:
            return [document.uri for document in found]
    raise NoDocumentMatches(words)


async def forget(memory: MemoryClient, document: str, group: str) -> Forgotten:
    """Remove a document by its id, URI or path, as one of the writes of `group`.

    A name alone may mean another one: for it the DocumentUnknown names the paths.
    """
    try:
        return await memory.forget(document, group)
    except DocumentUnknown as error:
        found = await _with_name(memory, document)
        if not found.total:
            raise
        paths = [short_uri(one.uri, one.document_id) for one in found.documents]
        reason = f"{document} is removed only by its path or its id, such as {', '.join(paths)}."
        raise DocumentUnknown(error.word, reason, error.hint) from None


async def listed(memory: Catalogue, words: str, limit: int) -> DocumentPage:
    """Up to `limit` documents that `words` match; "" matches all."""
    if not words:
        return await memory.documents(limit)
    try:
        found = await match(memory, words, limit)
    except NoDocumentMatches:
        return DocumentPage([], 0)
    return DocumentPage(found.documents, found.total)


async def about_one(memory: Catalogue, words: str, ask: Callable[[str], Awaitable[T]]) -> T:
    """Call `ask` with `words` as an id, URI or path, else with the id of the only document that they match.

    Raises NotOneDocument, and what `ask` raises.
    """
    try:
        return await ask(words)
    except DocumentUnknown as error:
        unknown = error
    try:
        found = await match(memory, words, limit=MAX_NAMED)
    except NoDocumentMatches:
        raise unknown from None
    return await ask(_only(words, [(one.uri, one.title) for one in found.documents], found.total))


async def called(memory: Catalogue, name: str) -> DocumentText:
    """The document with this id, URI or path, or else the only one with this name: a part of it will not do.

    Raises NotOneDocument, and as `Catalogue.show`.
    """
    try:
        return await memory.show(name)
    except DocumentUnknown as error:
        unknown = error
    page = await _with_name(memory, name)
    if not page.total:
        raise unknown
    return await memory.show(_only(name, [(one.uri, one.title) for one in page.documents], page.total))


async def _with_name(memory: Catalogue, name: str) -> DocumentPage:
    """The first MAX_NAMED documents whose path ends with a whole name, else whose title it is."""
    for glob in chain.from_iterable(map(name_globs, _forms(name))):
        page = await memory.documents(MAX_NAMED, {"uri": glob})
        if page.total:
            return page
    unnamed = await memory.documents(MAX_UNNAMED, {"uri": UNNAMED})
    titled = [one for one in unnamed.documents if one.title.casefold() == name.casefold()]
    return DocumentPage(titled[:MAX_NAMED], len(titled))


async def about_past(memory: MemoryClient, words: str, ask: Callable[[str], Awaitable[T]]) -> T:
    """Like `about_one`, also for a document that was removed, by the end of its path.

    Those of the last MAX_DOCUMENTS writes are known.
    """
    try:
        return await about_one(memory, words, ask)
    except DocumentUnknown:
        ends = tuple(f"/{quote(form, safe='/~')}" for form in _forms(words))
        ending = {entry.uri: "" for entry in await memory.journal(MAX_DOCUMENTS) if entry.uri.endswith(ends)}
        if not ending:
            raise
    return await ask(_only(words, [*ending.items()], len(ending)))


def _only(words: str, documents: Sequence[tuple[str, str]], total: int) -> str:
    """The URI of the only document. Raises NotOneDocument, which names the first by URI and title."""
    if total > 1:
        names = [short_uri(*one) for one in documents[:MAX_NAMED]]
        raise NotOneDocument(words, names + ["…"] * (total > len(names)), total)
    return documents[0][0]


async def filter_of(memory: Catalogue, words: str) -> dict[str, Any]:
    """The filter of a query for the documents that `words` match.

    Raises NoDocumentMatches, SeveralDocumentsMatch.
    """
    found = await match(memory, words, limit=MAX_UNNAMED)
    if found.filter is None:
        raise SeveralDocumentsMatch(words, [document.document_id for document in found.documents])
    return found.filter


def _forms(words: str) -> Sequence[str]:
    """`words` as they are, then with composed and with decomposed accents.

    The files of a Mac's archives and shares have decomposed names, and keyboards write composed ones.
    """
    return [*dict.fromkeys((words, *(unicodedata.normalize(form, words) for form in ("NFC", "NFD"))))]


def _meanings(words: str) -> Iterator[dict[str, Any]]:
    """Filters for the possible meanings of `words`, most likely first."""
    for reference in references(words):
        yield {"uri": exact_glob(reference)}
    for glob in folder_globs(words):
        yield {"uri": glob}
    if is_glob(words):
        for glob in path_globs(words):
            yield {"uri": glob}
    if is_utf_8(words):
        yield {"tags": [words]}
    if words.startswith("#"):
        yield {"tags": [words[1:]]}
    if not is_glob(words):
        for glob in part_globs(words):
            yield {"uri": glob}


async def _by_id(memory: Catalogue, document_id: str) -> DocumentInfo | None:
    try:
        return await memory.show(document_id)
    except DocumentUnknown:
        return None
