"""The saved form of a chunk index: reading it at a start, and when segments are written and merged.

Blocking. The caller decides when to write, and holds the folder's lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from ragmemory.search.index.chunk_index import ChunkIndex, Removed
from ragmemory.search.index.columns import ColumnWriter, open_columns
from ragmemory.search.index.errors import DamagedFile, MergeStopped
from ragmemory.search.index.folder import FORMAT, MANIFEST, IndexFolder, Listed, ListedFile, Manifest
from ragmemory.search.index.postings import MAX_ROWS
from ragmemory.search.index.segments import Segment
from ragmemory.types.changes import Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


logger = logging.getLogger(__name__)

# Neighbours that are merged at a time. With more, a chunk is copied less often, but each merge takes longer.
MAX_MERGED = 6
# Maximum size of the largest merged segment relative to the others together: adding a note to a memory of a
# million chunks must not copy 300 MB. One more segment costs less.
MAX_SIZE_RATIO = 16
# The share of removed rows above which a segment is rewritten without them.
MAX_REMOVED = 0.25


# Neighbouring segments, and the live rows of each (None: all).
Merge = tuple[Sequence["Segment"], Sequence["NDArray[np.int64] | None"]]


class Saved(NamedTuple):
    """The content of a folder."""

    checkpoint: Checkpoint
    segments: list[Segment]
    removed: Removed


class SavedIndex:
    """The index in a folder, if it was derived from the store with this fingerprint."""

    def __init__(self, folder: IndexFolder, fingerprint: str) -> None:
        self.folder = folder
        self.fingerprint = fingerprint
        self._version: tuple[int, int] | None = None
        self._removed: tuple[ListedFile | None, bytes] = None, b""
        self._committed: Manifest | None = None

    @property
    def is_current(self) -> bool:
        """Whether the folder is as this process last read or wrote it."""
        return self.folder.version() == self._version

    def read(self, known: Sequence[Segment] = ()) -> Saved:
        """The saved index, or an empty one if it has another fingerprint. A lost file leaves a gap.

        Segments in `known` that it still lists are not opened again.
        """
        while True:
            self._version = self.folder.version()
            manifest = None
            with self._skip_unreadable(self.folder.path / MANIFEST):
                manifest = self.folder.read()
            self._committed = manifest
            self._removed = None, b""
            saved = self._open(manifest, {segment.path: segment for segment in known})
            # If another process has just merged files, the manifest lists files that no longer exist.
            if self.is_current:
                return saved

    def _open(self, manifest: Manifest | None, known: Mapping[Path | None, Segment]) -> Saved:
        checkpoint, removed = Checkpoint(), Removed.none()
        segments: list[Segment] = []
        if manifest is None or manifest.fingerprint != self.fingerprint:
            return Saved(checkpoint, segments, removed)
        checkpoint = manifest.checkpoint
        for listed in manifest.segments:
            path = self.folder.path / listed.file
            with self._skip_unreadable(path):
                segment = known[path] if path in known else Segment.open(path)
                if _listed(path, segment) != listed:
                    raise DamagedFile(path, "its checksum is not the listed one")
                segments.append(segment)
        if manifest.removed:
            path = self.folder.path / manifest.removed.file
            # Without the file, all removals are read from the store again.
            checkpoint = replace(checkpoint, removal=0)
            with self._skip_unreadable(path):
                columns, _, checksum = open_columns(path)
                if checksum != manifest.removed.checksum:
                    raise DamagedFile(path, "its checksum is not the listed one")
                removed = Removed(columns["chunk_ids"].all, columns["total"].all)
                self._removed = manifest.removed, removed.ids.tobytes()
                checkpoint = manifest.checkpoint
        return Saved(checkpoint, segments, removed)

    @contextmanager
    def _skip_unreadable(self, path: Path) -> Iterator[None]:
        """Treat a file that cannot be read as missing."""
        try:
            yield
        except DamagedFile as error:
            self.set_aside(path, error)
        except OSError as error:
            logger.warning("A part of the index is rebuilt from the memory: %s", error)

    def set_aside(self, path: Path, error: DamagedFile) -> None:
        """Stop using a damaged file."""
        logger.warning("A part of the index is rebuilt from the memory: %s", error)
        self.folder.quarantine(path)

    def sweep(self, index: ChunkIndex) -> None:
        """Remove the files that a killed process left. Call it if `is_current`."""
        own = {segment.path.name for segment in index.segments if segment.path}
        self.folder.sweep(own | (self._committed.files if self._committed else set()))

    def write(self, merge: Merge, is_stopped: Callable[[], bool]) -> Segment:
        """Merge neighbours into one new file. Raises OSError, DamagedFile, MergeStopped."""
        segments, live = merge
        path = self.folder.new_file("segment")
        try:
            return Segment.write(path, segments, live, is_stopped)
        except (OSError, DamagedFile, MergeStopped):
            path.unlink(missing_ok=True)
            raise

    def describe(self, index: ChunkIndex) -> tuple[Manifest, Removed]:
        """The manifest of the files of the index, and the chunks that were removed from them."""
        listed = [_listed(segment.path, segment) for segment in index.segments if segment.path]
        checkpoint = index.checkpoint
        if index.segments and index.segments[-1].path is None:
            checkpoint = replace(checkpoint, chunk_id=listed[-1].upto if listed else 0)
        return Manifest(FORMAT, self.fingerprint, checkpoint, listed), index.saved_removed

    def commit(self, manifest: Manifest, removed: Removed) -> None:
        """Make the described index the saved one, and remove the files it does not need. Raises OSError."""
        self._write_removed(removed)
        manifest = replace(manifest, removed=self._removed[0])
        if manifest == self._committed and self.is_current:
            return
        self.folder.replace(manifest)
        self._committed = manifest
        self._version = self.folder.version()
        self.folder.sweep(manifest.files)

    def _write_removed(self, removed: Removed) -> None:
        ids = removed.ids.tobytes()
        if ids == self._removed[1]:
            return
        listed = None
        if ids:
            path = self.folder.new_file("removed")
            writer = ColumnWriter(path)
            try:
                writer.add("chunk_ids", [removed.ids])
                writer.add("total", [removed.total])
                listed = ListedFile(path.name, writer.finish({}))
            finally:
                writer.close()
        self._removed = listed, ids


def _listed(path: Path, segment: Segment) -> Listed:
    return Listed(path.name, segment.checksum, segment.after, segment.upto)


def next_merge(index: ChunkIndex, min_unsaved: int, max_rows: int, max_segments: int) -> Merge:
    """The neighbours to merge into one file next, and the live rows of each; empty if nothing is due.

    Segments in memory come first, once they have `min_unsaved` rows; then a segment of up to `max_rows`
    rows with many removed chunks; then, if there are more than `max_segments`, the cheapest merge.
    """
    segments = _due(index, min_unsaved, max_rows, max_segments)
    return segments, [index.live_rows(segment) for segment in segments]


def _due(index: ChunkIndex, min_unsaved: int, max_rows: int, max_segments: int) -> Sequence[Segment]:
    runs = list(_runs(index.segments))
    if index.unsaved >= min_unsaved:
        return next(part for run in runs if (part := _in_memory(run)))
    for segment in index.segments:
        live = index.live_rows(segment) if len(segment) <= max_rows else None
        if live is not None and len(live) < (1 - MAX_REMOVED) * len(segment):
            return (segment,)
    if sum(2 * len(segment) <= MAX_ROWS for segment in index.segments) <= max_segments:
        return ()
    windows = [
        run[start : start + size]
        for run in runs
        for size in range(2, MAX_MERGED + 1)
        for start in range(len(run) - size + 1)
    ]
    fitting = [
        window
        for window in windows
        if sum(map(len, window)) <= min(max_rows, MAX_ROWS) and not _is_unequal(window)
    ]
    return min(fitting, key=lambda window: sum(map(len, window)) / (len(window) - 1), default=())


def _is_unequal(segments: Sequence[Segment]) -> bool:
    longest = max(map(len, segments))
    return longest > MAX_SIZE_RATIO * (sum(map(len, segments)) - longest)


def _runs(segments: Sequence[Segment]) -> Iterator[tuple[Segment, ...]]:
    """Neighbouring segments without gaps between them."""
    run = list(segments[:1])
    for older, newer in pairwise(segments):
        if older.upto != newer.after:
            yield tuple(run)
            run = []
        run.append(newer)
    yield tuple(run)


def _in_memory(run: Sequence[Segment]) -> tuple[Segment, ...]:
    """The first segments in memory of a run that are neighbours and fit into one file."""
    found: list[Segment] = []
    for segment in run:
        if segment.path is not None:
            if found:
                break
        elif sum(map(len, found)) + len(segment) <= MAX_ROWS:
            found.append(segment)
    return tuple(found)
