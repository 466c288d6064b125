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
# With this many non-ASCII bytes, and no more ASCII letters, assume a non-Western encoding.
FOREIGN_BYTES = 8
# The candidates for such texts; each further one makes wrong guesses more likely.
ENCODINGS = [
    *("gb18030", "big5", "cp949", "euc_jp", "cp932", "cp1251", "koi8_r", "cp866", "cp1253", "cp1255"),
    *("cp1256", "cp874"),
]
# The letters, besides ASCII, of languages in Windows-1252: German with Dutch, French, Spanish, Portuguese,
# Italian with names from others, the Nordic ones, Icelandic, Catalan.
WESTERN = (
    *("äöüßéèëïáíóú", "àâæçéèêëîïôœùûüÿ", "áéíóúüñçºª", "ãõâêôàáéíóúçüñºª", "àèéìíîòóùáúçºª"),
    *("åæøäöéèêòôóáü", "áðéíóúýþæö", "àçéèíïóòúüñ"),
)
# Polish; Czech; Slovak; Hungarian; Romanian.
CENTRAL = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîşţ")
LATIN = {
    **{"cp1252": WESTERN, "cp1250": CENTRAL, "iso8859_2": CENTRAL, "cp1254": ("çğıöşüâîûİ",)},
    **{"cp850": WESTERN, "mac_roman": WESTERN},
}
# With fewer characters outside of an alphabet, in all or of so many letters, assume that it is the right one.
FEW_ODD, LETTERS_PER_ODD = 2, 200
# Besides ASCII: a letter, a character between letters, or one that no text has.
IN_WORDS = re.compile(
    r"(?![\x00-\x7f])(?:[^\W\d_]|(?<=[^\W\d_])[^·’‘–—…\xa0\xad](?=[^\W\d_])|[\x80-\x9f─-▟\ufffd])"
)
# Kana make up half of a Japanese text, and hardly occur in other text decoded as Japanese.
KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
# Python's codecs that no text is in; the first takes quadratic time.
NO_CHARSETS = frozenset(("punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape"))
# The share of the upper bytes in a text in UTF-16 that are NUL, as those of spaces, or that of its alphabet.
UTF_16_SHARE = 0.9
NOT_ASCII = bytes(range(128, 256))
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
    """The text in the charset that a message or a page names; None if that is wrong or no charset."""
    if charset.lower().replace("-", "_") not in NO_CHARSETS:
        with suppress(LookupError, UnicodeError, ValueError):
            return data.decode(charset)
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
    for encoding in (_foreign(head), "cp1252"):
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


def _foreign(head: bytes) -> str:
    """The encoding of a text that is not UTF-8, by its beginning; cp1252 for western languages."""
    foreign = len(head) - len(head.translate(None, NOT_ASCII))
    letters = len(LETTERS.findall(head))
    if foreign < max(FOREIGN_BYTES, letters):
        return _latin(head, letters)
    for encoding in ("cp932", "euc_jp"):
        with suppress(UnicodeDecodeError):
            text = codecs.getincrementaldecoder(encoding)().decode(head)
            if len(KANA.findall(text)) > len(text) / 5:
                return encoding
    from charset_normalizer import from_bytes

    # Without an incomplete character at the end.
    whole = head[: head.rfind(b"\n") + 1] if len(head) == SNIFFED_BYTES else head
    best = from_bytes(whole or head, cp_isolation=ENCODINGS).best()
    return best.encoding if best is not None else "cp1252"


def _latin(head: bytes, letters: int) -> str:
    """The encoding whose characters belong to the alphabet of one language, if they do not in cp1252."""
    western = _odd(head, "cp1252")
    if western < max(FEW_ODD, letters / LETTERS_PER_ODD):
        return "cp1252"
    best = min(LATIN, key=lambda encoding: _odd(head, encoding))
    return best if 4 * _odd(head, best) <= western else "cp1252"


def _odd(head: bytes, encoding: str) -> int:
    """The characters outside of the alphabet that most of them belong to."""
    text = head.decode(encoding, errors="replace")
    found = Counter(char if char in "İµ" else char.lower() for char in IN_WORDS.findall(text))
    return min(
        sum(count for char, count in found.items() if char not in f"{alphabet}µ")
        for alphabet in LATIN[encoding]
    )
