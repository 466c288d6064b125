"""The journal of writes; the versions of documents: read, compare, restore; undo.

An undo itself is in `undoing`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.documents import Metadata
from ragcommon.contract.history import Difference, Origin, Restored, Undone, Version, Versions
from ragmemory.errors import VersionNotFound, VersionNotKept
from ragmemory.history.undoing import OnProgress, document_before, undo
from ragmemory.ingest.documents import complete, document_id
from ragmemory.ingest.writer import Writer
from ragmemory.limits import MAX_VERSIONS
from ragmemory.stores.store import Store
from ragmemory.types.history import Selection, VersionText
from ragmemory.types.writes import Write

_LAST_CHANGE = Selection()


class History:
    """A document is named by its id or uri; it may have been removed.

    `cancel_group` ends the ingestion with this group of writes.
    """

    def __init__(self, store: Store, writer: Writer, cancel_group: Callable[[str], Awaitable[None]]) -> None:
        self.journal = store.journal.entries
        self._store = store
        self._writer = writer
        self._cancel_group = cancel_group

    async def versions(self, document: str, limit: int = MAX_VERSIONS) -> Versions:
        """The newest versions of a document, the current one first. Raises DocumentNotFound."""
        uri = await self._store.versions.uri_of(document)
        return Versions(document_id(uri), uri, await self._store.versions.newest(uri, limit))

    async def version(self, document: str, number: int | None = None) -> VersionText:
        """A version with its text; the current one if `number` is None.

        Raises DocumentNotFound, VersionNotFound, VersionNotKept, MemoryDamaged.
        """
        found = await self.versions(document)
        return await _read(self._store, found.uri, _find(found, number))

    async def difference(
        self, document: str, before: int | None = None, after: int | None = None
    ) -> Difference:
        """What changed from one version to another: by default from the previous to the current one.

        Without `before` it is the version before `after`. Raises what `version` raises.
        """
        found = await self.versions(document)
        new = _find(found, after)
        old = _find(found, before) if before is not None else _previous(found, new)
        new_text = await _read(self._store, found.uri, new)
        old_text = await _read(self._store, found.uri, old) if old else None
        diff = await to_thread.run_sync(_unified, old_text, new_text)
        return Difference(found.uri, old, new, diff)

    async def restore(self, document: str, number: int | None, origin: Origin) -> Restored:
        """Make a version the current one again, as a new write.

        By default the newest earlier one with a text. Raises what `version` and a write raise.
        """
        found = await self.versions(document)
        kept = [one for one in found.versions[1:] if one.characters is not None]
        earlier = kept if number is None else [_find(found, number)]
        chosen = next((one for one in earlier if one.action != "removed"), None)
        if chosen is None:
            raise VersionNotFound(found.uri, number or 0)
        read = await _read(self._store, found.uri, chosen)
        restored = await to_thread.run_sync(complete, read.text, read.metadata)
        restored = replace(restored, places=read.places)
        done = await self._writer.queue.submit(Write(restored, origin, added_at=read.added_at))
        return Restored(done.document_id, done.uri, chosen.number, done.status, done.chunks)

    async def undo(
        self,
        origin: Origin,
        on_progress: OnProgress | None = None,
        selection: Selection = _LAST_CHANGE,
    ) -> Undone:
        """Undo the writes of `selection`; by default the last one not undone yet, with all of its group.

        An ingestion that still runs is cancelled before its group is undone. Raises: see `undoing.undo`.
        """
        if selection == _LAST_CHANGE:
            entries, _ = await self._store.journal.change(selection, None)
            if entries and entries[0].origin.group:
                await self._cancel_group(entries[0].origin.group)
        elif selection.origin:
            await self._cancel_group(selection.origin)
        return await undo(self._store, self._writer, selection, origin, on_progress)


def _find(found: Versions, number: int | None) -> Version:
    """The version with this number; None is the current one."""
    for one in found.versions:
        if number in (one.number, None):
            return one
    raise VersionNotFound(found.uri, number or 0)


def _previous(found: Versions, version: Version) -> Version | None:
    return next((one for one in found.versions if one.number < version.number), None)


async def _read(store: Store, uri: str, version: Version) -> VersionText:
    if version.action == "removed":
        return VersionText(uri, version, "", {})
    replacing = await store.versions.replaced_by(uri, version.number)
    if replacing is None:
        info, text = await store.documents.read(uri)
        return VersionText(uri, version, text, info.metadata, info.added_at)
    before = (await store.versions.before_writes([replacing])).get(replacing)
    if before is None:
        raise VersionNotKept(uri, version.number)
    await to_thread.run_sync(document_before, store.path, replacing, uri, before)
    return VersionText(uri, version, before.text, before.metadata, before.added_at, before.places)


def _unified(before: VersionText | None, after: VersionText) -> str:
    old_text, old_metadata = (before.text, before.metadata) if before else ("", {})
    names = [_name(before), _name(after)]
    lines = [
        *_diff(_lines(old_text), _lines(after.text), names, ""),
        *_diff(_json_lines(old_metadata), _json_lines(after.metadata), names, " (metadata)"),
    ]
    return "\n".join(lines)


def _name(version: VersionText | None) -> str:
    return f"{version.uri} (version {version.version.number})" if version else "/dev/null"


def _diff(before: list[str], after: list[str], names: list[str], part: str) -> Iterator[str]:
    from difflib import unified_diff

    old, new = (name + part for name in names)
    return unified_diff(before, after, old, new, lineterm="")


def _lines(text: str) -> list[str]:
    """The lines of a text. As in other diffs, a last line without a line end has a note below it."""
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _json_lines(metadata: Metadata) -> list[str]:
    if not metadata:
        return []
    return msgspec.json.format(msgspec.json.encode(metadata, order="sorted"), indent=2).decode().split("\n")
