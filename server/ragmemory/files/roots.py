"""memory.roots: the folders whose files may be read and written.

A path is checked and used in its resolved form: `Folder` opens it without following links. The roots
themselves are resolved once: a link that later replaces one leads outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragconfig.home import user_path
from ragconfig.repository import root_of

# All files are allowed.
ANY_ROOT = "*"


def resolved_roots(roots: Sequence[str]) -> list[str]:
    """The folders of the setting, resolved now."""
    found = []
    for root in roots:
        with suppress(OSError, RuntimeError):  # ~user of an unknown user
            found.append(root if root == ANY_ROOT else str(user_path(root).resolve()))
    return found


def is_within(roots: Sequence[str], path: Path) -> bool:
    """Whether a resolved path is in one of the resolved folders."""
    return any(root == ANY_ROOT or path.is_relative_to(root) for root in roots)


def of_stored(memory: Path, roots: Sequence[str]) -> Sequence[str]:
    """The roots for a path that comes from the memory and not from the user.

    A repository's memory may have been written by others: only paths in the repository are allowed.
    """
    root = root_of(memory)
    return resolved_roots([str(root)]) if root is not None and ANY_ROOT in roots else roots
