"""Walk folders: find the files that the user's paths name or contain.

A path that the user names is always loaded, even if it is hidden or ignored. Inside a folder, entries that
are hidden or excluded by .gitignore are skipped silently; any other file that cannot be loaded is reported
with the reason. A link inside a folder is followed only if its target is in the same folder: a cloned
repository must not bring the user's private files into memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ragcommon.contract.files import FileOutcome
from ragcommon.errors import os_reason
from ragcommon.files.decoding import MAX_FILE_BYTES
from ragcommon.files.folder import Folder
from ragcommon.files.safe_open import too_large
from ragcommon.files.uris import path_of
from ragcommon.sqlite.wal import companions, identity
from ragconfig.home import user_path
from ragconfig.keys import HTTP_TOKEN, WEB_TOKEN
from ragmemory.files.formats.detection import GENERATED, HIDDEN, IMAGE, OF_LOGSEQ, SECRETS, module_for
from ragmemory.files.formats.image import NOT_READ
from ragmemory.files.gitignore import Gitignore
from ragmemory.files.reading import stamp_of
from ragmemory.files.roots import ANY_ROOT, is_within
from ragmemory.limits import MAX_URI_LENGTH

# Files that are refused by their extension.
UNSUPPORTED = {
    extension: kind
    for kind, extensions in {
        "image": "gif bmp ico svg heic",
        "sound or film": "mp3 wav flac ogg m4a mp4 mkv mov avi webm",
        "archive": "zst 7z rar jar whl",
        "program": "exe dll so dylib o a class pyc wasm bin",
        "database": "db sqlite sqlite3 parquet npy npz safetensors pt gguf",
        "font": "ttf otf woff woff2",
    }.items()
    for extension in (f".{name}" for name in extensions.split())
}
# Folders in which the system shows processes and devices as files. They are read only if the user names them.
SYSTEM_FOLDERS = frozenset(map(Path, ("/proc", "/sys", "/dev")))
# Our own files that must not become documents.
OWN_SECRETS = (HTTP_TOKEN, WEB_TOKEN)
# Unsupported document formats, and the supported ones to which their programs can convert.
SAVE_AS = {
    f".{name}": f".{target}"
    for target, names in {
        "docx": "doc dot pages wpd wps one onepkg",
        "xlsx": "xlsb numbers",
        "pptx": "ppt pps",
        "eml": "msg",
        "mbox": "pst ost",
        "html": "webarchive",
        "epub": "mobi azw azw3",
        "pdf": "djvu xps",
    }.items()
    for name in names.split()
}
# A larger `.key` is a presentation of Keynote.
MAX_KEY_BYTES = 65_536


@dataclass(frozen=True)
class File:
    """One file to load. `root` is what the user named: a folder above it, or the file itself."""

    path: Path  # resolved
    size: int  # bytes
    stamp: str  # see `stamp_of`
    root: Path  # resolved

    @property
    def named(self) -> bool:
        """Whether the user named the file itself."""
        return self.root == self.path

    @cached_property
    def uri(self) -> str:
        return self.path.as_uri()


# Reasons for refusing a path.
MISSING = "does not exist"
MADE = "is made from other files, and is read only if you name it"
SECRET = "may hold keys or passwords, and is read only if you name it"
NOT_ALLOWED = "is in none of the folders that memory.roots names"


def refused(path: Path | None, reason: str, failed: bool = True) -> FileOutcome:
    """The outcome of a path that is not loaded; None: an empty argument.

    The reason completes a sentence that begins with the path. `failed`: it counts as a failure, otherwise as
    skipped.
    """
    uri = path.absolute().as_uri() if path else ""
    return FileOutcome(uri, "failed" if failed else "skipped", reason=reason)


@dataclass
class FoundFiles:
    """The files that paths name or contain.

    `folders` are the resolved folders that were walked, `links` those of them that were named by another
    path, by that path; `ignored` are the files and folders in them that .gitignore excludes.
    """

    files: list[File] = field(default_factory=list)
    refusals: list[FileOutcome] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    links: dict[Path, Path] = field(default_factory=dict)
    ignored: set[Path] = field(default_factory=set)

    def ignores(self, path: Path) -> bool:
        """Whether .gitignore excludes a file, or a folder above it."""
        return path in self.ignored or not self.ignored.isdisjoint(path.parents)


class Subset:
    """A subset of a folder: these resolved paths and everything below them. Without paths: all."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = frozenset(paths)
        self._above = frozenset(parent for path in self._paths for parent in path.parents)

    def leads_to(self, path: Path) -> bool:
        """Whether `path` is in the subset, or contains a part of it."""
        return (
            not self._paths
            or path in self._above
            or path in self._paths
            or not self._paths.isdisjoint(path.parents)
        )

    def of(self, folder: Path) -> list[Path]:
        """The paths of the subset inside a folder: the folder itself if there is no restriction."""
        if not self._paths:
            return [folder]
        return [path for path in self._paths if path.is_relative_to(folder)]


def find_files(
    paths: Iterable[str | Path],
    memory: Path | None = None,
    check_cancelled: Callable[[], object] = lambda: None,
    subset: Subset | None = None,
    roots: Sequence[str] = (ANY_ROOT,),
    image_refusal: str = NOT_READ,
) -> FoundFiles:
    """The files that `paths` name or contain, each once, in a stable order. Never raises for a bad path.

    An empty argument is refused: as a Path it would be the working folder. The files of `memory` itself, and
    our own tokens, are skipped in folders. `check_cancelled` is called at each entry, because a thread cannot
    be stopped from outside. `subset` limits the walk of folders. Paths outside `roots` are refused.
    `image_refusal` is why images in a folder are refused, a thousand photos perhaps; "": they are not.
    """
    found = FoundFiles()
    seen: dict[Path, int] = {}  # places in `found.files`
    for word in paths:
        if not os.fspath(word):
            found.refusals.append(refused(None, MISSING))
            continue
        path = Path(word)
        try:
            resolved = user_path(word).resolve(strict=True)
            if not is_within(roots, resolved):
                found.refusals.append(refused(path, NOT_ALLOWED))
                continue
            status = _status(resolved)
            if stat.S_ISDIR(status.st_mode):
                own = memory.resolve() if memory else None
                walked = _walk(
                    resolved, own, check_cancelled, subset or Subset(()), found.ignored, image_refusal
                )
                found.folders.append(resolved)
                if (named := user_path(word).absolute()) != resolved:
                    found.links[named] = resolved
            elif memory and (status.st_dev, status.st_ino) in {
                identity(memory),
                *companions(memory).values(),
            }:
                # Closing it here would drop SQLite's POSIX locks, and another process could remove the log.
                walked = iter([refused(path, "is a file of the memory itself")])
            else:
                walked = iter([_look(resolved, status, resolved, "")])
        except FileNotFoundError:
            walked = iter([refused(path, MISSING)])
        except (OSError, RuntimeError) as error:
            walked = iter([refused(path, why_unreadable(error))])
        for item in walked:
            if isinstance(item, FileOutcome):
                found.refusals.append(item)
            elif item.path not in seen:
                seen[item.path] = len(found.files)
                found.files.append(item)
            elif item.named:  # It is in a folder that was walked before.
                found.files[seen[item.path]] = item
    return found


def _status(path: Path) -> os.stat_result:
    """`stat` of a resolved path. Raises OSError."""
    with Folder(path.parent) as folder:
        return folder.stat(path.name or ".")


def _look(path: Path, status: os.stat_result, root: Path, image_refusal: str) -> File | FileOutcome:
    """Accept or refuse a resolved path that is not a folder, by its name, kind and size."""
    named = path == root
    if not stat.S_ISREG(status.st_mode):
        return refused(path, "is not a regular file", named)
    if status.st_size > MAX_FILE_BYTES:
        reason = f"cannot be read: {too_large(status.st_size, MAX_FILE_BYTES)}; split or unpack it"
        return refused(path, reason, named)
    # A character may take up to twelve in the URI. Counted first: a URI takes longer than all the rest.
    if len(str(path)) > MAX_URI_LENGTH / 12 and len(path.as_uri()) > MAX_URI_LENGTH:
        reason = f"has too long a path: its URI would have more than {MAX_URI_LENGTH:,} characters"
        return refused(path, reason, named)
    suffix = path.suffix.lower()
    is_keynote = suffix == ".key" and status.st_size > MAX_KEY_BYTES
    if not named and not is_keynote and SECRETS.fullmatch(path.name):
        return refused(path, SECRET, failed=False)
    if not named and GENERATED.fullmatch(path.name):
        return refused(path, MADE, failed=False)
    if target := ".pptx" if is_keynote else SAVE_AS.get(suffix):
        return refused(path, f"is in a format that is not read: save it as {target}", named)
    if module_for(path) == IMAGE:
        if image_refusal:
            return refused(path, image_refusal, failed=False)
    elif kind := UNSUPPORTED.get(suffix):
        return refused(path, f"is in a format that is not read ({kind})", named)
    return File(path, status.st_size, stamp_of(status.st_size, status.st_mtime_ns), root)


def _walk(
    root: Path,
    memory: Path | None,
    check_cancelled: Callable[[], object],
    subset: Subset,
    excluded: set[Path],
    image_refusal: str,
) -> Iterator[File | FileOutcome]:
    """The files under the resolved folder `root`, sorted by name, folder by folder.

    Entries that .gitignore excludes are added to `excluded`.
    """
    visited = {root}
    pending: list[tuple[Path, Gitignore]] = [(root, Gitignore.above(root))]
    yield from _unreadable(pending[0][1])
    while pending:
        check_cancelled()
        path, ignored = pending.pop()
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(Folder(path, listed=True))
                entries = folder.entries()
            except OSError as error:
                yield refused(path, why_unreadable(error))
                continue
            ignored = ignored.inside(folder)
            yield from _unreadable(ignored)
            below = []
            for entry in entries:
                check_cancelled()
                here = path / entry.name
                if _is_hidden(here, memory) or not subset.leads_to(here):
                    continue
                # Git treats a link as a file, whatever its target.
                if ignored.matches(here, entry.is_dir(follow_symlinks=False)):
                    # An unreadable .gitignore might say otherwise.
                    if not ignored.unreadable:
                        excluded.add(here)
                    continue
                found = _examine(folder, entry, here, root)
                if isinstance(found, FileOutcome):
                    yield found
                    continue
                target, status = found
                if not stat.S_ISDIR(status.st_mode):
                    yield _look(target, status, root, image_refusal)
                elif target in SYSTEM_FOLDERS:
                    yield refused(target, "is made by the system and holds no documents", failed=False)
                elif target not in visited:
                    visited.add(target)
                    below.append((target, ignored))
            pending.extend(reversed(below))


def _is_hidden(path: Path, memory: Path | None) -> bool:
    """Whether a walk passes over it in silence: it is hidden, a token of ours, or a file of the memory."""
    is_own = memory is not None and path.parent == memory.parent and path.name.startswith(memory.name)
    return _has_hidden_name(path) or path.name in OWN_SECRETS or is_own


def _has_hidden_name(path: Path) -> bool:
    return path.name.startswith(HIDDEN) or path.parts[-2:] in OF_LOGSEQ


def _unreadable(ignored: Gitignore) -> Iterator[FileOutcome]:
    """Report an unreadable .gitignore; like git, the walk continues without it."""
    for error in ignored.unreadable:
        yield refused(Path(error.filename), why_unreadable(error), failed=False)


def _examine(
    folder: Folder, entry: os.DirEntry[str], path: Path, root: Path
) -> tuple[Path, os.stat_result] | FileOutcome:
    """The resolved path of an entry and its `stat`, or why it is skipped."""
    try:
        if not entry.is_symlink():
            return path, folder.stat(entry.name)
        # Unlike `resolve`, it names a loop of links in the words of the system.
        target = Path(os.path.realpath(path, strict=True))
        if not target.is_relative_to(root):
            return refused(path, "is a link to a place outside the folder", failed=False)
        return target, _status(target)
    except (OSError, RuntimeError) as error:
        reason = why_unreadable(error)
        if entry.is_symlink():
            return refused(path, f"is a broken link ({reason})", failed=False)
        return refused(path, reason)


def is_walked(root: Path, path: Path) -> bool:
    """Whether a walk of `root` reaches `path`: nothing between them is hidden or ignored."""
    ignored, folder = Gitignore.above(root), root
    for name in path.relative_to(root).parts:
        ignored, folder = ignored.at(folder), folder / name
        if _has_hidden_name(folder) or ignored.matches(folder, is_folder(folder)):
            return False
    return True


def has_files(root: Path) -> bool:
    """Whether a resolved folder holds a file that is not hidden, at any depth."""
    pending = [root]
    while pending:
        with suppress(OSError), Folder(pending.pop(), listed=True) as folder:
            for entry in folder.entries():
                if entry.name.startswith(HIDDEN):
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    return True
                pending.append(folder.path / entry.name)
    return False


def is_folder(path: Path) -> bool:
    """Like `Path.is_dir`, but False where that raises."""
    try:
        return path.is_dir()
    except OSError:
        return False


def resolved(path: Path) -> Path:
    """The resolved path; only made absolute if it cannot be resolved, as in a loop of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def is_gone(uri: str) -> bool:
    """Whether the file certainly no longer exists: there is nothing, a folder or a link instead."""
    try:
        return not stat.S_ISREG(_status(path_of(uri)).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False


def obstacle(path: Path, roots: Sequence[str]) -> str:
    """Why a file or folder cannot be read, as the end of a sentence; "" if it can."""
    try:
        path = path.resolve(strict=True)
        if not is_within(roots, path):
            return NOT_ALLOWED
        mode = _status(path).st_mode
        if stat.S_ISDIR(mode):
            Folder(path, listed=True).close()
        elif stat.S_ISREG(mode):
            with Folder(path.parent) as folder:
                os.close(folder.open(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except (OSError, RuntimeError, ValueError) as error:
        return why_unreadable(error)
    return ""


def why_unreadable(error: Exception) -> str:
    """Why a path cannot be read, as the end of a sentence that begins with it."""
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {os_reason(error)}"
    return f"cannot be found: {error}"
