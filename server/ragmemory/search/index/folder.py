"""The folder of a saved index: immutable segment files, and a manifest that lists those in use.

Several processes may use it. One at a time holds the lock and writes: it adds files, replaces the manifest
atomically, and removes files that the manifest no longer lists. Files that other processes have mapped stay
readable.
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
from msgspec import Struct, field

from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.safe_open import read_regular
from ragcommon.files.writing import private_folder
from ragmemory.errors import NotAnIndex
from ragmemory.search.index.errors import DamagedFile
from ragmemory.types.changes import Checkpoint

# Identifies the folder as an index, and as a cache to backup programs (https://bford.info/cachedir/).
TAG = "CACHEDIR.TAG"
TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is the search index of a ragmemory database. It is derived from that database.\n"
)
# The first bytes of every index file.
MAGIC = b"RAGINDX1"
MANIFEST, LOCK = "manifest.json", "lock"
FILE_NAME = re.compile(r"(segment|removed)-[0-9a-f]{16}\.index")
QUARANTINE = "damaged.index"
# The version of the files and of the text analysis; an index with another version is not read.
FORMAT = 9
# A manifest lists some ten files.
MAX_MANIFEST_BYTES = 1 << 20


class ListedFile(Struct, frozen=True):
    """A file, and its checksum: another one with this name, such as from a backup, is not used."""

    file: str
    checksum: int


class Listed(ListedFile, frozen=True):
    """A segment file, and the range of chunk ids that it covers."""

    after: int
    upto: int


class Manifest(Struct, frozen=True):
    """The saved index; `fingerprint` names the store and the embedder that it was derived from."""

    format: int = field(name="form")
    fingerprint: str
    checkpoint: Checkpoint = field(name="mark")
    segments: list[Listed]
    removed: ListedFile | None = None  # chunks that are still in a segment

    @property
    def files(self) -> set[str]:
        """The names of all listed files."""
        return {one.file for one in (*self.segments, self.removed) if one}


class _Signed(Struct):
    manifest: msgspec.Raw
    checksum: int


def encoded(manifest: Manifest) -> bytes:
    """A manifest as it is saved."""
    text = msgspec.json.encode(manifest)
    return msgspec.json.encode(_Signed(msgspec.Raw(text), zlib.crc32(text)))


def decoded(content: bytes, path: Path) -> Manifest | None:
    """The manifest saved at `path`; None if it is not of this FORMAT. Raises DamagedFile."""
    try:
        signed = msgspec.json.decode(content, type=_Signed)
        is_whole = zlib.crc32(signed.manifest) == signed.checksum
        manifest = msgspec.json.decode(signed.manifest, type=Manifest)
    except DECODE_ERRORS as error:
        raise DamagedFile(path, str(error)) from None
    if not is_whole:
        raise DamagedFile(path, "it fails its checksum")
    # Listed files that are damaged are moved aside: never one of another program.
    if not all(map(FILE_NAME.fullmatch, manifest.files)):
        raise DamagedFile(path, "it lists a file that is not an index file")
    return manifest if manifest.format == FORMAT else None


class IndexFolder:
    """Every method that writes raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Raises NotAnIndex if the folder belongs to something else."""
        # Who may not look into it searches without it, unless the memory may not be read either.
        with suppress(PermissionError):
            if (self.path / TAG).exists() or not self.path.is_dir():
                return
            for path in self.path.iterdir():
                if path.name != LOCK:
                    raise NotAnIndex(str(self.path), path.name)

    def version(self) -> tuple[int, int] | None:
        """A version of the manifest, which changes whenever it is replaced; None if there is none."""
        try:
            found = (self.path / MANIFEST).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def read(self) -> Manifest | None:
        """The manifest; None if there is none of this FORMAT. Raises DamagedFile, OSError."""
        path = self.path / MANIFEST
        try:
            return decoded(read_regular(path, MAX_MANIFEST_BYTES), path)
        except FileNotFoundError:
            return None

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Try to take the lock; False if another process holds it."""
        private_folder(self.path)
        self.check()
        # Not "ab": opening a FIFO only to write waits for a reader.
        with (self.path / LOCK).open("a+b") as file:
            is_ours = _try_lock(file.fileno())
            if is_ours and not (self.path / TAG).exists():
                (self.path / TAG).write_text(TAG_TEXT, encoding="utf-8")
            yield is_ours  # Closing the file releases the lock.

    def new_file(self, kind: str) -> Path:
        """The path of a new file, with the lock held."""
        return self.path / f"{kind}-{secrets.token_hex(8)}.index"

    def replace(self, manifest: Manifest) -> None:
        """Replace the manifest, with the lock held and every listed file on the disk."""
        fresh = self.path / f"{MANIFEST}.new"
        fresh.unlink(missing_ok=True)
        with fresh.open("xb") as file:
            file.write(encoded(manifest))
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
        """Remove the index files that are not in `keep`, with the lock held.

        Only regular files whose name and first bytes are those of an index file are removed.
        """
        for path in self.path.iterdir():
            if FILE_NAME.fullmatch(path.name) and path.name not in keep and _begins_as_ours(path):
                # Windows does not remove mapped files: a later sweep does.
                with suppress(OSError):
                    path.unlink()

    def quarantine(self, path: Path) -> None:
        """Move a damaged file aside; it replaces the last one."""
        with suppress(OSError):
            path.replace(self.path / QUARANTINE)


def _begins_as_ours(path: Path) -> bool:
    """Whether it is a regular file that begins like an index file; it may be incomplete."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return MAGIC.startswith(file.read(len(MAGIC)))
    except OSError:
        return False


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
