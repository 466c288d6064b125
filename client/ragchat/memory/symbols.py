"""Symbols of source code and their uses, as the memory server traces them."""

from __future__ import annotations

from msgspec import Struct


class Place(Struct, frozen=True):
    """Where a symbol of source code is defined."""

    name: str  # qualified
    kind: str
    location: str  # path:line


class TraceStep(Struct, frozen=True):
    """One use of a symbol of source code."""

    relation: str  # reference, importer, caller, callee
    symbol: str  # the function or class that uses it; "": none
    of: str  # what is used
    location: str  # path:line
    text: str  # that line
    targets: list[str]  # of a callee: where it may be defined, as path:line


class Trace(Struct, frozen=True):
    """The definitions and the uses of a symbol of source code."""

    definitions: list[Place]
    steps: list[TraceStep]
    notices: list[str]  # why they are not complete
    next_cursor: str = ""

    @property
    def has_more(self) -> bool:
        return bool(self.next_cursor)
