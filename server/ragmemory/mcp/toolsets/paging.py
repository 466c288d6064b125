"""Results of bounded size: pages of a list, and the cursors between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ragmcp.errors import InvalidArguments, InvalidParams
from ragmcp.protocol.pagination import cursor_to, offset
from ragmemory.limits import MAX_OFFSET, MAX_TOKENS, RESULT_BYTES, TOKEN_BYTES

Cursor = Annotated[
    str,
    Meta(description="The next_cursor of the page before, with otherwise the same arguments.", max_length=40),
]
# A number instead of an offset; SQLite's integers have 64 bits.
NumberCursor = Annotated[
    str,
    Meta(
        description="The next_cursor of the page before, with otherwise the same arguments.",
        pattern="^[0-9]{0,18}$",
    ),
]
MaxTokens = Annotated[
    int,
    Meta(
        description=f"About how large the result may be, in tokens of {TOKEN_BYTES} bytes; next_cursor leads "
        "to the rest.",
        ge=1,
        le=MAX_TOKENS,
    ),
]
DEFAULT_TOKENS = RESULT_BYTES // TOKEN_BYTES

T = TypeVar("T")
S = TypeVar("S", bound=Struct)


def selected(type: type[S], source: object, **others: object) -> S:
    """A struct with the fields of the same names of `source`, and `others`."""
    names = [name for name in type.__struct_fields__ if name not in others]
    return type(**{name: getattr(source, name) for name in names}, **others)


def start_of(cursor: str) -> int:
    """The number of the first item of a page. Raises InvalidArguments."""
    try:
        return offset(cursor or UNSET, MAX_OFFSET)
    except InvalidParams as error:
        raise InvalidArguments("$.cursor", error.reason) from None


def page_of(
    items: Sequence[T], cursor: str = "", max_tokens: int = DEFAULT_TOKENS
) -> tuple[list[T], str | UnsetType]:
    """As many items as a result may hold, but at least one; and the next cursor. Raises InvalidArguments."""
    start = start_of(cursor)
    if start and start >= len(items):
        raise InvalidArguments("$.cursor", "the list no longer reaches this far; begin again without it")
    end = start + fitting(items[start:], max_tokens)
    return list(items[start:end]), cursor_after(end, len(items))


def cursor_after(end: int, total: int) -> str | UnsetType:
    """The cursor of the page that begins at `end`, if there are more items."""
    return cursor_to(end) if end < total else UNSET


def fitting(items: Sequence[object], max_tokens: int) -> int:
    """How many items a result may hold: at least one, if there is one."""
    size = 0
    for count, item in enumerate(items):
        size += len(msgspec.json.encode(item))
        if size > max_tokens * TOKEN_BYTES and count:
            return count
    return len(items)


def first_of(items: list[T]) -> tuple[list[T], int]:
    """The items that fit into a result without pages, and how many are left out."""
    end = fitting(items, DEFAULT_TOKENS)
    return items[:end], len(items) - end


def text_page(text: str, cursor: str, max_tokens: int) -> tuple[str, str | UnsetType]:
    """As much of a text as a result may hold, and the next cursor; cut after a line if there is one.

    Raises InvalidArguments.
    """
    start = start_of(cursor)
    if start and start >= len(text):
        raise InvalidArguments("$.cursor", "the text no longer reaches this far; begin again without it")
    budget = max_tokens * TOKEN_BYTES
    # A character has at least one byte.
    part = text[start : start + budget].encode()[:budget].decode(errors="ignore")
    if start + len(part) < len(text):
        part = part[: part.rfind("\n") + 1] or part or text[start]
    end = start + len(part)
    return part, cursor_after(end, len(text))
