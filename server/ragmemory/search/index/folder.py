"""The folder of a saved index: segment files that never change, and a manifest that lists those in use.

Several processes may use it. One at a time writes: it holds the lock, adds files, replaces the manifest in
one step, and removes what the manifest no longer lists. What other processes have mapped stays readable.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from ragconfig.regular_files import read_regular
from ragmemory.errors import NotAnIndex
from ragmemory.search.index.columns import MAGIC, DamagedFile
from ragmemory.types import Mark

# Marks the folder as ours, and tells backup programs that it can be made again (https://bford.info/cachedir/).
TAG = "CACHEDIR.TAG"
TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is the search index of a ragmemory database. It is derived from that database.\n"
)
MANIFEST, LOCK = "manifest.json", "lock"
FILE_NAME = re.compile(r"(segment|removed)-[0-9a-f]{16}\.index")
QUARANTINED = "damaged.index"
# Of the files, and of what counts as a term; an index of another form is not read.
FORM = 3
OLD_NAME = re.compile(r"\d+-\d+\.\w{8}")
OLD_FILES = re.compile(
    r"header\.json|(chunk_ids|gone|vectors|codes|lengths|terms|ends|rows|frequencies|sequence_(hashes|ends))\.npy"
)
# A manifest lists some ten files.
MOST_MANIFEST_BYTES = 1 << 20


class Listed(Struct, frozen=True):
    """A segment file, and the chunks that it covers."""

    file: str
    after: int
    upto: int


class Manifest(Struct, frozen=True):
    """The saved index; `fingerprint` names the store and the embedder that it was derived from."""

    form: int
    fingerprint: str
    mark: Mark
    segments: list[Listed]
    removed: str = ""  # the file with the ids of chunks that are in a segment, but were removed since

    @property
    def files(self) -> set[str]:
        """The names of all files that it lists."""
        return {one.file for one in self.segments} | {self.removed}


class _Signed(Struct):
    manifest: msgspec.Raw
    checksum: int


class IndexFolder:
    """Writing raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Refuse a folder that something else has made. Raises NotAnIndex."""
        if (self.path / TAG).exists() or not self.path.is_dir():
            return
        for path in self.path.iterdir():
            if path.name != LOCK and not _is_old_snapshot(path):
                raise NotAnIndex(str(self.path), path.name)

    def version(self) -> tuple[int, int] | None:
        """Differs whenever the manifest was replaced; None while there is none."""
        try:
            found = (self.path / MANIFEST).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def read(self) -> Manifest | None:
        """The manifest; None where there is none of this form. Raises DamagedFile, OSError."""
        path = self.path / MANIFEST
        try:
            signed = msgspec.json.decode(read_regular(path, MOST_MANIFEST_BYTES), type=_Signed)
            is_whole = zlib.crc32(signed.manifest) == signed.checksum
            manifest = msgspec.json.decode(signed.manifest, type=Manifest)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedFile(path, str(error)) from None
        if not is_whole:
            raise DamagedFile(path, "its checksum is not the one written")
        return manifest if manifest.form == FORM else None

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Whether this process may write until the end of the body; False while another one does."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.check()
        with (self.path / LOCK).open("ab") as file:
            is_ours = _try_lock(file.fileno())
            if is_ours and not (self.path / TAG).exists():
                self._begin()
            yield is_ours  # closing the file releases the lock

    def _begin(self) -> None:
        for path in self.path.iterdir():
            if _is_old_snapshot(path):
                for file in path.iterdir():
                    file.unlink()
                path.rmdir()
        (self.path / TAG).write_text(TAG_TEXT, encoding="utf-8")

    def new_file(self, kind: str) -> Path:
        """Where a file can be written, with the lock held."""
        return self.path / f"{kind}-{secrets.token_hex(8)}.index"

    def replace(self, manifest: Manifest) -> None:
        """Make this the manifest, with the lock held and every listed file on the disk."""
        encoded = msgspec.json.encode(manifest)
        signed = msgspec.json.encode(_Signed(msgspec.Raw(encoded), zlib.crc32(encoded)))
        fresh = self.path / f"{MANIFEST}.new"
        with fresh.open("wb") as file:
            file.write(signed)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path / MANIFEST)
        if sys.platform != "win32":  # A folder cannot be opened there.
            folder = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def sweep(self, keep: Set[str]) -> None:
        """Remove the files of an index that are not to be kept, with the lock held.

        Only regular files with a name and a beginning that this program gives them.
        """
        for path in self.path.iterdir():
            if FILE_NAME.fullmatch(path.name) and path.name not in keep and _begins_as_ours(path):
                # Windows keeps files that are mapped: a later sweep removes them.
                with suppress(OSError):
                    path.unlink()

    def quarantine(self, path: Path) -> None:
        """Set a damaged file aside, in place of the one before."""
        with suppress(OSError):
            path.replace(self.path / QUARANTINED)


def _begins_as_ours(path: Path) -> bool:
    """Whether it is a regular file that begins as ours do, as far as it was written."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return MAGIC.startswith(file.read(len(MAGIC)))
    except OSError:
        return False


def _is_old_snapshot(path: Path) -> bool:
    """Whether it is a folder that an index of form 2 was saved in, and holds that alone."""
    if not OLD_NAME.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
        return False
    files = list(path.iterdir())
    return bool(files) and all(OLD_FILES.fullmatch(file.name) and file.is_file() for file in files)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
