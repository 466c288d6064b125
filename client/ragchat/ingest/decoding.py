"""Decoding: the text in a file, its encoding and its title, or why the file has no text."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ragconfig.regular_files import read_regular
from ragconfig.text_rules import atx_heading

# Half of what a message to memory may hold (limits.message_bytes): text grows when it is escaped as JSON.
LARGEST_BYTES = 128 << 20
MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
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
MAYBE_HEADING = re.compile(r"^ {0,3}#.*", re.MULTILINE)


class NotText(Exception):
    """A file is not text; the message is the reason, as the end of a sentence about the file."""


class EmptyText(NotText):
    """A file holds nothing but white space."""


class Text(NamedTuple):
    """A text with \n at line ends, and the encoding it was in."""

    text: str
    encoding: str


def read_text(path: Path) -> Text:
    """The text in a file. Raises NotText, OSError."""
    return decode(read_regular(path, LARGEST_BYTES))


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


def title_of(path: Path, text: str) -> str:
    """A Markdown document's first heading, else the file's name."""
    if path.suffix.lower() in MARKDOWN:
        for line in MAYBE_HEADING.finditer(text):
            _, title = atx_heading(line[0]) or (0, "")
            if title:
                return title
    return path.name
