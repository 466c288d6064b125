"""Which files of a folder .gitignore files exclude, by git's rules.

All patterns of one file form a nondeterministic automaton. Its states are places in the patterns, one bit
each in an integer. It reads a path once, byte by byte, so the time is at most proportional to the length of
the path times the size of the file. Regular expressions, which `pathspec` uses, backtrack: `*a*a*a*a*b` takes
minutes. Sources: gitignore(5); dir.c and wildmatch.c of git for cases that page does not define.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragconfig.files.regular import read_regular

NAME = ".gitignore"
# Large ones have some ten thousand bytes.
LARGEST_BYTES = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# A place in a pattern accepts a set of byte values, stored as the bits of an integer.
ANY = (1 << 256) - 1
NOT_SLASH = ANY ^ (1 << ord("/"))
NOTHING = 0

CLASSES = {
    name: sum(1 << byte for byte in range(128) if test(chr(byte)))
    for name, test in {
        b"alnum": str.isalnum,
        b"alpha": str.isalpha,
        b"blank": " \t".__contains__,
        b"cntrl": lambda char: char < " " or char == "\x7f",
        b"digit": str.isdigit,
        b"graph": lambda char: "!" <= char <= "~",
        b"lower": str.islower,
        b"print": lambda char: " " <= char <= "~",
        b"punct": lambda char: "!" <= char <= "~" and not char.isalnum(),
        b"space": " \t\n\r".__contains__,
        b"upper": str.isupper,
        b"xdigit": "0123456789abcdefABCDEF".__contains__,
    }.items()
}


class Malformed(Exception):
    """A pattern that matches nothing; git skips it silently."""


@dataclass(frozen=True)
class Place:
    """One step of a pattern: one byte of `accepts`; with `repeats`, any number of them, even none.

    `skips`: this place and the next one together may be left out, as in `**/`.
    """

    accepts: int
    repeats: bool = False
    skips: bool = False


LITERALS = [Place(1 << byte) for byte in range(256)]
SLASH = LITERALS[ord("/")]
STAR = Place(NOT_SLASH, repeats=True)
STARS = Place(ANY, repeats=True)
# Any number of folders, even none: for `**/`, and before a pattern without a slash.
FOLDERS = (Place(ANY, repeats=True, skips=True), SLASH)


class Patterns:
    """The patterns of one .gitignore file."""

    def __init__(self, content: bytes) -> None:
        places: list[Place] = []
        # Bits: where patterns begin; where they end, for files and for folders; which ends are negated.
        self._starts = self._file_ends = self._folder_ends = self._negated = 0
        for line in lines(content):
            try:
                pattern, negated, only_folders = parse(line)
            except Malformed:
                continue
            self._starts |= 1 << len(places)
            places += pattern
            end = 1 << len(places)
            places.append(Place(NOTHING))
            self._folder_ends |= end
            self._file_ends |= 0 if only_folders else end
            self._negated |= end if negated else 0
        self._places = places
        self._repeats = bits(place.repeats for place in places)
        self._skips = bits(place.skips for place in places)
        self._masks: dict[int, tuple[int, int]] = {}

    def verdict(self, path: bytes, folder: bool) -> bool | None:
        """Whether the last pattern that matches `path` ignores it; None if none does.

        `path` is relative to the file's folder, with slashes between its parts.
        """
        state = self._arrived(self._starts, 0)
        for byte in path:
            passing, staying = self._masks.get(byte) or self._make_masks(byte)
            state = self._arrived((state & passing) << 1, state & staying)
            if not state:
                return None
        ends = state & (self._folder_ends if folder else self._file_ends)
        last = 1 << ends.bit_length() >> 1
        return not last & self._negated if last else None

    def _arrived(self, new: int, old: int) -> int:
        """The places `new` and `old`, and those reachable from them without reading a byte.

        One step is enough: FOLDERS never follow FOLDERS, and repeated places never follow each other. FOLDERS
        can be skipped only on arrival.
        """
        new |= (new & self._skips) << 2
        state = new | old
        return state | (state & self._repeats) << 1

    def _make_masks(self, byte: int) -> tuple[int, int]:
        """The places that `byte` passes, and the repetitions that it stays in."""
        accepting = bits(place.accepts >> byte & 1 for place in self._places)
        masks = accepting & ~self._repeats, accepting & self._repeats
        self._masks[byte] = masks
        return masks


def bits(values: Iterator[int]) -> int:
    """The values, 0 or 1 each, as the bits of a number, lowest first; linear in their count."""
    digits = "".join("1" if value else "0" for value in values)
    return int(digits[::-1] or "0", 2)


def lines(content: bytes) -> Iterator[bytes]:
    """The lines that hold patterns, without their ends and without trailing spaces."""
    for line in content.removeprefix(BYTE_ORDER_MARK).split(b"\n"):
        line = line.removesuffix(b"\r").partition(b"\0")[0]
        if not line.startswith(b"#"):
            yield without_trailing_spaces(line)


def without_trailing_spaces(line: bytes) -> bytes:
    """The line without trailing spaces; a space after a backslash is kept."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 else bare


def parse(line: bytes) -> tuple[list[Place], bool, bool]:
    """The places of a line, whether it is negated (`!`), and whether it is for folders only (a final `/`).

    Raises Malformed.
    """
    negated = line.startswith(b"!")
    pattern = line[1:] if negated else line
    only_folders = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_folders else pattern
    if not pattern:
        raise Malformed
    if b"/" not in pattern:
        return [*FOLDERS, *places_of(pattern, in_path=False)], negated, only_folders
    pattern = pattern.removeprefix(b"/")
    # Git compares the text before the first wildcard literally, and treats the rest as a separate pattern.
    plain = next((index for index, byte in enumerate(pattern) if byte in b"*?[\\"), len(pattern))
    literal = [LITERALS[byte] for byte in pattern[:plain]]
    return [*literal, *places_of(pattern[plain:], in_path=True)], negated, only_folders


def places_of(pattern: bytes, *, in_path: bool) -> list[Place]:
    """The places of a pattern. `in_path`: `**` between slashes means folders; otherwise it is like `*`.

    Raises Malformed.
    """
    places: list[Place] = []
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"*":
            end = at + len(pattern[at:]) - len(pattern[at:].lstrip(b"*"))
            is_free = in_path and end - at > 1 and (at == 0 or pattern[at - 1 : at] == b"/")
            if is_free and pattern[end : end + 1] == b"/":
                if tuple(places[-2:]) != FOLDERS:
                    places += FOLDERS
                end += 1
            elif is_free and (end == len(pattern) or pattern[end : end + 2] == b"\\/"):
                places.append(STARS)
            else:
                places.append(STAR)
            at = end
        elif byte == b"[":
            accepts, at = bracket(pattern, at + 1)
            places.append(Place(accepts))
        elif byte == b"?":
            places.append(Place(NOT_SLASH))
            at += 1
        else:
            at += byte == b"\\"
            if at == len(pattern):
                raise Malformed
            places.append(LITERALS[pattern[at]])
            at += 1
    return places


def bracket(pattern: bytes, at: int) -> tuple[int, int]:
    """The bytes that a bracket expression accepts, and the index after it; `at` is the index after `[`.

    Raises Malformed.
    """
    accepts = 0
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    first, before = at, -1  # before: the byte that a range may begin with
    try:
        while pattern[at] != ord("]") or at == first:
            if pattern[at : at + 2] == b"[:":
                end = pattern.index(b"]", at + 2)
                name = pattern[at + 2 : end]
                if name.endswith(b":"):
                    accepts |= CLASSES[name[:-1]]
                    at, before = end + 1, -1
                    continue
            is_range = pattern[at] == ord("-") and before >= 0 and pattern[at + 1] != ord("]")
            at += is_range
            at += pattern[at] == ord("\\")
            byte = pattern[at]
            if is_range:
                accepts |= sum(1 << between for between in range(before, byte + 1))
            accepts |= 0 if is_range else 1 << byte
            before = -1 if is_range else byte
            at += 1
    except (IndexError, ValueError, KeyError):  # no closing bracket, no class of that name
        raise Malformed from None
    return (accepts ^ ANY if negated else accepts) & NOT_SLASH, at + 1


@dataclass(frozen=True)
class Gitignore:
    """The .gitignore files that apply to a folder, outermost first; deeper files take precedence.

    `unreadable`: the errors of those that could not be read in the last step.
    """

    files: tuple[tuple[Path, Patterns], ...] = ()
    unreadable: tuple[OSError, ...] = ()

    @classmethod
    def above(cls, root: Path) -> Gitignore:
        """The files from the repository's top to `root`; none if they ignore `root`, which the user named."""
        parents = list(root.parents)
        top = next((index for index, folder in enumerate(parents) if (folder / ".git").exists()), None)
        # `Path.exists` raises if the folder may not be searched.
        if top is None or os.path.exists(root / ".git"):  # noqa: PTH110
            return cls()
        ignored, unreadable = cls(), list[OSError]()
        for folder in reversed(parents[: top + 1]):
            ignored = ignored.inside(folder)
            unreadable += ignored.unreadable
        files = () if ignored.matches(root, folder=True) else ignored.files
        return cls(files, tuple(unreadable))

    def inside(self, folder: Path) -> Gitignore:
        """These files and that of `folder`, if there is one."""
        try:
            content = read_regular(folder / NAME, LARGEST_BYTES)
        except FileNotFoundError:
            return Gitignore(self.files)
        except OSError as error:
            return Gitignore(self.files, (error,))
        return Gitignore((*self.files, (folder, Patterns(content))))

    def matches(self, path: Path, folder: bool) -> bool:
        """Whether git would ignore this entry of a folder that it does not ignore."""
        for base, patterns in reversed(self.files):
            if path.is_relative_to(base):
                verdict = patterns.verdict(os.fsencode(path.relative_to(base).as_posix()), folder)
                if verdict is not None:
                    return verdict
        return False
