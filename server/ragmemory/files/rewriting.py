"""Write the edited text of a document back to its file.

Unchanged lines keep their bytes; new lines get the encoding and line ends of the file. The new file is
written under a temporary name and then renamed, so a kill at any time leaves the old or the new file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import islice, takewhile
from pathlib import Path

from anyio import to_thread

from ragcommon.errors import os_reason
from ragcommon.files.decoding import BYTE_ORDER_MARKS, MAX_FILE_BYTES, NotText, decode
from ragcommon.files.folder import Folder
from ragcommon.files.safe_open import read_in
from ragcommon.files.uris import path_of
from ragcommon.files.writing import replace_in, write_temporary
from ragmemory.errors import NotWrittenBack
from ragmemory.files.formats.detection import TEXT, module_of
from ragmemory.files.formats.text import read
from ragmemory.files.roots import is_within
from ragmemory.files.walking import NOT_ALLOWED

_CHANGED = "its file is no longer what was read"
_LOAD_AGAIN = "Load the file again, and edit what it holds now."
_LOST = "what was left out between the changes, such as the data of an image or a page header, would be lost"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Rewriting:
    """A new version of a file, under a temporary name until `replace`. Call `discard` at the end."""

    def __init__(self, uri: str, roots: Sequence[str], before: str, after: str) -> None:
        """`before` is the text of the file, `after` the new one. Raises NotWrittenBack."""
        self._uri = uri
        self._is_replaced = False
        with ExitStack() as stack:
            try:
                self.path = _path(uri, roots)
                self._folder = stack.enter_context(Folder(self.path.parent))
                self._old = self._content()
                self._check_writable()
                self._new = self._rewritten(before, after)
                self._temporary = write_temporary(self._folder, self.path.name, self._new)
            except NotText as error:
                raise NotWrittenBack(uri, f"its file {error}") from None
            except OSError as error:
                raise NotWrittenBack(uri, os_reason(error)) from error
            self._opened = stack.pop_all()

    async def replace(self) -> None:
        """Replace the file. Raises NotWrittenBack."""
        await to_thread.run_sync(self._replace)

    async def put_back(self) -> None:
        """Restore the old content, if `replace` has changed the file and no other program has since."""
        await to_thread.run_sync(self._put_back)

    def discard(self) -> None:
        """Remove the temporary file, if it is still there."""
        with self._opened, suppress(OSError):
            self._folder.remove(self._temporary)

    def _put_back(self) -> None:
        if self._is_replaced:
            with suppress(OSError):  # The next sync then loads the new content.
                if self._content() == self._new:
                    replace_in(self._folder, self.path.name, self._old)

    def _replace(self) -> None:
        try:
            now = self._content()
            # Already replaced, if the surrounding transaction was retried.
            if now == self._new:
                return
            if now != self._old:
                raise NotWrittenBack(self._uri, _CHANGED, _LOAD_AGAIN)
            self._folder.replace(self.path.name, by=self._temporary)
            self._is_replaced = True
        except OSError as error:
            raise NotWrittenBack(self._uri, os_reason(error)) from error

    def _content(self) -> bytes:
        return read_in(self._folder, self.path.name, MAX_FILE_BYTES)

    def _check_writable(self) -> None:
        """Replacing a file needs write access to its folder only, so check the file as well."""
        name = self.path.name
        if not self._folder.is_writable(name) or not self._folder.stat(name).st_mode & 0o222:
            raise NotWrittenBack(self._uri, "it is write-protected")

    def _rewritten(self, before: str, after: str) -> bytes:
        encoding = decode(self._old).encoding
        if module_of(self.path, self._old) != TEXT:
            raise NotWrittenBack(self._uri, "only text and Markdown files can be")
        if read(self.path, self._old).text != before:
            raise NotWrittenBack(self._uri, _CHANGED, _LOAD_AGAIN)
        mark = next(
            (mark for mark, of in BYTE_ORDER_MARKS if of == encoding and self._old.startswith(mark)), b""
        )
        try:
            raw = self._old[len(mark) :].decode(encoding)
            if _loses(raw, before, after):
                raise NotWrittenBack(self._uri, _LOST)
            new = mark + with_line_ends(raw, before, after).encode(encoding)
        except UnicodeError:
            raise NotWrittenBack(self._uri, f"its encoding {encoding} lacks characters of the text") from None
        if read(self.path, new).text != after:
            raise NotWrittenBack(self._uri, f"the text would not be read as {encoding} again")
        return new


def with_line_ends(raw: str, before: str, after: str) -> str:
    """`after` with the line ends of `raw`, the original form of `before`; unchanged lines keep theirs."""
    raw_lines, new = _LINE.findall(raw), _LINE.findall(after)
    first, last = _unchanged(_LINE.findall(before), new)
    ends = Counter(line[len(line.rstrip("\r\n")) :] for line in raw_lines)
    end = max(("\n", "\r\n", "\r"), key=lambda end: ends[end])
    middle = "".join(new[first : len(new) - last]).replace("\n", end)
    return "".join(raw_lines[:first]) + middle + "".join(raw_lines[len(raw_lines) - last :])


def _unchanged(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """The number of equal lines at the beginning and at the end."""
    first = common(old, new)
    return first, common(old[first:][::-1], new[first:][::-1])


def _loses(raw: str, before: str, after: str) -> bool:
    """Whether a line from the first change to the last has more in the file than in the text read from it."""
    raw_lines, old = _LINE.findall(raw), _LINE.findall(before)
    first, last = _unchanged(old, _LINE.findall(after))
    pairs = zip(raw_lines, old, strict=False)
    changed = islice(pairs, first, max(first, len(old) - last))
    return any(one.rstrip("\r\n") != other.rstrip("\n") for one, other in changed)


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of equal lines at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _path(uri: str, roots: Sequence[str]) -> Path:
    """The file itself, not a link to it. Raises NotWrittenBack, OSError."""
    if not uri.startswith("file:"):
        raise NotWrittenBack(uri, "it was not read from a file")
    try:
        path = path_of(uri).resolve(strict=True)
    except (RuntimeError, ValueError) as error:  # a loop of links, a NUL character
        raise NotWrittenBack(uri, str(error)) from error
    if not is_within(roots, path):
        raise NotWrittenBack(uri, f"it {NOT_ALLOWED}")
    return path
