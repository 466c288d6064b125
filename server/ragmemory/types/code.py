"""Source code: its symbols."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ragcommon.contract.code import SymbolKind


class CodeFile(Struct, frozen=True):
    """A document of source code."""

    document_id: str
    uri: str
    digest: bytes  # SHA-256 of the text
    work: int  # of parsing it: its characters, but not less than `stores.code.MIN_WORK`


class CodeText(Struct, frozen=True):
    """The text of such a document; `is_parsed`: chunking parsed it, as its chunks name definitions."""

    text: str
    is_parsed: bool


Direction = Literal["all", "definition", "references", "callers", "callees", "importers"]


class Symbol(Struct, frozen=True, kw_only=True):
    """A definition in source code."""

    name: str  # qualified, such as Store.find
    kind: SymbolKind
    language: str
    location: str  # path:line
    uri: str
    start_line: int  # of the comments and decorators above it
    end_line: int
    text: str  # its source
