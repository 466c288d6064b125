"""JSON without line breaks: reformatted, so that passages and quotations end with a line."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Raw

from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import FileText

SUFFIX = ".json"
# A longer line holds several values.
LONG_LINE = 1_000
# A member of an object has a line of its own if it fits.
SHORT_LINE = 120
# Deeply nested values grow with the square of their depth when they are indented: these stay as they are.
MAX_GROWTH = 10


def is_minified(beginning: str) -> bool:
    """Whether the beginning of a JSON text has no line breaks."""
    return len(beginning) > LONG_LINE and "\n" not in beginning[:LONG_LINE].strip()


def read(path: Path, data: bytes) -> FileText:
    """One line per list element or short member, unless it is long; other values are indented.

    The places are the elements of the list. Raises NotText.
    """
    text = decode(data).text
    try:
        if not text.startswith("["):
            return FileText(_indented(text.encode()) + "\n", path.name)
        elements = msgspec.json.decode(text, type=list[Raw])
        lines, places = ["["], []
        for number, element in enumerate(elements, 1):
            places.append((len(lines) + 1, f"record {number}"))
            written = bytes(element)
            shown = written.decode() if len(written) <= LONG_LINE else _indented(written)
            lines += f"{shown}{',' if number < len(elements) else ''}".split("\n")
    except DECODE_ERRORS:
        return FileText(text, path.name)
    return FileText("\n".join([*lines, "]", ""]), path.name, places=places)


def _indented(value: bytes) -> str:
    """Raises DECODE_ERRORS."""
    indented = msgspec.json.format(value, indent=2)
    if len(indented) > MAX_GROWTH * len(value):
        return value.decode()
    lines, opened = list[str](), list[int]()
    for line in indented.decode().split("\n"):
        lines.append(line)
        if line.endswith(("{", "[")):
            opened.append(len(lines) - 1)
        elif line.lstrip().startswith(("}", "]")):
            start = opened.pop()
            room = LONG_LINE if lines[start].strip() in ("{", "[") else SHORT_LINE
            # Each line has a character at least: a long value is not joined again for each level.
            if start and len(lines) - start <= room:
                first, *inner, last = lines[start:]
                joined = f"{first}{' '.join(map(str.strip, inner))}{last.strip()}"
                lines[start:] = [joined] if len(joined) <= room else lines[start:]
    return "\n".join(lines)
