"""The migrations of a database, in a file of SQL."""

from __future__ import annotations

from pathlib import Path


def migrations(file: Path) -> tuple[tuple[str, ...], ...]:
    """The statements of each migration; empty lines are between them, and each begins below `-- Version N`.

    A released migration is never edited; changes are appended.
    """
    found: list[list[str]] = []
    for paragraph in file.read_text("utf-8").split("\n\n"):
        if paragraph.startswith("-- Version "):
            found.append([])
        elif found:
            found[-1].append(paragraph)
    return tuple(map(tuple, found))
