"""The exceptions of the index. Light: `search.sync` imports them before numpy."""

from __future__ import annotations

from pathlib import Path


class DamagedFile(Exception):
    """A file does not hold what was written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged: {reason}.")
        self.path = path


class MergeStopped(Exception):
    """The program is ending; the incomplete file will be removed."""
