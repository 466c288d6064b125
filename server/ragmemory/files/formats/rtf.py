"""RTF: headings, paragraphs and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, one_line
from ragmemory.files.formats.list_numbers import item

BEGINNING = b"{\\rtf"
# Marks a paragraph as a heading of this level, from 0.
LEVEL = re.compile(r"(\\outlinelevel([0-8]))(?!\d) ?")
# Precedes the level in the converted text until the paragraphs are split; occurs in no text.
MARK = "\x01"
# The number or bullet of an item, which striprtf may leave out, and what follows it in the converted text.
NUMBERED = re.compile(
    r"\{\\(?:pntext|listtext)\b((?:[^{}\\]|\\(?!(?:tab|pntext|listtext)\b).)*)(?:\\tab ?|\t)\}", re.DOTALL
)
ITEM = "\x02"
NUMBER = re.compile(r"\d|[^\W_]\W")
# Hexadecimal picture data, which striprtf would parse digit by digit.
PICTURE = re.compile(r"(?<![0-9a-fA-F\r\n])[0-9a-fA-F\r\n]{1000,}+")
# A group of text that was deleted while changes were tracked.
DELETED = re.compile(
    r"\{(?:\\(?!deleted\b)[a-z]+-?\d*|\s)*+\\deleted\b(?:[^{}\\]|\\.|\{[^{}]*+\})*+\}", re.DOTALL
)
# The beginning and end of a row, and the end of a paragraph.
ROWS = re.compile(r"(\\trowd|\\row|\\par)(?![a-z])")
# The end of a paragraph at the end of a cell, which would be read as one after the row.
END_IN_CELL = re.compile(r"\\par(?=[\s}]*\\cell\b)")


def _in_rows(source: str) -> Iterator[str]:
    """The source without ends of paragraphs within a row, whose cells may have several paragraphs."""
    is_in_row = False
    for part in ROWS.split(source):
        if part in ("\\trowd", "\\row"):
            is_in_row = part == "\\trowd"
        yield " " if is_in_row and part == "\\par" else part


def read(path: Path, data: bytes) -> FileText:
    """The text of a document, without its headers, footers and notes. Raises NotText."""
    if not data.lstrip().startswith(BEGINNING):
        raise Damaged("RTF")
    from striprtf.striprtf import rtf_to_text

    source = PICTURE.sub("", data.decode("cp1252", errors="replace"))
    source = "".join(_in_rows(END_IN_CELL.sub("", DELETED.sub("", source))))
    source = NUMBERED.sub(rf"{{\1{ITEM}}}", source)
    text = rtf_to_text(LEVEL.sub(rf"\1 {MARK}\2", source), errors="replace")
    # Characters beyond U+FFFF come as surrogate pairs.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", errors="replace")
    builder, title, rows = TextBuilder(by_paragraph=True), "", list[list[str]]()
    for paragraph in text.split("\n"):
        level = paragraph.partition(MARK)[2][:1]
        line = re.sub(rf"{MARK}\d", "", paragraph)
        if line.endswith("|"):
            rows.append([one_line(cell) for cell in line.replace(ITEM, " ").split("|")[:-1]])
            continue
        number, is_item, line = line.rpartition(ITEM)
        # A bullet is a sign or, in a font of symbols, a letter.
        number = number.strip() if NUMBER.search(number) else "-" * bool(is_item)
        builder.add_rows(rows)
        rows = []
        if level:
            name = one_line(line if number in ("", "-") else f"{number} {line}")
            title = title or name
            builder.add(f"{'#' * min(int(level) + 1, 6)} {name}" if name else "")
        else:
            builder.add(f"{item(number)} {line.strip()}" if number else line.strip())
    builder.add_rows(rows)
    return builder.build(title or path.name)
