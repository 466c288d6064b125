"""JSON without line breaks: written with them, so that a passage and a quotation have an end."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Raw

from ragcommon.files.decoding import decode
from ragmemory.files.formats.read import Read

SUFFIX = ".json"
# A line of so many characters holds several values.
LONG_LINE = 1_000


def is_minified(beginning: str) -> bool:
    """Whether a text in JSON has hardly any line breaks, by its beginning."""
    return len(beginning) > LONG_LINE and "\n" not in beginning[:LONG_LINE].strip()


def read(path: Path, data: bytes) -> Read:
    """The elements of a list, a line each unless they are long; of other values all parts, a line each.

    The places are the elements of the list. Raises NotText.
    """
    text = decode(data).text
    try:
        if not text.startswith("["):
            return Read(msgspec.json.format(text, indent=2) + "\n", path.name)
        elements = msgspec.json.decode(text, type=list[Raw])
        lines, places = ["["], []
        for number, element in enumerate(elements, 1):
            places.append((len(lines) + 1, f"record {number}"))
            written = bytes(element)
            if len(written) > LONG_LINE:
                written = msgspec.json.format(written, indent=2)
            lines += f"{written.decode()}{',' if number < len(elements) else ''}".split("\n")
    except (msgspec.DecodeError, RecursionError):
        return Read(text, path.name)
    return Read("\n".join([*lines, "]", ""]), path.name, places=places)
