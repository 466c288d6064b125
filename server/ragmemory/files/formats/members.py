"""Files in an archive or attached to an e-mail: each is read on its own, below a heading with its name.

Nothing is written to disk. Nested archives share the limits of the outermost file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from ragcommon.files.decoding import MAX_FILE_BYTES, EmptyText, NotText
from ragcommon.files.safe_open import too_large
from ragcommon.text.rules import MARKDOWN_NAMES
from ragmemory.files.formats.archives import MAX_BYTES, MAX_MEMBERS
from ragmemory.files.formats.csv_table import DELIMITERS, as_table
from ragmemory.files.formats.detection import HIDDEN, IMAGE, OF_LOGSEQ, SECRETS, TEXT, module_for, read
from ragmemory.files.formats.file_text import (
    FileText,
    TextBuilder,
    listed,
    lowered,
    one_line,
)
from ragmemory.files.formats.scans import current
from ragmemory.ingest.documents import MARKDOWN, media_type

# Levels of nested archives and e-mails.
MAX_DEPTH = 3
MAX_NAME = 200
PROSE = frozenset(("", ".txt", ".text", ".log", *MARKDOWN_NAMES))
# The name of a note in an export by Joplin, which tells less than its title.
NAMELESS = re.compile(r"[0-9a-f]{32}\.md")
# What Notion adds to the names of the files and folders of an export.
IDENTIFIER = re.compile(r" [0-9a-f]{32}(?=[/._])")
# The folder of resource forks that macOS adds to archives.
METADATA = "__MACOSX"


@dataclass
class _Budget:
    files: int = MAX_MEMBERS
    bytes: int = MAX_BYTES
    levels: int = MAX_DEPTH


_budget: ContextVar[_Budget] = ContextVar("_budget")


class Members:
    """Adds the embedded files to the text of the outer file."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._budget = _budget.get(_Budget())
        self._unread: list[str] = []
        self._notes: list[str] = []
        self._shown = set[str]()

    @property
    def note(self) -> str:
        """A note on these files that completes a sentence about the outer file; "": none."""
        unread = f"has files that were not read: {listed(self._unread, '')}" if self._unread else ""
        return "; ".join(filter(None, (unread, listed(self._notes, ""))))

    def add(self, name: str, size: int, content: Callable[[], bytes], place: str = "") -> None:
        """Add a file of `size` bytes at `place`. Raises TooMuchText; other failures end up in `note`."""
        path = PurePosixPath(name.replace("\\", "/"))
        own = one_line(str(path))[:MAX_NAME]
        shown = IDENTIFIER.sub("", own)
        if is_hidden(path):
            return
        try:
            if not path.name or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
                raise NotText("its name leads elsewhere")
            if SECRETS.fullmatch(path.name):
                raise NotText("may hold keys or passwords")
            found = self._read(path.name, size, content)
        except MemoryError:
            raise
        except EmptyText:
            return
        except NotText as error:
            self._unread.append(f"{shown} ({error})")
        except Exception as error:
            self._unread.append(f"{shown} (is damaged: {type(error).__name__})")
        else:
            if NAMELESS.fullmatch(path.name):
                shown = one_line(found.title) or own
            if shown in self._shown:  # Of the same title, or the same name but for its identifier.
                shown = own
            self._shown.add(shown)
            self._add(shown, Path(path.name), found, f"{place} {shown}".lstrip())

    def alone(self, packed: str, name: str, size: int, content: Callable[[], bytes]) -> FileText:
        """The text of the only file in `packed`, with its own places. Raises NotText."""
        found = self._read(name, size, content)
        title = packed if found.title == name else found.title
        return replace(found, title=title, media_type=found.media_type or media_type(name))

    def _read(self, name: str, size: int, content: Callable[[], bytes]) -> FileText:
        """Raises NotText; any other exception is a parser's bug."""
        if module_for(Path(name)) == IMAGE and not current().with_images:
            raise NotText("is an image")
        with self._reserved(size):
            return read(Path(name), content())

    def _add(self, shown: str, path: Path, found: FileText, place: str) -> None:
        if found.note:
            self._notes.append(f"{shown} {found.note}")
        self._builder.add(f"# {shown}", place)
        suffix = path.suffix.lower()
        if suffix in DELIMITERS:
            found = as_table(found, suffix)
        is_code = found.media_type != MARKDOWN and suffix not in PROSE and module_for(path) == TEXT
        if (found.media_type or media_type(path.name)) == MARKDOWN:
            found = replace(found, text=lowered(found.text))
        self._builder.add_file(found, place, fence=suffix[1:] if is_code else None)

    @contextmanager
    def _reserved(self, size: int) -> Iterator[None]:
        """Charge one file and its bytes to the budget, and a level while it is read. Raises NotText."""
        left = self._budget
        if size > MAX_FILE_BYTES:
            raise NotText(f"{too_large(size, MAX_FILE_BYTES)}; split it")
        if not left.files or size > left.bytes:
            raise NotText(
                f"only {MAX_MEMBERS:,} files and {MAX_BYTES >> 20} MiB are read; unpack the archive"
            )
        if not left.levels:
            raise NotText(f"is more than {MAX_DEPTH} levels deep")
        left.files -= 1
        left.bytes -= size
        left.levels -= 1
        token = _budget.set(left)
        try:
            yield
        finally:
            _budget.reset(token)
            left.levels += 1


def is_hidden(path: PurePosixPath) -> bool:
    """Whether a file in an archive is passed over in silence, as in folders."""
    parts = path.parts
    is_named_so = any((part.startswith(HIDDEN) and part != "..") or part == METADATA for part in parts)
    return is_named_so or not OF_LOGSEQ.isdisjoint(pairwise(parts))
