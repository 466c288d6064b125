"""Saved indexes: folders beside one another; the newest counts, and what is damaged is ignored.

A new snapshot never touches the files of an older one, which this or another process may have mapped.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from ragmemory.indexes.chunks import ChunkIndexes
from ragmemory.types import Mark

if TYPE_CHECKING:
    from pathlib import Path

    from ragmemory.ranking import RankingSettings

HEADER = "header.json"
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
    """Write a snapshot under a name of its own, rename it when whole, remove the others. Raises OSError."""
    target = folder / f"{mark.chunk_id}-{mark.removal}"
    fresh = target.with_suffix(f".{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh.mkdir(mode=0o700)
    indexes.save(fresh)
    (fresh / HEADER).write_bytes(msgspec.json.encode(Header(FORM, fingerprint, mark)))
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    for path in entries(folder):
        if path != target:
            # Windows keeps files that are mapped: a later save removes them.
            shutil.rmtree(path, ignore_errors=True)


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
