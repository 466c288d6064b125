"""Files and folders to sources: which files are meant. Not what is in them (`texts`).

Rules: a path that is named is taken as it is, also when it is hidden or ignored; inside a folder, hidden
entries and what .gitignore names are left out without a word, and whatever else cannot be loaded is named
with its reason. A link found inside a folder is followed only to a place inside the same folder: a cloned
repository must not bring the user's private files into memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from ragchat.ingest.gitignore import Gitignore
from ragconfig.regular_files import too_large

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
# Half of what a message to memory may hold (limits.message_bytes): text grows when it is escaped as JSON.
LARGEST_BYTES = 128 << 20


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

    path: Path | None  # None: the user's word was empty, and names nothing
    reason: str
    failed: bool = True

    @property
    def name(self) -> str:
        return str(self.path) if self.path else '""'

    @property
    def uri(self) -> str:
        return self.path.absolute().as_uri() if self.path else ""


@dataclass
class Collected:
    """What a walk found. `folders` are the resolved folders that were walked."""

    sources: list[Source] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)


def collect(paths: Iterable[str | Path], is_given_up: Callable[[], bool] = lambda: False) -> Collected:
    """Everything that `paths` mean, each file once, in a stable order. Never raises for a bad path.

    A user's words come here as they are: an empty one names nothing, while Path("") is the working folder.

    Folders are walked until `is_given_up`: nobody can stop a thread from outside.
    """
    collected = Collected()
    seen: set[Path] = set()
    for word in paths:
        if not os.fspath(word):
            collected.refusals.append(Refusal(None, "does not exist"))
            continue
        path = Path(word)
        try:
            resolved = path.expanduser().resolve(strict=True)
            if resolved.is_dir():
                walked = _walk(resolved, is_given_up)
                collected.folders.append(resolved)
            else:
                walked = iter([_look(resolved, named=True)])
        except FileNotFoundError:
            walked = iter([Refusal(path, "does not exist")])
        except (OSError, RuntimeError) as error:
            walked = iter([Refusal(path, reason_of(error))])
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
        return Refusal(path, reason_of(error))
    if not stat.S_ISREG(status.st_mode):
        return Refusal(path, "is not a regular file", named)
    if status.st_size > LARGEST_BYTES:
        return Refusal(path, f"cannot be read: {too_large(status.st_size, LARGEST_BYTES)}", named)
    if kind := UNSUPPORTED.get(path.suffix.lower()):
        return Refusal(path, f"is not text or Markdown ({kind})", named)
    return Source(path, status.st_size, named)


def _walk(root: Path, is_given_up: Callable[[], bool]) -> Iterator[Source | Refusal]:
    """The files under `root`, which is resolved; folders in the order of their names."""
    visited = {root}
    pending: list[tuple[Path, Gitignore]] = [(root, Gitignore.above(root))]
    yield from _unreadable(pending[0][1])
    while pending and not is_given_up():
        folder, ignored = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield Refusal(folder, reason_of(error))
            continue
        ignored = ignored.inside(folder)
        yield from _unreadable(ignored)
        below = []
        for entry in entries:
            if is_given_up():
                return
            # To git, a link is a file, wherever it leads.
            if entry.name.startswith(".") or ignored.matches(
                Path(entry.path), entry.is_dir(follow_symlinks=False)
            ):
                continue
            found = _resolve(entry, root)
            if isinstance(found, Refusal):
                yield found
            elif not found.is_dir():
                yield _look(found)
            elif found not in visited:
                visited.add(found)
                below.append((found, ignored))
        pending.extend(reversed(below))


def _unreadable(ignored: Gitignore) -> Iterator[Refusal]:
    """Git goes on without a .gitignore that cannot be read; so do we, and say so."""
    for error in ignored.unreadable:
        yield Refusal(Path(error.filename), reason_of(error), failed=False)


def _resolve(entry: os.DirEntry[str], root: Path) -> Path | Refusal:
    path = Path(entry.path)
    if not entry.is_symlink():
        return path
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        return Refusal(path, f"is a link that leads nowhere ({reason_of(error)})", failed=False)
    if not target.is_relative_to(root):
        return Refusal(path, "is a link that leads out of the folder", failed=False)
    return target


def references(document: str) -> Sequence[str]:
    """What a user's word for a document may mean, likeliest first: an id or URI as it is, a file's path."""
    try:
        path = Path(document).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # a home folder nobody has, a link in a circle, a NUL
        return (document,)
    return (document, path.as_uri())


def path_of(uri: str) -> Path:
    """The path behind a file's URI."""
    parts = urlsplit(uri)
    path = os.fsdecode(unquote_to_bytes(parts.path))  # a name need not be UTF-8
    if parts.netloc:
        return Path(f"//{parts.netloc}{path}")
    # file:///C:/notes.md: the slash before a drive letter is no part of a Windows path.
    return Path(path[1:] if len(path) > 2 and path[2] == ":" else path)


def is_gone(uri: str) -> bool:
    """Whether a file is certainly not there any more; what cannot be looked at may be."""
    try:
        path_of(uri).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def reason_of(error: Exception) -> str:
    """Why a path cannot be had, as the end of a sentence about it."""
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    return f"cannot be found: {error}"
