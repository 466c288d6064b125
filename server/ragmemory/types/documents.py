"""Documents, as the memory reads them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ragcommon.contract.documents import DocumentInfo
from ragcommon.text.places import Place

DocumentOrder = Literal["uri", "title", "added_at", "updated_at", "characters"]


class DocumentText(Struct, frozen=True):
    """A document as its blocks are read."""

    info: DocumentInfo
    text: str
    digest: bytes  # SHA-256 of the text
    version: int  # the number of the current version; 0: the journal has no write of it
    stamp: str
    places: list[Place]
    outline: str  # of this text or an earlier one: see `stores.outlines`; "": none is stored


class StoredFile(Struct, frozen=True):
    """What is stored of one file."""

    document_id: str
    chunks: int
    stamp: str
    digest: bytes
    machine: str  # see `Document.machine`
