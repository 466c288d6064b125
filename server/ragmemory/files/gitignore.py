"""Apply .gitignore files by git's rules.

All patterns of one file form a nondeterministic automaton (NFA). The set of its active steps is an integer
with one bit per step. A path is read once, byte by byte, so the time is at most proportional to the length of
the path times the size of the file. Regular expressions, which `pathspec` uses, backtrack: `*a*a*a*a*b` takes
minutes. Sources: gitignore(5); git's dir.c and wildmatch.c for cases that it does not define.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ragcommon.files.folder import Folder, LinkInPath
from ragcommon.files.safe_open import read_in

NAME = ".gitignore"
# Large .gitignore files have about ten thousand bytes.
MAX_BYTES = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Sets of byte values, as the bits of an integer.
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


class MalformedPattern(Exception):
    """A pattern that matches nothing; git skips it silently."""


@dataclass(frozen=True)
class Step:
    """One step of a pattern: matches one byte of `accepts`; with `repeats`, zero or more.

    `skips`: this step and the next one together are optional, as in `**/`.
    """

    accepts: int
    repeats: bool = False
    skips: bool = False


LITERALS = [Step(1 << byte) for byte in range(256)]
SLASH = LITERALS[ord("/")]
STAR = Step(NOT_SLASH, repeats=True)
STARS = Step(ANY, repeats=True)
# Zero or more folders: for `**/`, and before a pattern without a slash.
FOLDERS = (Step(ANY, repeats=True, skips=True), SLASH)


class Patterns:
    """The patterns of one .gitignore file."""

    def __init__(self, content: bytes) -> None:
        steps: list[Step] = []
        # The first step of each pattern; the last ones for files and for folders; those of negated patterns.
        starts, file_ends, folder_ends, negated_ends = list[int](), list[int](), list[int](), list[int]()
        for line in lines(content):
            try:
                pattern, negated, only_folders = parse(line)
            except MalformedPattern:
                continue
            starts.append(len(steps))
            steps += pattern
            end = len(steps)
            steps.append(Step(NOTHING))
            folder_ends.append(end)
            if not only_folders:
                file_ends.append(end)
            if negated:
                negated_ends.append(end)
        count = len(steps)
        self._file_ends, self._folder_ends = bits(file_ends, count), bits(folder_ends, count)
        self._negated = bits(negated_ends, count)
        self._repeats = bits((at for at, step in enumerate(steps) if step.repeats), count)
        self._skips = bits((at for at, step in enumerate(steps) if step.skips), count)
        # The distinct sets, and one character per step: the index of its set.
        sets = {accepts: index for index, accepts in enumerate({step.accepts: 0 for step in steps})}
        self._accepts = list(sets)
        self._indexes = "".join(chr(sets[step.accepts]) for step in reversed(steps))
        self._masks: dict[int, tuple[int, int]] = {}
        self.start = self._arrived(bits(starts, count), 0)

    def verdict(self, path: bytes, folder: bool, state: int | None = None) -> bool | None:
        """Whether the last pattern that matches `path` ignores it; None if none matches.

        `path` has slashes as separators, and is relative to the file's folder, or to that of `state`.
        """
        state = self.read(path, self.start if state is None else state)
        ends = state & (self._folder_ends if folder else self._file_ends)
        last = 1 << ends.bit_length() >> 1
        return not last & self._negated if last else None

    def read(self, path: bytes, state: int) -> int:
        """The state after the bytes of a path; 0 if no pattern can match."""
        for byte in path:
            if not state:
                break
            passing, staying = self._masks.get(byte) or self._make_masks(byte)
            state = self._arrived((state & passing) << 1, state & staying)
        return state

    def _arrived(self, new: int, old: int) -> int:
        """The steps `new` and `old`, and those reachable without reading a byte (the epsilon closure).

        One pass is enough: FOLDERS never follow FOLDERS, and repeated steps never follow each other. FOLDERS
        can be skipped only on arrival.
        """
        new |= (new & self._skips) << 2
        state = new | old
        return state | (state & self._repeats) << 1

    def _make_masks(self, byte: int) -> tuple[int, int]:
        """The steps that `byte` completes, and the repeated steps that it stays in."""
        digits = self._indexes.translate(["01"[accepts >> byte & 1] for accepts in self._accepts])
        accepting = int(digits or "0", 2)
        masks = accepting & ~self._repeats, accepting & self._repeats
        self._masks[byte] = masks
        return masks


def bits(positions: Iterable[int], count: int) -> int:
    """An integer with the bits at these positions set; linear in `count`, unlike shifting each."""
    digits = bytearray(b"0") * (count + 1)
    for position in positions:
        digits[count - position] = ord("1")
    return int(digits, 2)


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


def parse(line: bytes) -> tuple[list[Step], bool, bool]:
    """The steps of a line, whether it is negated (`!`), and whether it matches folders only (final `/`).

    Raises MalformedPattern.
    """
    negated = line.startswith(b"!")
    pattern = line[1:] if negated else line
    only_folders = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_folders else pattern
    if not pattern:
        raise MalformedPattern
    if b"/" not in pattern:
        return [*FOLDERS, *steps_of(pattern, in_path=False)], negated, only_folders
    return steps_of(pattern.removeprefix(b"/"), in_path=True), negated, only_folders


def steps_of(pattern: bytes, *, in_path: bool) -> list[Step]:
    """The steps of a pattern. `in_path`: `**` between slashes means folders; otherwise it is like `*`.

    Raises MalformedPattern.
    """
    steps: list[Step] = []
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"*":
            end = at + len(pattern[at:]) - len(pattern[at:].lstrip(b"*"))
            is_free = in_path and end - at > 1 and (at == 0 or pattern[at - 1 : at] == b"/")
            if is_free and pattern[end : end + 1] == b"/":
                if tuple(steps[-2:]) != FOLDERS:
                    steps += FOLDERS
                end += 1
            elif is_free and (end == len(pattern) or pattern[end : end + 2] == b"\\/"):
                steps.append(STARS)
            else:
                steps.append(STAR)
            at = end
        elif byte == b"[":
            accepts, at = bracket(pattern, at + 1)
            steps.append(Step(accepts))
        elif byte == b"?":
            steps.append(Step(NOT_SLASH))
            at += 1
        else:
            at += byte == b"\\"
            if at == len(pattern):
                raise MalformedPattern
            steps.append(LITERALS[pattern[at]])
            at += 1
    return steps


def bracket(pattern: bytes, at: int) -> tuple[int, int]:
    """The bytes that a bracket expression accepts, and the index after it; `at` is just after `[`.

    Raises MalformedPattern.
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
        raise MalformedPattern from None
    return (accepts ^ ANY if negated else accepts) & NOT_SLASH, at + 1


@dataclass(frozen=True)
class Gitignore:
    """The .gitignore files that apply to a folder, outermost first; deeper files take precedence.

    Each of `files` has its folder, its patterns, and their state in `folder`, so that no path is read again
    from its beginning. `unreadable`: the errors of files that the last call could not read.
    """

    folder: Path | None = None
    files: tuple[tuple[Path, Patterns, int], ...] = ()
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
        return cls(ignored.folder, files, tuple(unreadable))

    def at(self, path: Path) -> Gitignore:
        """These files, and the one in the folder at a resolved path, if any."""
        try:
            with Folder(path) as folder:
                return self.inside(folder)
        except OSError as error:
            return Gitignore(path, self._states_in(path), (error,))

    def inside(self, folder: Folder) -> Gitignore:
        """These files, and the one in an open folder, if any. Links are refused, as in git."""
        try:
            content = read_in(folder, NAME, MAX_BYTES)
        except FileNotFoundError:
            return Gitignore(folder.path, self._states_in(folder.path))
        except OSError as error:
            if isinstance(error, LinkInPath):
                error.strerror = "it is a link, which git does not follow"
            return Gitignore(folder.path, self._states_in(folder.path), (error,))
        patterns = Patterns(content)
        files = (*self._states_in(folder.path), (folder.path, patterns, patterns.start))
        return Gitignore(folder.path, files)

    def matches(self, path: Path, folder: bool) -> bool:
        """Whether git ignores this entry, given that its folder is not ignored."""
        for _, patterns, state in reversed(self._states_in(path.parent)):
            verdict = patterns.verdict(os.fsencode(path.name), folder, state)
            if verdict is not None:
                return verdict
        return False

    def _states_in(self, folder: Path) -> tuple[tuple[Path, Patterns, int], ...]:
        """The files that apply to `folder`, with their states there."""
        if folder == self.folder:
            return self.files
        files = []
        for base, patterns, state in self.files:
            if folder.parent == self.folder:
                read = patterns.read(os.fsencode(f"{folder.name}/"), state)
                # Mostly nothing changes: then share the integer.
                files.append((base, patterns, state if read == state else read))
            elif folder.is_relative_to(base):  # The target of a link may be elsewhere.
                inner = folder.relative_to(base).as_posix()
                read = patterns.read(os.fsencode(f"{inner}/") if folder != base else b"", patterns.start)
                files.append((base, patterns, read))
        return tuple(files)
