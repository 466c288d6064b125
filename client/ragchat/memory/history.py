"""Groups of writes that are undone together, and sentences about undo."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragchat.formatting import counted
from ragchat.uris import short_uri

if TYPE_CHECKING:
    from ragcommon.contract.history import Undone
    from ragconfig.settings import Settings

_NAMED = 3


def new_group() -> str:
    """An id for the writes of one command."""
    return os.urandom(4).hex()


def can_restore(settings: Settings) -> bool:
    """Whether memory keeps the text of what is removed."""
    return bool(settings.tables["memory"]["undo_depth"] > 0)


def sentences(undone: Undone) -> Iterator[str]:
    """What was undone, and what was not."""
    if sum(undone.writes.values()) == 1:
        back = " It is back in memory." if undone.entry.action == "removed" else ""
        yield f"Undone: {short_uri(undone.entry.uri)} was {undone.entry.action}.{back}"
    else:
        (first, count), *others = undone.writes.items()
        parts = [f"{counted(count, 'document')} {'was' if count == 1 else 'were'} {first}"]
        back = " What was removed is back in memory." if undone.writes.get("removed") else ""
        yield f"Undone: {', '.join(parts + [f'{count:,} {action}' for action, count in others])}.{back}"
    if undone.kept:
        names = [short_uri(uri) for uri in undone.kept[:_NAMED]]
        if more := len(undone.kept) + undone.more_kept - len(names):
            names.append(f"{more:,} more")
        yield f"Not undone, because changed again since: {', '.join(names)}."
