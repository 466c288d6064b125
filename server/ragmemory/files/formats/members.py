"""The files in an archive, or attached to a mail: read as if each were alone, below a heading with its name.

Nothing is written to the disk. The limits are those of the outermost file, whatever is in the archives in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ragcommon.files.decoding import MAX_FILE_BYTES, NotText
from ragcommon.files.safe_open import too_large
from ragmemory.files.formats.archives import MOST_BYTES, MOST_MEMBERS
from ragmemory.files.formats.read import MARKDOWN, Read, TextBuilder, one_line
from ragmemory.files.formats.reader import parser_for, read
from ragmemory.files.formats.text import MARKDOWN as MARKDOWN_NAMES

# Archives and mails in each other.
DEEPEST = 3
# Files that were not read and are named one by one.
MOST_NAMED = 10
LONGEST_NAME = 200
PROSE = frozenset(("", ".txt", ".text", ".log", *MARKDOWN_NAMES))
# What macOS adds to archives.
METADATA = "__MACOSX"


@dataclass
class _Left:
    files: int = MOST_MEMBERS
    bytes: int = MOST_BYTES
    levels: int = DEEPEST


_left: ContextVar[_Left] = ContextVar("_left")


class Members:
    """Adds the files within one to its text."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._left = _left.get(_Left())
        self._unread: list[str] = []
        self._notes: list[str] = []

    @property
    def note(self) -> str:
        """What is to be said about them, as the end of a sentence about the whole; "" for nothing."""
        unread = f"these files in it were not read: {_listed(self._unread)}" if self._unread else ""
        return "; ".join(filter(None, (unread, _listed(self._notes))))

    def add(self, name: str, size: int, content: Callable[[], bytes], place: str = "") -> None:
        """Add a file of `size` bytes, which is in `place`. Raises TooMuchText; other reasons are noted."""
        path = PurePosixPath(name.replace("\\", "/"))
        shown = one_line(str(path))[:LONGEST_NAME]
        if any((part.startswith(".") and part != "..") or part == METADATA for part in path.parts):
            return  # Hidden, as in folders.
        try:
            if not path.name or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
                raise NotText("its name leads elsewhere")
            with self._reserved(size):
                found = read(Path(path.name), content())
        except MemoryError:
            raise
        except NotText as error:
            self._unread.append(f"{shown} ({error})")
        except Exception as error:
            self._unread.append(f"{shown} (is damaged: {type(error).__name__})")
        else:
            self._add(shown, found, f"{place} {shown}".lstrip())

    def _add(self, name: str, found: Read, place: str) -> None:
        if found.note:
            self._notes.append(f"{name} {found.note}")
        self._builder.add(f"# {name}", place)
        path = Path(name)
        suffix = path.suffix.lower()
        is_code = found.media_type != MARKDOWN and suffix not in PROSE and parser_for(path) is None
        self._builder.add_read(found, place, fence=suffix[1:] if is_code else None)

    @contextmanager
    def _reserved(self, size: int) -> Iterator[None]:
        """Take a file and its bytes from what is left, and a level as long as it is read. Raises NotText."""
        left = self._left
        if size > MAX_FILE_BYTES:
            raise NotText(too_large(size, MAX_FILE_BYTES))
        if not left.files or size > left.bytes:
            raise NotText(f"only {MOST_MEMBERS:,} files and {MOST_BYTES >> 20} MiB are read")
        if not left.levels:
            raise NotText(f"it is more than {DEEPEST} levels deep")
        left.files -= 1
        left.bytes -= size
        left.levels -= 1
        token = _left.set(left)
        try:
            yield
        finally:
            _left.reset(token)
            left.levels += 1


def _listed(entries: Sequence[str]) -> str:
    rest = len(entries) - MOST_NAMED
    return ", ".join(entries[:MOST_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")
