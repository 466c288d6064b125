"""memory.roots: the folders whose files may be read and written.

A path is judged in its resolved form, and that form is used: `Folder` reaches it without following links.
The folders themselves are resolved once: a link that later takes the place of one leads out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragconfig.home import user_path
from ragconfig.repository import root_of

# Every file may be used.
ANY_ROOT = "*"


def resolved_roots(roots: Sequence[str]) -> list[str]:
    """The folders that the setting names, as they are now."""
    found = []
    for root in roots:
        with suppress(OSError, RuntimeError):  # It is in the home folder of an unknown user.
            found.append(root if root == ANY_ROOT else str(user_path(root).resolve()))
    return found


def is_within(roots: Sequence[str], path: Path) -> bool:
    """Whether a resolved path is in one of the resolved folders."""
    return any(root == ANY_ROOT or path.is_relative_to(root) for root in roots)


def of_stored(memory: Path, roots: Sequence[str]) -> Sequence[str]:
    """The folders for a path that stands in the memory and that the user does not name now.

    Others may have written a repository's memory: only what is in the repository may be used.
    """
    root = root_of(memory)
    return resolved_roots([str(root)]) if root is not None and ANY_ROOT in roots else roots
