"""Source code: its symbols, and their uses."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class CodeFile(Struct, frozen=True):
    """A document of source code."""

    document_id: str
    uri: str
    digest: bytes  # SHA-256 of the text
    work: int  # of parsing it: its characters, but not less than `stores.code.LEAST_WORK`


Direction = Literal["all", "definition", "references", "callers", "callees", "importers"]


Relation = Literal["reference", "importer", "caller", "callee"]


class Symbol(Struct, frozen=True, kw_only=True):
    """A definition in source code."""

    name: str  # qualified, such as Store.find
    kind: Literal[
        "class", "function", "value"
    ]  # a class is any type or module, a value a constant or the like
    language: str
    location: str  # path:line
    uri: str
    start_line: int  # of the comments and decorators above it
    end_line: int
    text: str  # its source


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


class Trace(Struct, frozen=True, kw_only=True):
    """The outcome of one `trace`."""

    name: str
    definitions: list[Symbol]
    steps: list[TraceStep]
    notices: list[str]  # why the answer is not complete
