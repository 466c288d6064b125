"""Archives (ZIP, tar), file by file; the places are the files. A file compressed alone is read as itself."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple
from zipfile import BadZipFile

from ragcommon.files.decoding import MAX_FILE_BYTES, NotText
from ragmemory.files.formats.archives import MAX_BYTES, MAX_MEMBERS, open_archive
from ragmemory.files.formats.detection import TAR, TAR_AT
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, TooMuchText
from ragmemory.files.formats.members import Members, is_hidden

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

KIND = "archive"
BLOCK_BYTES = 1 << 16
# Raised by the libraries for damaged data.
DAMAGE = (
    *(OSError, EOFError, RuntimeError, ValueError),
    *(zlib.error, lzma.LZMAError, tarfile.TarError, BadZipFile),
)


class Packed(NamedTuple):
    name: str
    size: int  # bytes, unpacked
    content: Callable[[], bytes]
    is_alone: bool = False  # a compressed file, without an archive; or the only archive in another


def read(path: Path, data: bytes) -> FileText:
    """The text of the files in an archive, or of a compressed file. Raises NotText."""
    builder = TextBuilder()
    members = Members(builder)
    notes: list[str] = []
    number = 0
    try:
        for number, packed in enumerate(_files(path, data), 1):
            if number > MAX_MEMBERS:
                notes.append(f"only its first {MAX_MEMBERS:,} files were read")
                break
            if packed.is_alone:
                return members.alone(path.name, packed.name, packed.size, packed.content)
            members.add(packed.name, packed.size, packed.content)
    except TooMuchText as error:
        notes.append(f"{error}: the other files in it were not read")
    except DAMAGE:
        if not number:
            raise Damaged(KIND) from None
        notes.append("is damaged: not all files in it were read")
    notes.append(members.note)
    return builder.build(path.name, "; ".join(filter(None, notes)))


def _files(path: Path, data: bytes) -> Iterator[Packed]:
    unpacked = _decompressed(data)
    if unpacked is None and data[TAR_AT : TAR_AT + len(TAR)] != TAR:
        archive = open_archive(data, KIND)
        files = [info for info in archive.infolist() if not info.is_dir()]
        # Notion packs an export twice.
        names = [PurePosixPath(info.filename) for info in files]
        is_alone = len(names) == 1 and names[0].suffix.lower() == ".zip" and not is_hidden(names[0])
        for info in files:
            yield Packed(info.filename, info.file_size, partial(archive.read, info), is_alone)
        return
    stream = io.BufferedReader(Unpacked(unpacked or io.BytesIO(data)), BLOCK_BYTES)
    if stream.peek(TAR_AT + len(TAR))[TAR_AT : TAR_AT + len(TAR)] == TAR:
        yield from _tarred(stream)
    else:
        content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise NotText(
                f"holds more than {MAX_FILE_BYTES >> 20} MiB when it is decompressed; split its content"
            )
        yield Packed(path.stem, len(content), lambda: content, is_alone=True)


def _tarred(stream: IO[bytes]) -> Iterator[Packed]:
    """The files of a tar archive. Skipped members are decompressed too, and counted by `Unpacked`."""
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for info in archive:
            if info.isreg():
                yield Packed(info.name, info.size, partial(_content, archive, info))


def _content(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(info)
    return file.read() if file is not None else b""


def _decompressed(data: bytes) -> io.BufferedIOBase | None:
    """A file of the decompressed data; None if the data is not compressed."""
    file = io.BytesIO(data)
    if data.startswith(b"\x1f\x8b"):
        return gzip.open(file)
    if data.startswith(b"BZh"):
        return bz2.open(file)
    return lzma.open(file) if data.startswith(b"\xfd7zXZ") else None


class Unpacked(io.RawIOBase):
    """Limits reading to MAX_BYTES."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file
        self._left = MAX_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Raises NotText beyond the limit."""
        view = memoryview(buffer)
        block = self._file.read(len(view))
        self._left -= len(block)
        if self._left < 0:
            raise NotText(f"holds more than {MAX_BYTES >> 20} MiB when it is decompressed; unpack it")
        view[: len(block)] = block
        return len(block)
