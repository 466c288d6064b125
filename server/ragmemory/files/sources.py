"""Sources: the files, folders and web pages that memory is kept in sync with.

A source is a resolved path on one machine, or the address of a page after all redirects. A path inside
another source is not added, unless that source's walk skips it because it is hidden or ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.files import AddedSource, Ingestion, RemovedSource, Source
from ragcommon.contract.history import Origin
from ragcommon.files.decoding import NoText, NotText
from ragcommon.files.uris import is_address, path_of
from ragmemory.errors import NoSources, PagesNotAllowed, PathNotAllowed, SourceNotFound
from ragmemory.files.formats.file_text import FileText
from ragmemory.files.ingestions import OUTSIDE, Ingestions, may_use
from ragmemory.files.reading import read_file
from ragmemory.files.roots import is_within, of_stored
from ragmemory.files.walking import MISSING, is_folder, is_gone, is_walked, obstacle, resolved, why_unreadable

if TYPE_CHECKING:
    from ragmemory.ingest.writer import Writer
    from ragmemory.stores.store import Store


@dataclass(eq=False)
class Sources:
    """The sources of one memory, which its ingestions load."""

    _store: Store
    _writer: Writer
    _ingestions: Ingestions

    async def add(self, paths: Sequence[str]) -> list[AddedSource]:
        """Add files and folders (paths or file URIs) and addresses of pages without loading them.

        Raises BadArgument, PathNotAllowed.
        """
        return [await self._add(self._ingestions.allowed(path)) for path in dict.fromkeys(paths)]

    async def _add(self, uri: str) -> AddedSource:
        try:
            uri = await self._final(uri)
        except FileNotFoundError:
            return AddedSource(uri, "refused", reason=MISSING)
        except NotText as error:
            return AddedSource(uri, "refused", reason=str(error))
        except (OSError, RuntimeError) as error:
            return AddedSource(uri, "refused", reason=why_unreadable(error))
        path = path_of(uri)
        if not may_use(self._store.path, uri):
            return AddedSource(uri, "refused", reason=OUTSIDE)
        own, stored = self._store.engine.machine, await self._stored()
        known = {source.uri: source for source in stored if source.machine == own}
        if uri in known:
            return AddedSource(uri, "known")
        # Nothing is in a page.
        others = {} if is_address(uri) else {one: path_of(one) for one in known if not is_address(one)}
        for other, outer in others.items():
            if await to_thread.run_sync(_covers, outer, path):
                return AddedSource(uri, "covered", other)
        covers = [other for other, inner in others.items() if await to_thread.run_sync(_covers, path, inner)]
        # One of an earlier release is of no machine, until it is added again where it is.
        replaced = [source for source in stored if source.uri == uri and not source.machine]
        await self._store.sources.change(uri, [*replaced, *(known[other] for other in covers)])
        return AddedSource(uri, "added", covers=covers)

    async def _final(self, uri: str) -> str:
        """The address of a page after all redirects, or the URI of a path after all links.

        Raises NotFetched, OSError, RuntimeError, PagesNotAllowed, PathNotAllowed.
        """
        if not is_address(uri):
            found = await to_thread.run_sync(_existing, uri)
            if not is_within(self._ingestions.roots, found):
                raise PathNotAllowed(uri)
            return found.as_uri()
        if self._ingestions.web is None:
            raise PagesNotAllowed(uri)
        return await self._ingestions.web.final(uri)

    async def listed(self) -> list[Source]:
        """All sources, ordered by URI."""
        sources = await self._stored()
        roots, own = of_stored(self._store.path, self._ingestions.roots), self._store.engine.machine
        return await to_thread.run_sync(lambda: [_examined(source, roots, own) for source in sources])

    async def _stored(self) -> list[Source]:
        """The sources, without those outside the repository, which others may have put into its memory."""
        sources = await self._store.sources.listed()
        return [source for source in sources if may_use(self._store.path, source.uri)]

    async def _here(self) -> list[Source]:
        """The sources of an earlier release, which are of no machine, then those of this machine."""
        own = self._store.engine.machine
        here = [one for one in await self._stored() if one.machine in (own, "")]
        return sorted(here, key=lambda one: one.machine)

    async def remove(self, source: str, origin: Origin, *, forget: bool, machine: str = "") -> RemovedSource:
        """Remove a source of this machine, or of another one.

        With `forget`, also the documents that the machine has loaded of it alone. Raises SourceNotFound,
        BadArgument, PathNotAllowed.
        """
        if machine in ("", self._store.engine.machine):
            sources = await self._here()
            uri = await self._resolved(source, sources)
        else:  # Where its links lead is known there only.
            uri = _uri(source)
            sources = [one for one in await self._stored() if one.machine == machine]
        found = next((one for one in reversed(sources) if one.uri == uri), None)
        if found is None:
            raise await self._not_found(uri, sources)
        path = path_of(uri)
        others = [path_of(one.uri) for one in sources if one.machine == found.machine and one != found]
        inner = [other for other in others if other.is_relative_to(path)]
        documents = [
            document
            for document in await self._store.documents.uris_under(uri, found.machine)
            if not any(path_of(document).is_relative_to(other) for other in inner)
        ]
        if forget:
            await self._writer.forget_all(documents, origin, found.machine)
        await self._store.sources.change(None, [found])
        return RemovedSource(uri, len(documents), forget)

    async def _resolved(self, source: str, sources: Sequence[Source]) -> str:
        if is_address(source):
            return _uri(source)
        named = self._ingestions.allowed(source)
        if any(one.uri == named for one in sources):  # It may be a link by now.
            return named
        return (await to_thread.run_sync(resolved, path_of(named))).as_uri()

    async def _not_found(self, uri: str, sources: Sequence[Source]) -> SourceNotFound:
        try:
            path = path_of(uri)
        except ValueError:
            return SourceNotFound(uri)
        if is_address(uri):
            return SourceNotFound(uri)
        if others := [one.machine for one in await self._stored() if one.uri == uri]:
            hint = f"`ragchat source rm PATH --machine {others[0]}` removes it."
            return SourceNotFound(str(path), others=others, hint=hint)
        outer = next((one for one in sources if path.is_relative_to(path_of(one.uri))), None)
        return SourceNotFound(str(path), str(path_of(outer.uri)) if outer else "")

    async def sync(self, paths: Sequence[str], origin: Origin, within: Sequence[str] = ()) -> Ingestion:
        """Start to sync memory with some files and folders, by default with all sources of this machine.

        `within` limits the sync to these files and folders. Raises NoSources, BadArgument, PathNotAllowed.
        """
        here = [source.uri for source in await self._here()]
        if not paths:
            await self._follow_links()
        sources = paths or [uri for uri in here if self._ingestions.web or not is_address(uri)]
        if not sources and here:
            raise PagesNotAllowed(here[0])
        if not sources:
            raise NoSources(sorted({source.machine for source in await self._stored()}))
        return await self._ingestions.start(
            sources, prune=True, origin=origin, within=within, are_stored=not paths
        )

    async def _follow_links(self) -> None:
        """Register sources that have become links where these lead; their next sync loads them from there."""
        for source in await self._here():
            if is_address(source.uri):
                continue
            path = path_of(source.uri)
            if await to_thread.run_sync(resolved, path) != path:
                with suppress(PathNotAllowed):
                    if (await self._add(source.uri)).status != "refused":
                        await self._store.sources.change(None, [source])

    async def next_sync(self, uri: str) -> Literal["", "updated", "removed"]:
        """The effect of the next sync of the sources of this machine on a document."""
        sources = [path_of(source.uri) for source in await self._here() if not is_address(source.uri)]
        try:
            path = path_of("" if is_address(uri) else uri)
        except ValueError:  # It has no file.
            return ""
        within = [source for source in sources if path.is_relative_to(source)]
        roots = of_stored(self._store.path, self._ingestions.roots)
        if not within or not await to_thread.run_sync(is_within, roots, path):
            return ""
        stored = await self._store.documents.file(uri)
        is_own = stored is not None and stored.machine == self._store.engine.machine
        if await to_thread.run_sync(is_gone, uri):
            return "removed" if is_own else ""
        if not await to_thread.run_sync(lambda: any(one == path or is_walked(one, path) for one in within)):
            return ""
        try:
            read = await to_thread.run_sync(read_file, path)
        except NoText:
            return "removed" if is_own else ""
        except (NotText, OSError):
            return ""
        _, text = await self._store.documents.read(uri)
        return "" if isinstance(read, FileText) and read.text == text else "updated"


def _examined(source: Source, roots: Sequence[str], own: str) -> Source:
    """The source with what is wrong with it, if it is of this machine."""
    if source.machine not in (own, ""):
        return source
    problem = "" if is_address(source.uri) else obstacle(path_of(source.uri), roots)
    return replace(source, exists=problem != MISSING, problem=problem, machine="")


def _uri(source: str) -> str:
    if is_address(source):
        from ragmemory.web.fetching import normalized  # with the HTTP client

        with suppress(NotText):
            return normalized(source)
        return source
    return source if source.startswith("file:") else Path(source).absolute().as_uri()


def _existing(uri: str) -> Path:
    """The resolved path of a file URI. Raises OSError, RuntimeError."""
    if not uri:
        raise FileNotFoundError
    return path_of(uri).resolve(strict=True)


def _covers(outer: Path, inner: Path) -> bool:
    """Whether a walk of `outer` reaches `inner`."""
    return outer != inner and inner.is_relative_to(outer) and is_folder(outer) and is_walked(outer, inner)
