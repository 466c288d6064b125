r"""BibTeX: the file as it is, but with the accents and special letters of LaTeX as characters: M{\"u}ller."""

from __future__ import annotations

import re
from pathlib import Path
from unicodedata import normalize

from msgspec.structs import replace

from ragmemory.files.formats import text
from ragmemory.files.formats.file_text import FileText

# The accents of Unicode, which follow a letter, by their commands.
MARKS = "\u0300\u0301\u0302\u0303\u0308\u0304\u0307\u0306\u0327\u030c\u030b\u030a\u0328"
ACCENTS = dict(zip("`'^~\"=.ucvHrk", MARKS, strict=True))
ACCENT = re.compile(
    r"""(?<!\\)\\([`'^~"=.]|[ucvHrk](?![A-Za-z]))[ \t]*"""
    r"""(?:\{\\?([A-Za-z])\}|\\([ij])(?![A-Za-z])|([A-Za-z]))"""
)
LETTERS = {
    **{"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å"},
    **{"o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "i": "i"},
}
LETTER = re.compile(rf"(?<!\\)\\(?:({'|'.join(LETTERS)})(?![A-Za-z])(?:\{{\}}|[ \t])?|([&%$#_]))")
BRACES = re.compile(r"\{([^\W\d_A-Za-z])\}")
# In LaTeX, \O and \v{r} may be commands of the author in a formula, but not within a word or alone in braces.
FORMULA = re.compile(r"((?<!\\)\$[^$]*\$?)")
SPECIAL = re.compile(
    rf"(?<=[^\W\d_])\\({'|'.join(LETTERS)})(?![A-Za-z])(?:\{{\}}|[ \t])?|\{{\\({'|'.join(LETTERS)})\}}"
)


def read(path: Path, data: bytes) -> FileText:
    """The text of a file. Raises NotText."""
    found = text.read(path, data)
    shown = LETTER.sub(lambda one: LETTERS.get(one[1]) or one[2], ACCENT.sub(_accented, found.text))
    return replace(found, text=BRACES.sub(r"\1", shown))


def accented(line: str) -> str:
    """A line of LaTeX with accents and special letters as characters, outside of formulas between "$"."""

    def written(found: re.Match[str]) -> str:
        around = found.string[found.start() - 1 : found.start()] + found.string[found.end() : found.end() + 1]
        is_text = not found[1].isalpha() or around == "{}" or any(map(str.isalpha, around))
        return _accented(found) if is_text else found[0]

    parts = FORMULA.split(line)
    for at in range(0, len(parts), 2):
        shown = SPECIAL.sub(lambda one: LETTERS[one[1] or one[2]], ACCENT.sub(written, parts[at]))
        parts[at] = BRACES.sub(r"\1", shown)
    return "".join(parts)


def _accented(found: re.Match[str]) -> str:
    letter = normalize("NFC", (found[2] or found[3] or found[4]) + ACCENTS[found[1]])
    return letter if len(letter) == 1 else found[0]
