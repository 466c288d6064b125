"""Exports: files of JSON lines, with a header and then one document per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from ragchat.errors import FileAlreadyExists, NotAnExport, PathNotFound, RagChatError
from ragcommon.contract.maintenance import PortableDocument
from ragcommon.errors import DECODE_ERRORS, decode_reason
from ragcommon.files.folder import Folder
from ragcommon.files.writing import appearing

F = TypeVar("F", bound="FirstLine")

FORMAT, VERSION = "ragchat-memory", 1

# The limits of one import call: bytes and number of lines.
BATCH_BYTES, BATCH = 1_000_000, 200
# The maximum length of a header: other files may be a single long line.
HEADER_BYTES = 1 << 16

# The lines of structs.
as_lines = msgspec.json.Encoder().encode_lines


class FirstLine(Struct, frozen=True):
    """What every export begins with."""

    format: str
    version: int


class Header(FirstLine, frozen=True, omit_defaults=True):
    embedder: str = ""  # of the vectors, if there are any
    dimensions: int = 0


class Batch(NamedTuple):
    """The next documents of an export, and the errors of invalid lines, both by line number from 1."""

    documents: dict[int, PortableDocument]
    errors: dict[int, str]
    bytes: int  # read so far
    embedder: str  # of their vectors; "": none


def batches(path: str, file: IO[bytes], before: int = 0) -> Iterator[Batch]:
    """The documents of an export, which `before` other lines precede. Blocking.

    Raises NotAnExport, OSError.
    """
    line = file.readline(HEADER_BYTES)
    header = read_header(line, Header, FORMAT, VERSION, partial(NotAnExport, path))
    number, read = before + 1, len(line)
    while line:
        documents: dict[int, PortableDocument] = {}
        errors: dict[int, str] = {}
        end = read + BATCH_BYTES
        while len(documents) < BATCH and read < end and (line := file.readline()):
            number, read = number + 1, read + len(line)
            if line.isspace():
                continue
            try:
                documents[number] = msgspec.json.decode(line, type=PortableDocument)
            except DECODE_ERRORS as error:
                errors[number] = f"{decode_reason(error)}."
        yield Batch(documents, errors, read, header.embedder)


def read_header(
    line: bytes, kind: type[F], format: str, version: int, refusal: Callable[[str], RagChatError]
) -> F:
    """The first line of an export. Raises the `refusal` for a reason."""
    try:
        header = msgspec.json.decode(line, type=kind)
    except DECODE_ERRORS:
        header = None
    if header is None or header.format != format:
        raise refusal("its first line is not the header of one")
    if header.version > version:
        raise refusal(f"it has version {header.version} of the format, of a later release")
    return header


def existing_file(path: Path) -> IO[bytes]:
    """A file to import. Raises PathNotFound, OSError."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise PathNotFound(str(path)) from None


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears at `path` when the block ends without an error; only the owner can read it.

    Raises FileAlreadyExists, OSError.
    """
    place = path.resolve()
    with Folder(place.parent) as folder:
        with suppress(FileNotFoundError):
            folder.stat(place.name)
            raise FileAlreadyExists(str(path))
        try:
            with appearing(folder, place.name) as file:
                yield file
        except OSError as error:
            error.filename = error.filename or str(path)
            raise
