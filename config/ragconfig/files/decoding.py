"""Decoding: bytes to text and its encoding, or why they are no text. Both programs read files."""

from __future__ import annotations

import codecs
from contextlib import suppress
from typing import NamedTuple

# Half of what a message to memory may hold (limits.message_bytes): text grows when it is escaped as JSON.
LARGEST_BYTES = 128 << 20
# UTF-32 before UTF-16: the little-endian mark of UTF-32 begins with that of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Encodings that are tried when a file is not UTF-8; every byte is valid in Latin-1.
GUESSED = ("cp1252", "latin-1")
SNIFFED_BYTES = 8192
CONTROL_CHARACTERS = bytes(set(range(32)) - set(b"\t\n\f\r\x1b"))


class NotText(Exception):
    """A file is not text; the message is the reason, as the end of a sentence about the file."""


class EmptyText(NotText):
    """A file holds nothing but white space."""


class Text(NamedTuple):
    """A text with \n at line ends, and the encoding it was in."""

    text: str
    encoding: str


def decode(data: bytes) -> Text:
    """UTF-8 and, with a byte order mark, UTF-16 and UTF-32; else Windows-1252; else Latin-1.

    Raises NotText, and EmptyText if there is only white space.
    """
    text, encoding = _decode(data)
    if not text.strip():
        raise EmptyText("is empty")
    return Text(text.replace("\r\n", "\n").replace("\r", "\n"), encoding)


def _decode(data: bytes) -> tuple[str, str]:
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace"), encoding
    head = data[:SNIFFED_BYTES]
    # Compressed and compiled data have more than one control character in ten bytes.
    if b"\0" in head or len(head) - len(head.translate(None, CONTROL_CHARACTERS)) > len(head) / 10:
        raise NotText("is not text")
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding), encoding
    return data.decode("latin-1"), "latin-1"
