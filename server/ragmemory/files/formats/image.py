"""Images of text (PNG, JPEG, TIFF, WebP), read by OCR. Only a TIFF has pages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from struct import unpack_from

from ragcommon.files.decoding import NoText, NotText
from ragcommon.text.places import OCR
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder
from ragmemory.files.formats.scans import Image, ScannedPages, current

NOT_READ = "is in a format that is not read (image)"
# More than the cameras of phones have. An OCR program needs about 8 bytes of memory a pixel.
MAX_PIXELS = 120_000_000
MAX_TIFF_PAGES = 10_000
WIDTH, HEIGHT, LONG = 256, 257, 4  # tags of TIFF, and a type


def read(path: Path, data: bytes) -> FileText:
    """The text of an image. Raises NotText."""
    state = current()
    try:
        sizes = list(_sizes(data))
    except struct.error:
        sizes = []
    if not sizes:
        raise Damaged("image")
    if state.problem:
        state.unread += 1
        raise NotText(f"{NOT_READ}: {state.problem}")
    for width, height in sizes:
        if width * height > MAX_PIXELS:
            raise NoText(f"is an image of {width:,} × {height:,} pixels; at most {MAX_PIXELS:,} are read")
    scanned = ScannedPages(data)
    builder = TextBuilder()
    for number in range(len(sizes)):
        place = f"p. {number + 1} {OCR}" if len(sizes) > 1 else OCR
        builder.add(scanned.text(number + 1, partial(Image, data, number)), place)
    return builder.build(path.name, scanned.note(paged=len(sizes) > 1))


def _sizes(data: bytes) -> Iterator[tuple[int, int]]:
    """The width and height of each page, from the headers alone. Raises struct.error for damaged ones."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        yield unpack_from(">II", data, 16)
    elif data.startswith(b"\xff\xd8"):
        yield from _jpeg_size(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        yield _webp_size(data)
    elif data[:4] in (b"II*\0", b"MM\0*"):
        yield from _tiff_sizes(data, "<" if data[:1] == b"I" else ">")


def _jpeg_size(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while True:
        mark, kind = unpack_from(">BB", data, at)
        if mark != 0xFF:
            return
        if kind == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = unpack_from(">HH", data, at + 5)
            yield width, height
            return
        else:
            at += 2 + unpack_from(">H", data, at + 2)[0]


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        low, high, low2, high2 = unpack_from("<HBHB", data, 24)
        return (low | high << 16) + 1, (low2 | high2 << 16) + 1
    if kind == b"VP8L":
        (bits,) = unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _tiff_sizes(data: bytes, order: str) -> Iterator[tuple[int, int]]:
    (at,) = unpack_from(f"{order}I", data, 4)
    seen: set[int] = set()
    while at and at not in seen and len(seen) < MAX_TIFF_PAGES:
        seen.add(at)
        (count,) = unpack_from(f"{order}H", data, at)
        values = {}
        for entry in range(at + 2, at + 2 + 12 * count, 12):
            tag, kind = unpack_from(f"{order}HH", data, entry)
            if tag in (WIDTH, HEIGHT):
                (values[tag],) = unpack_from(f"{order}{'I' if kind == LONG else 'H'}", data, entry + 8)
        yield values.get(WIDTH, 0), values.get(HEIGHT, 0)
        (at,) = unpack_from(f"{order}I", data, at + 2 + 12 * count)
