"""Symbols of source code, and their uses."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

Relation = Literal["reference", "importer", "caller", "callee"]
# A class is any type or module, a value a constant or the like.
SymbolKind = Literal["class", "function", "value"]


class Definition(Struct, frozen=True, kw_only=True):
    """A definition without its source."""

    name: str  # qualified, such as Store.find
    kind: SymbolKind
    location: str  # path:line


class TraceStep(Struct, frozen=True, kw_only=True):
    """One use of a symbol."""

    relation: Relation
    depth: int  # 1: of the symbol itself; 2: of what was found at 1
    symbol: str  # the function or class that uses it; "": the file outside of any
    of: str  # what is used there
    location: str  # path:line
    uri: str
    line: int
    text: str  # that line
    targets: list[str] = []  # of a callee: where it may be defined, as path:line; []: not in memory


class TracePage(Struct, frozen=True, kw_only=True):
    name: str
    definitions: list[Definition]
    steps: list[TraceStep]
    next_cursor: str | UnsetType = UNSET  # there are more steps
    notices: list[str]  # why there may be more
