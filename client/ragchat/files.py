"""Files and folders to sources: which files are meant, and what text is in one. No memory, no screen.

Rules: a path that is named is taken as it is, also when it is hidden or ignored; inside a folder, hidden
entries and what .gitignore names are left out without a word, and whatever else cannot be loaded is named
with its reason. A link found inside a folder is followed only to a place inside the same folder: a cloned
repository must not bring the user's private files into memory.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
# Named without being opened. Some of them are text inside, but their markup would bury their words.
UNSUPPORTED = {
    extension: kind
    for kind, extensions in {
        "PDF": "pdf",
        "HTML": "html htm xhtml",
        "office": "doc docx odt rtf xls xlsx ods ppt pptx odp epub",
        "notebook": "ipynb",
        "image": "png jpg jpeg gif webp bmp ico tif tiff svg heic",
        "sound or film": "mp3 wav flac ogg m4a mp4 mkv mov avi webm",
        "archive": "zip gz bz2 xz zst tar tgz 7z rar jar whl",
        "program": "exe dll so dylib o a class pyc wasm bin",
        "database": "db sqlite sqlite3 parquet npy npz safetensors pt gguf",
        "font": "ttf otf woff woff2",
    }.items()
    for extension in (f".{name}" for name in extensions.split())
}
# Long marks first: UTF-32's little-endian mark begins with UTF-16's.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SNIFFED_BYTES = 8192
CONTROL_CHARACTERS = bytes(set(range(32)) - set(b"\t\n\f\r\x1b"))
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)


class NotText(Exception):
    """A file's content is not text; the message is the reason."""


class EmptyText(NotText):
    """There is nothing in the file but white space."""


@dataclass(frozen=True)
class Source:
    """One file to load. `named`: by the user, not found in a folder."""

    path: Path  # resolved
    size: int  # bytes
    named: bool = False

    @property
    def uri(self) -> str:
        return self.path.as_uri()


@dataclass(frozen=True)
class Refusal:
    """A path that is not loaded, and why. `failed`: the user meant it and does not get it; else left out."""

    path: Path
    reason: str
    failed: bool = True

    @property
    def uri(self) -> str:
        return self.path.absolute().as_uri()


@dataclass
class Collected:
    """What a walk found. `folders` are the resolved folders that were walked."""

    sources: list[Source] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)


def collect(paths: Iterable[Path]) -> Collected:
    """Everything that `paths` mean, each file once, in a stable order. Never raises for a bad path."""
    collected = Collected()
    seen: set[Path] = set()
    for path in paths:
        try:
            resolved = path.expanduser().resolve(strict=True)
            walked = _walk(resolved) if resolved.is_dir() else iter([_look(resolved, named=True)])
            if resolved.is_dir():
                collected.folders.append(resolved)
        except FileNotFoundError:
            walked = iter([Refusal(path, "does not exist")])
        except (OSError, RuntimeError) as error:
            walked = iter([Refusal(path, _reason(error))])
        for item in walked:
            if isinstance(item, Refusal):
                collected.refusals.append(item)
            elif item.path not in seen:
                seen.add(item.path)
                collected.sources.append(item)
    return collected


def _look(path: Path, *, named: bool = False) -> Source | Refusal:
    """A resolved path that is no folder, judged by its name and kind alone."""
    try:
        status = path.stat()
    except OSError as error:
        return Refusal(path, _reason(error))
    if not stat.S_ISREG(status.st_mode):
        return Refusal(path, "is not a regular file", named)
    if kind := UNSUPPORTED.get(path.suffix.lower()):
        return Refusal(path, f"is not text or Markdown ({kind})", named)
    return Source(path, status.st_size, named)


def _walk(root: Path) -> Iterator[Source | Refusal]:
    """The files under `root`, which is resolved; folders in the order of their names."""
    visited = {root}
    pending: list[tuple[Path, _Ignored]] = [(root, _Ignored.above(root))]
    while pending:
        folder, ignored = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield Refusal(folder, _reason(error))
            continue
        ignored = ignored.inside(folder)
        below = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            found = _resolve(entry, root)
            if isinstance(found, Refusal):
                yield found
            elif ignored.matches(Path(entry.path), found.is_dir()):
                continue
            elif not found.is_dir():
                yield _look(found)
            elif found not in visited:
                visited.add(found)
                below.append((found, ignored))
        pending.extend(reversed(below))


def _resolve(entry: os.DirEntry[str], root: Path) -> Path | Refusal:
    path = Path(entry.path)
    if not entry.is_symlink():
        return path
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        return Refusal(path, f"is a link that leads nowhere ({_reason(error)})", failed=False)
    if not target.is_relative_to(root):
        return Refusal(path, "is a link that leads out of the folder", failed=False)
    return target


@dataclass(frozen=True)
class _Ignored:
    """The .gitignore files that hold for a folder, outermost first; a deeper one has the last word."""

    specs: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, root: Path) -> _Ignored:
        """Those between the repository's top and `root`; none if they ignore `root` itself: it was named."""
        parents = list(root.parents)
        top = next((index for index, folder in enumerate(parents) if (folder / ".git").exists()), None)
        if top is None or (root / ".git").exists():
            return cls()
        ignored = cls()
        for folder in reversed(parents[: top + 1]):
            ignored = ignored.inside(folder)
        return cls() if ignored.matches(root, folder=True) else ignored

    def inside(self, folder: Path) -> _Ignored:
        try:
            lines = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return self
        from pathspec import GitIgnoreSpec

        return _Ignored((*self.specs, (folder, GitIgnoreSpec.from_lines(lines))))

    def matches(self, path: Path, folder: bool) -> bool:
        for base, spec in reversed(self.specs):
            if not path.is_relative_to(base):
                continue
            relative = path.relative_to(base).as_posix() + ("/" if folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False


def read_text(path: Path) -> tuple[str, str]:
    """A file's text with plain line ends, and the name of its encoding. Raises NotText, OSError."""
    return decode(path.read_bytes())


def decode(data: bytes) -> tuple[str, str]:
    """UTF-8 and, with a byte order mark, UTF-16 and UTF-32; else Windows-1252; else Latin-1.

    Raises NotText, and EmptyText where there is nothing but white space.
    """
    text, encoding = _decode(data)
    if not text.strip():
        raise EmptyText("is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def _decode(data: bytes) -> tuple[str, str]:
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace"), encoding
    head = data[:SNIFFED_BYTES]
    # One control character in ten: compressed and compiled data have more, text has none or a few.
    if b"\0" in head or len(head) - len(head.translate(None, CONTROL_CHARACTERS)) > len(head) / 10:
        raise NotText("is not text")
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"


def title_of(path: Path, text: str) -> str:
    """A Markdown document's first heading, else the file's name."""
    if path.suffix.lower() in MARKDOWN and (heading := HEADING.search(text)):
        return heading[1]
    return path.name


def references(document: str) -> Sequence[str]:
    """What a user's word for a document may mean, likeliest first: an id or URI as it is, a file's path."""
    return (document, Path(document).expanduser().resolve().as_uri())


def _reason(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    return "is a link that leads to itself"
