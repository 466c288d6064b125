"""Where a source can be read: in its file, if this machine has it, or as memory has it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ragchat.errors import RagChatError
from ragchat.grounding.quotes import quoted_lines
from ragchat.grounding.types import Citation
from ragchat.memory.client import MemoryClient
from ragchat.sanitize import one_line
from ragchat.uris import exact_glob
from ragcommon.contract.search import Hit
from ragcommon.files.uris import path_in

IMAGES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp"))
# In memory their text has other headings, but the same lines.
_SAME_LINES = (".rst", ".rest")


class Original(NamedTuple):
    """The file of a document. `absence` ends a sentence about it; "": this machine has the file."""

    path: Path
    absence: str

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()


async def original_of(memory: MemoryClient, uri: str, machine: str | None = None) -> Original | None:
    """The file of a document; None if it is not a file.

    `machine` is what memory says of it, None to ask memory, which may not answer.
    """
    from anyio import Path

    if (path := path_in(uri)) is None:
        return None
    if machine is None:
        machine = await _machine(memory, uri)
    if machine and (memory.mirror is None or machine != memory.mirror.machine):
        return Original(path, f"is on {one_line(machine)}")
    with suppress(ValueError):  # a NUL in the path
        if await Path(path).is_file():
            return Original(path, "")
    return Original(path, "no longer exists")


async def _machine(memory: MemoryClient, uri: str) -> str:
    """The other machine that has a file; "" if this one has it, or memory does not answer."""
    with suppress(RagChatError):
        found = await memory.documents(1, {"uri": exact_glob(uri)})
        return next((document.machine for document in found.documents), "")
    return ""


def is_converted(hit: Hit | None, path: Path) -> bool:
    """Whether memory has a text that was read from the file, rather than the file's own."""
    return hit is not None and not hit.format_uri and path.suffix.lower() not in _SAME_LINES


def line_in_file(path: Path, citation: Citation, hit: Hit | None) -> int | None:
    """The cited line of a text file; None if it does not hold the passage, or is not text."""
    from ragcommon.files.decoding import MAX_FILE_BYTES, NotText, decode
    from ragcommon.files.safe_open import read_regular

    try:
        text = decode(read_regular(path, MAX_FILE_BYTES)).text
    except (NotText, OSError):
        return None
    same_lines = path.suffix.lower() in _SAME_LINES
    return citation.cited_lines[0] if same_lines else line_in(text, citation, hit)


def line_in(text: str, citation: Citation, hit: Hit | None) -> int | None:
    """The cited line in a text that may have changed, found by the passage or else by the quotation."""
    line, _ = citation.cited_lines
    if hit is None:  # the turn did not keep the passage, which could be searched for
        return line if line <= text.count("\n") + 1 else None
    starts = re.finditer(re.escape(hit.text.strip()), text)
    if lines := [text.count("\n", 0, found.start()) + 1 for found in starts]:
        nearest = min(lines, key=lambda one: abs(one - citation.start_line))
        return nearest + line - citation.start_line
    quoted = quoted_lines(citation.quote, text) if citation.quote else None
    return quoted[0] if quoted else None
