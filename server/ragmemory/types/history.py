"""The texts of versions, and which writes an undo undoes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ragcommon.contract.documents import Metadata
from ragcommon.contract.history import Version
from ragcommon.text.places import Place


class Previous(Struct, frozen=True):
    """A document as it was before a write: what undo restores."""

    text: str
    metadata: Metadata
    added_at: str  # ISO 8601, UTC
    digest: bytes | None = None  # SHA-256 of the text, if it is known
    places: list[Place] = []


class VersionText(Struct, frozen=True):
    """A version of a document with its text, "" for a removal."""

    uri: str
    version: Version
    text: str
    metadata: Metadata
    added_at: str = ""  # ISO 8601, UTC, when the document was added
    places: list[Place] = []  # of an earlier version


class Selection(Struct, frozen=True):
    """Which writes an undo undoes: the last one with its group; or some by number; or by client and time."""

    numbers: Sequence[int] = ()  # in the journal
    origin: str = ""  # the name of a client, a session, a host, or a group
    since: str = ""  # ISO 8601, or a time ago such as 10m, 2h or 3d
