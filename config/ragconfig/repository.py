"""A repository's own memory, `.ragchat/memory.db`: finding it, and creating its folder.

A repository may come from other people: links that lead out of it, and files of other users, are refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ragcommon.errors import os_reason
from ragconfig.errors import SettingsError
from ragconfig.home import Home

FOLDER = ".ragchat"
FILE = "memory.db"
# The origin of the setting memory.path, as `ragchat config show` prints it.
ORIGIN = "the repository"
# The origin with `ragmemory --repository`: the memory need not exist yet.
OPTION = "the option --repository"


class RepositoryMemoryRefused(SettingsError):
    path: str
    reason: str
    sentence = "The memory of the repository is not used: {path} {reason}."
    hint = "Remove it, or choose a memory with --memory FILE."


class RepositoryMemoryNotMade(SettingsError):
    path: str
    reason: str
    sentence = "No memory can be created for the repository: {path} {reason}."
    hint = "Choose another memory with --memory FILE."


class NotInRepository(SettingsError):
    folder: str
    code = "NOT_IN_A_REPOSITORY"
    sentence = "There is no git repository for --repository: {folder} is not in one."
    hint = "Start the program in a folder of the repository, or name a memory with --memory FILE."


def find_memory(folder: Path, home: Home) -> Path | None:
    """The nearest repository's memory, going up from `folder`. Raises RepositoryMemoryRefused."""
    for place in _upward(folder, home):
        path = place / FOLDER / FILE
        if os.path.lexists(path) and not _is_ours(place, home):
            _check(place)
            return path
    return None


def find_repository(folder: Path, home: Home) -> Path | None:
    """The root of the git repository that `folder` is in."""
    return next((place for place in _upward(folder, home) if is_repository(place)), None)


def is_repository(folder: Path) -> bool:
    """Whether a folder is the root of a git repository; of a worktree or a submodule, .git is a file."""
    return (folder / ".git").exists()


def memory_of(folder: Path, home: Home) -> Path:
    """The memory of the repository that `folder` is in; it need not exist yet.

    Raises NotInRepository, RepositoryMemoryRefused, RepositoryMemoryNotMade.
    """
    root = find_repository(folder, home)
    if root is None:
        raise NotInRepository(str(folder.absolute()))
    return _place(root, home)


def root_of(memory: Path) -> Path | None:
    """The root of the repository that a memory belongs to; None for any other memory."""
    return memory.parent.parent if (memory.parent.name, memory.name) == (FOLDER, FILE) else None


def may_hold(memory: Path, path: Path) -> bool:
    """Whether a path recorded in a memory may be used without being named by the user.

    What stands in a repository's memory may have been written by others: only what is in the repository may.
    """
    if (root := root_of(memory)) is None:
        return True
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def make_memory(root: Path, home: Home) -> tuple[Path, bool]:
    """The path of a repository's memory, and whether its folder, which git ignores, was created.

    Raises RepositoryMemoryRefused, RepositoryMemoryNotMade.
    """
    path = _place(root, home)
    if os.path.lexists(path):
        return path, False
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError), (path.parent / ".gitignore").open("xb") as file:
            file.write(b"*\n")  # git then ignores the whole folder, this file included
    except OSError as error:
        reason = f"cannot be written: {os_reason(error)}"
        raise RepositoryMemoryNotMade(str(error.filename or path.parent), reason) from None
    return path, True


def _place(root: Path, home: Home) -> Path:
    """The path of a repository's memory, which need not exist. Raises as `memory_of`."""
    if _is_ours(root, home):
        raise RepositoryMemoryNotMade(str(root / FOLDER), "is the folder of this program's own files")
    _check(root)
    return root / FOLDER / FILE


def _upward(folder: Path, home: Home) -> Iterator[Path]:
    """The absolute path of `folder` and its parents, up to the home folder or the parent of RAGCHAT_HOME."""
    try:
        here = folder.resolve()
    except (OSError, RuntimeError):  # The working folder was deleted, or is in a loop of links.
        return
    ends = set()
    with suppress(OSError, RuntimeError):
        ends.add(Path.home().resolve())
    if (root := home.root) is not None:
        ends.add(root.resolve().parent)
    for place in (here, *here.parents):
        yield place
        if place in ends:
            return


def _is_ours(place: Path, home: Home) -> bool:
    """Whether `.ragchat` there is or contains the data folder of the program."""
    return home.data.resolve().is_relative_to(place / FOLDER)


def _check(root: Path) -> None:
    """Raise RepositoryMemoryRefused if a file is a link out of the repository, or another user's.

    SQLite and the index also write to files next to the memory, which they open by name.
    """
    folder = root / FOLDER
    index = folder / f"{FILE}-index"
    for path in (folder, *_children(folder), *_children(index)):
        try:
            if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
                raise RepositoryMemoryRefused(str(path), "is a link that leads out of the repository")
            owner = path.stat().st_uid
        except FileNotFoundError:  # It does not exist yet, or another process has just removed it.
            continue
        except (OSError, RuntimeError) as error:
            raise RepositoryMemoryRefused(str(path), f"cannot be examined: {error}") from None
        # Another user could read what is stored in their file.
        if sys.platform != "win32" and owner != os.geteuid():
            raise RepositoryMemoryRefused(str(path), "belongs to another user")


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
