"""memory.roots: the folders whose files may be read and written.

A path is judged in its resolved form, and that form is used: `Folder` reaches it without following links.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragconfig.home import user_path
from ragconfig.repository import root_of

# Every file may be used.
ANY_ROOT = "*"


def is_within(roots: Sequence[str], resolved: Path) -> bool:
    """Whether a resolved path is in one of the folders."""
    for root in roots:
        with suppress(OSError, RuntimeError):  # The root is in the home folder of an unknown user.
            if root == ANY_ROOT or resolved.is_relative_to(user_path(root).resolve()):
                return True
    return False


def of_stored(memory: Path, roots: Sequence[str]) -> Sequence[str]:
    """The folders for a path that stands in the memory and that the user does not name now.

    Others may have written a repository's memory: only what is in the repository may be used.
    """
    root = root_of(memory)
    return [str(root)] if root is not None and ANY_ROOT in roots else roots
