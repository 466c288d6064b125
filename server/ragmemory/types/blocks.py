"""Blocks of documents, and the edits of them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ragcommon.contract.documents import Status

BlockKind = Literal["heading", "paragraph", "list", "item", "table", "code", "quote"]


class ShownBlock(Struct, frozen=True, kw_only=True):
    """A block of a document. Its lines include the blocks below it, its text does not."""

    document_id: str
    uri: str
    title: str
    version: int  # of the document, to be named by an edit
    block_id: str
    number: int  # among the blocks of the document, from 1
    label: str  # such as "1.2.a"
    kind: BlockKind
    level: int  # of a heading, from 1; 0: not a heading
    heading: str  # the path of headings above it
    start_line: int
    end_line: int
    text: str


class EditedBlock(Struct, frozen=True):
    """A block that an edit has written."""

    block_id: str
    number: int
    label: str
    kind: BlockKind
    start_line: int
    end_line: int


class EditedDocument(Struct, frozen=True):
    """The outcome of one edit."""

    document_id: str
    uri: str
    status: Status
    version: int  # the new version, to be named by the next edit
    blocks: list[EditedBlock]  # the first ones that were written
    removed: list[str]  # ids of blocks that no longer exist
    file: str  # the path of the file that was written as well; "": none
