"""Apply .gitignore files by git's rules.

A pattern becomes a regular expression in which each wildcard, with the text up to the next one, is an atomic
group, as in `fnmatch.translate`: the first place where that text fits is the right one, so no other is tried.
Expressions without such groups, which `pathspec` uses, backtrack: `*a*a*a*a*b` takes minutes. Sources:
gitignore(5); git's dir.c and wildmatch.c for cases that it does not define.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ragcommon.files.folder import Folder, LinkInPath
from ragcommon.files.safe_open import read_in

NAME = ".gitignore"
# Large .gitignore files have about ten thousand bytes.
MAX_BYTES = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Classes of a bracket expression as parts of a set of `re`.
CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"!-~",
    b"lower": rb"a-z",
    b"print": rb" -~",
    b"punct": rb"!-/:-@[-`{-~",
    b"space": rb" \t\n\r",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
# What opens the atomic group of a wildcard: `*`; `**/`, zero or more folders; `**` at the end.
STAR, FOLDERS, STARS = rb"(?>[^/]*?", rb"(?>(?:.*?/)??", rb"(?>.*?"
# A part of a pattern; an escaped character with its backslash.
TOKEN = re.compile(rb"\*+|\\?.", re.DOTALL)


class MalformedPattern(Exception):
    """A pattern that matches nothing; git skips it silently."""


@dataclass(frozen=True)
class Kind:
    """What a pattern does (`!` negates it), and what it is compared with: a whole path or a name."""

    ignores: bool
    in_path: bool
    only_folders: bool


class Patterns:
    """The patterns of one .gitignore file."""

    def __init__(self, content: bytes) -> None:
        # Consecutive patterns of a kind are one expression. The last one that matches decides.
        self._runs: list[tuple[Kind, re.Pattern[bytes]]] = [
            (kind, re.compile(b"|".join(regex for _, regex in run), re.DOTALL))
            for kind, run in groupby(_parsed(content), itemgetter(0))
        ][::-1]

    def verdict(self, path: bytes, folder: bool) -> bool | None:
        """Whether the last pattern that matches `path` ignores it; None if none matches.

        `path` has slashes as separators, and is relative to the file's folder.
        """
        name = path.rpartition(b"/")[2]
        for kind, regex in self._runs:
            if (folder or not kind.only_folders) and regex.match(path if kind.in_path else name):
                return kind.ignores
        return None


def _parsed(content: bytes) -> Iterator[tuple[Kind, bytes]]:
    """The patterns as regular expressions."""
    for line in lines(content):
        pattern = line.removeprefix(b"!")
        only_folders = pattern.endswith(b"/")
        pattern = pattern.removesuffix(b"/")
        kind = Kind(not line.startswith(b"!"), b"/" in pattern, only_folders)
        with suppress(MalformedPattern):
            yield kind, regex_of(pattern.removeprefix(b"/"), in_path=kind.in_path)


def lines(content: bytes) -> Iterator[bytes]:
    """The lines with patterns, without line ends and trailing spaces."""
    for line in content.removeprefix(BYTE_ORDER_MARK).split(b"\n"):
        line = line.removesuffix(b"\r").partition(b"\0")[0]
        if not line.startswith(b"#"):
            yield without_trailing_spaces(line)


def without_trailing_spaces(line: bytes) -> bytes:
    """The line without trailing spaces; a space after a backslash is kept."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 else bare


def regex_of(pattern: bytes, *, in_path: bool) -> bytes:
    """A pattern as a regular expression. `in_path`: `**` between slashes means folders; else it is like `*`.

    The group of a `*` lasts until the next wildcard, that of `**` until the next `**`.
    Raises MalformedPattern.
    """
    if not pattern:
        raise MalformedPattern
    parts, inner, outer = list[bytes](), b"", b""  # inner, outer: what closes the open groups
    at = 0
    while token := TOKEN.match(pattern, at):
        start, at, text = at, token.end(), token[0]
        if text.startswith(b"*"):
            is_free = in_path and len(text) > 1 and (start == 0 or pattern[start - 1 : start] == b"/")
            if is_free and pattern[at : at + 1] == b"/":
                at += 1
                if parts[-1:] != [FOLDERS]:
                    parts += inner, outer, FOLDERS
                    inner, outer = b"", b")"
            elif is_free and (at == len(pattern) or pattern[at : at + 2] == b"\\/"):
                parts += inner, outer, STARS
                inner, outer = b"", b")"
            else:
                parts += inner, STAR
                inner = b")"
        elif text == b"[":
            part, at = bracket(pattern, at)
            parts.append(part)
        elif text == b"?":
            parts.append(b"[^/]")
        elif text == b"\\":
            raise MalformedPattern
        else:
            parts.append(re.escape(text[-1:]))
    return b"".join((*parts, rb"\Z", inner, outer))


def bracket(pattern: bytes, at: int) -> tuple[bytes, int]:
    """A bracket expression as a set of `re`, and the index after it; `at` is just after `[`.

    Raises MalformedPattern.
    """
    accepts = b"/"  # It is never accepted, but an empty set would be an error.
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    first, before = at, -1  # before: the byte that a range may begin with
    try:
        while pattern[at] != ord("]") or at == first:
            if pattern[at : at + 2] == b"[:":
                stop = pattern.index(b"]", at + 2)
                name = pattern[at + 2 : stop]
                if name.endswith(b":"):
                    accepts += CLASSES[name[:-1]]
                    at, before = stop + 1, -1
                    continue
            is_range = pattern[at] == ord("-") and before >= 0 and pattern[at + 1] != ord("]")
            at += is_range
            at += pattern[at] == ord("\\")
            byte = pattern[at]
            if not is_range:
                accepts += rb"\x%02x" % byte
            elif before <= byte:
                accepts += rb"\x%02x-\x%02x" % (before, byte)
            before = -1 if is_range else byte
            at += 1
    except (IndexError, ValueError, KeyError):  # no closing bracket, no class of that name
        raise MalformedPattern from None
    return rb"(?!/)[%s%s]" % (b"^" if negated else b"", accepts), at + 1


@dataclass(frozen=True)
class Gitignore:
    """The .gitignore files that apply to a folder, outermost first; deeper files take precedence.

    Each of `files` has the path of its folder, with a final slash. `unreadable`: the errors of files that the
    last call could not read.
    """

    files: tuple[tuple[bytes, Patterns], ...] = ()
    unreadable: tuple[OSError, ...] = ()

    @classmethod
    def above(cls, root: Path) -> Gitignore:
        """The files from the repository root down to `root`; none if they ignore `root` itself."""
        parents = list(root.parents)
        top = next((index for index, folder in enumerate(parents) if (folder / ".git").exists()), None)
        # `Path.exists` raises for a folder without search permission.
        if top is None or os.path.exists(root / ".git"):  # noqa: PTH110
            return cls()
        ignored, unreadable = cls(), list[OSError]()
        for folder in reversed(parents[: top + 1]):
            ignored = ignored.at(folder)
            unreadable += ignored.unreadable
        files = () if ignored.matches(root, folder=True) else ignored.files
        return cls(files, tuple(unreadable))

    def at(self, path: Path) -> Gitignore:
        """These files, and the one in the folder at a resolved path, if any."""
        try:
            with Folder(path) as folder:
                return self.inside(folder)
        except OSError as error:
            return Gitignore(self.files, (error,))

    def inside(self, folder: Folder) -> Gitignore:
        """These files, and the one in an open folder, if any. Links are refused, as in git."""
        try:
            content = read_in(folder, NAME, MAX_BYTES)
        except FileNotFoundError:
            return Gitignore(self.files)
        except OSError as error:
            if isinstance(error, LinkInPath):
                error.strerror = "it is a link, which git does not follow"
            return Gitignore(self.files, (error,))
        return Gitignore((*self.files, (_bytes(folder.path / "x")[:-1], Patterns(content))))

    def matches(self, path: Path, folder: bool) -> bool:
        """Whether git ignores this entry, given that its folder is not ignored."""
        entry = _bytes(path)
        for base, patterns in reversed(self.files):
            if entry.startswith(base):  # The target of a link may be elsewhere.
                verdict = patterns.verdict(entry.removeprefix(base), folder)
                if verdict is not None:
                    return verdict
        return False


def _bytes(path: Path) -> bytes:
    return os.fsencode(path.as_posix())
