"""Pages of a list, and the opaque cursors between them. Pure. Source: server/utilities/pagination."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TypeVar

from msgspec import UNSET, UnsetType

from ragmcp.errors import InvalidParams

T = TypeVar("T")

PAGE_ITEMS = 100


def page(items: Sequence[T], cursor: str | UnsetType) -> tuple[list[T], str | UnsetType]:
    """The items of one page, and the cursor of the next. Raises InvalidParams."""
    start = offset(cursor)
    if start and start >= len(items):
        raise InvalidParams("$.cursor", "the list no longer reaches this far; begin again without it")
    end = start + PAGE_ITEMS
    return list(items[start:end]), cursor_to(end) if end < len(items) else UNSET


def offset(cursor: str | UnsetType, most: int = 2**63) -> int:
    """The offset at which a page begins. Raises InvalidParams for a cursor of no list as long as `most`."""
    if cursor is UNSET:
        return 0
    try:
        start = int(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except ValueError:
        start = -1
    if not 1 <= start <= most or cursor_to(start) != cursor:
        raise InvalidParams("$.cursor", "no list returned this cursor")
    return start


def cursor_to(start: int) -> str:
    """The cursor of the page that begins at `start`."""
    return base64.urlsafe_b64encode(str(start).encode()).decode()
