"""Saved indexes: folders beside one another; the newest counts, and what is damaged is ignored.

A new snapshot never touches the files of an older one, which this or another process may have mapped.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import msgspec

from ragmemory.indexes.chunks import ChunkIndexes
from ragmemory.types import Mark

if TYPE_CHECKING:
    from ragmemory.ranking import RankingSettings

HEADER = "header.json"
# Seconds after which what is not whole yet was left by a process that was killed: writing takes a few.
STALE_SECONDS = 3_600
# Of the files, and of what counts as a term; a snapshot of another form is not read.
FORM = 2


class Header(msgspec.Struct):
    """What a snapshot says of itself; `fingerprint` names the store and the embedder it was made of."""

    form: int
    fingerprint: str
    mark: Mark


def load_newest(
    folder: Path, fingerprint: str, settings: RankingSettings
) -> tuple[Mark, ChunkIndexes] | None:
    """The snapshot that has followed the store furthest."""
    found = [(header.mark, path) for path in entries(folder) if (header := read_header(path, fingerprint))]
    for mark, path in sorted(found, key=lambda one: (one[0].chunk_id, one[0].removal), reverse=True):
        try:
            return mark, ChunkIndexes.load(path, settings)
        except (OSError, ValueError, EOFError):
            continue
    return None


def read_header(path: Path, fingerprint: str) -> Header | None:
    try:
        header = msgspec.json.decode((path / HEADER).read_bytes(), type=Header)
    except (OSError, msgspec.DecodeError):
        return None
    return header if (header.form, header.fingerprint) == (FORM, fingerprint) else None


def save(folder: Path, fingerprint: str, mark: Mark, indexes: ChunkIndexes) -> None:
    """Write a snapshot, its header last, and remove what it replaces. Raises OSError.

    Several processes may do so at the same time: each has a folder of its own, and the furthest stays.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(mkdtemp(prefix=f"{mark.chunk_id}-{mark.removal}.", dir=folder))
    indexes.save(fresh)
    (fresh / HEADER).write_bytes(msgspec.json.encode(Header(FORM, fingerprint, mark)))
    # Looked at first: what is whole a moment later stays, too.
    found = entries(folder)
    unfinished = {path for path in found if is_being_written(path)}
    marks = {path: header.mark for path in found if (header := read_header(path, fingerprint))}
    # By their names, too: of several processes all have to agree which one stays.
    furthest = max(marks, key=lambda path: (marks[path].chunk_id, marks[path].removal, path), default=fresh)
    for path in found:
        if path != furthest and path not in unfinished:
            # Windows keeps files that are mapped: a later save removes them.
            shutil.rmtree(path, ignore_errors=True)


def is_being_written(path: Path) -> bool:
    try:
        return not (path / HEADER).exists() and time.time() - path.stat().st_mtime < STALE_SECONDS
    except OSError:
        return False


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
