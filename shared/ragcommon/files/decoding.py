"""Decode bytes to text and its encoding, or say why they are not text."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from contextlib import suppress
from typing import NamedTuple

# Half of limits.message_bytes, because text grows when it is escaped as JSON.
MAX_FILE_BYTES = 128 << 20
# UTF-32 before UTF-16: the little-endian mark of UTF-32 begins with that of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SNIFFED_BYTES = 8192
# The encodings that are guessed, as chardet names them; each further one makes wrong guesses more likely.
LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1254", "cp850", "mac_roman")
OTHERS = (
    *("gb18030", "big5", "cp949", "euc-jp", "cp932", "cp1251", "koi8_r", "cp866", "cp1253", "cp1255"),
    *("cp1256", "cp874"),
)
WORD = re.compile(rb"[A-Za-z\x80-\xff]{2,}")
# cp1252, unless another encoding has more than this confidence, and cp1252 less than this share of that.
MIN_CONFIDENCE, MAX_SHARE = 0.05, 0.99
# Control characters in ISO 8859.
CONTROLS = re.compile(rb"[\x80-\x9f]")
WIDER = {"iso8859-1": "cp1252", "iso8859-9": "cp1254"}
# Python's codecs that no text is in; the first takes quadratic time.
NO_CHARSETS = frozenset(("punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape"))
# The share of the upper bytes in a text in UTF-16 that are NUL, as those of spaces, or that of its alphabet.
UTF_16_SHARE = 0.9
LETTERS = re.compile(rb"[A-Za-z]")
CONTROL_CHARACTERS = bytes(set(range(32)) - set(b"\t\n\f\r\x1b"))


class NotText(Exception):
    """A file is not text; the message is the reason, as the end of a sentence about the file."""


class NoText(NotText):
    """The content of a file is not text, whatever programs or libraries are installed."""


class EmptyText(NoText):
    """A file contains only white space."""


class Text(NamedTuple):
    """A text with \n at line ends, the encoding it was in, and whether that was guessed."""

    text: str
    encoding: str
    is_guessed: bool = False

    @property
    def note(self) -> str:
        """What is uncertain about the text, as the end of a sentence about the file; "" if nothing."""
        if not self.is_guessed:
            return ""
        if self.encoding == "utf-8":
            return "has bytes that are not UTF-8; they are read as \ufffd"
        return f"is not UTF-8; it was read as {self.encoding}"


def decode(data: bytes) -> Text:
    """UTF-8, also with damage; UTF-16 and UTF-32; the usual encoding of its language; Windows-1252; Latin-1.

    Raises NoText, and EmptyText if there is only white space.
    """
    text, encoding, is_guessed = _decode(data)
    if not text.strip():
        raise EmptyText("is empty")
    return Text(text.replace("\r\n", "\n").replace("\r", "\n"), encoding, is_guessed)


def decode_as(data: bytes, charset: str) -> str | None:
    """The text in the charset that a message or a page names; None if that is wrong or no charset.

    As in browsers, ISO 8859-1 and -9 are the encodings of Windows: many texts that name them have € and „“.
    """
    if charset.lower().replace("-", "_") not in NO_CHARSETS:
        with suppress(LookupError, UnicodeError, ValueError):
            name = codecs.lookup(charset).name
            with suppress(UnicodeError):
                return data.decode(WIDER.get(name, name))
            return data.decode(name)
    return None


def _decode(data: bytes) -> Text:
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return Text(data[len(mark) :].decode(encoding, errors="replace"), encoding)
    head = data[:SNIFFED_BYTES]
    if b"\0" in head and (encoding := _utf_16(head)):
        with suppress(UnicodeDecodeError):
            return Text(data.decode(encoding), encoding, True)
    # Compressed and compiled data have more than one control character in ten bytes.
    if b"\0" in head or len(head) - len(head.translate(None, CONTROL_CHARACTERS)) > len(head) / 10:
        raise NoText("is not text")
    with suppress(UnicodeDecodeError):
        return Text(data.decode("utf-8"), "utf-8")
    if (text := _mostly_utf_8(data)) is not None:
        return Text(text, "utf-8", True)
    for encoding in (_guessed(head), "cp1252"):
        with suppress(UnicodeDecodeError):
            return Text(data.decode(encoding), encoding, True)
    return Text(data.decode("latin-1"), "latin-1", True)


def _mostly_utf_8(data: bytes) -> str | None:
    """The text if more of its letters are in UTF-8 than are damaged, which become U+FFFD; else None.

    In other encodings, at most one letter in three happens to be valid.
    """
    text = data.decode("utf-8", errors="replace")
    damaged, others = text.count("\ufffd"), len(text) - len(text.encode("ascii", errors="ignore"))
    return text if others > 2 * damaged else None


def _utf_16(head: bytes) -> str:
    """UTF-16 without a byte order mark, in an alphabet, by its upper bytes; "" for other data."""
    head = head[: len(head) // 2 * 2]
    for encoding, upper in (("utf-16-le", Counter(head[1::2])), ("utf-16-be", Counter(head[::2]))):
        usual = dict(upper.most_common(2))
        if 0 in usual and sum(usual.values()) >= UTF_16_SHARE * len(head) / 2:
            text = head.decode(encoding, errors="ignore")
            return encoding if all(map(_is_usual, text)) else ""
    return ""


def _is_usual(char: str) -> bool:
    return char.isprintable() or char.isspace()


def _guessed(head: bytes) -> str:
    """The encoding of a text that is not UTF-8, by its beginning: cp1252 unless another is likelier."""
    from chardet import detect_all

    encodings = {*LATIN, *(() if _is_latin(head) else OTHERS)}
    if CONTROLS.search(head):
        encodings.remove("iso8859_2")
    found = detect_all(head, ignore_threshold=True, compat_names=False, include_encodings=encodings)
    confidence = {one["encoding"].replace("-", "_"): one["confidence"] for one in found if one["encoding"]}
    best = max(confidence, key=lambda encoding: confidence[encoding], default="cp1252")
    likely = max(MIN_CONFIDENCE, confidence.get("cp1252", 0) / MAX_SHARE)
    return best if confidence.get(best, 0) > likely else "cp1252"


def _is_latin(head: bytes) -> bool:
    """Whether more words are ASCII letters with a few others among them than words without any.

    Words of other alphabets have none. Chinese and Japanese ones may, as second bytes, but fewer than others.
    """
    shares = [len(LETTERS.findall(word)) / len(word) for word in WORD.findall(head)]
    return sum(0.5 <= share < 1 for share in shares) >= sum(share < 0.5 for share in shares)
