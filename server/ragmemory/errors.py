"""What can go wrong in the memory. Each leaf holds its data and computes its own sentence.

`code` is the stable word of the wire's `errorCode`; `hint` what the user can do ("" where nothing).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar


class RagMemoryError(Exception):
    """The root of them all."""

    code: ClassVar[str] = "MEMORY_ERROR"
    hint: str = ""

    def details(self) -> dict[str, Any]:
        """The data of the error, ready for JSON."""
        if not dataclasses.is_dataclass(self):
            return {}
        names = (field.name for field in dataclasses.fields(self))
        return {name: getattr(self, name) for name in names if name != "hint"}


@dataclass(eq=False)
class MemoryUnusable(RagMemoryError):
    """The file cannot be opened, read or written."""

    code = "MEMORY_UNUSABLE"
    path: str
    reason: str

    def __str__(self) -> str:
        return f"The memory {self.path} cannot be used: {self.reason}."


@dataclass(eq=False)
class NotAMemory(RagMemoryError):
    """The file is something else: no SQLite database, or another program's."""

    code = "NOT_A_MEMORY"
    hint = "Name another file with --memory; this one was left as it is."
    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} is not a memory: {self.reason}."


@dataclass(eq=False)
class MemoryTooNew(RagMemoryError):
    """A later release wrote the file."""

    code = "MEMORY_TOO_NEW"
    hint = "Update ragchat, or name another file with --memory."
    path: str
    version: int
    known: int

    def __str__(self) -> str:
        return f"The memory {self.path} has version {self.version}; this release knows up to {self.known}."


@dataclass(eq=False)
class MemoryBusy(RagMemoryError):
    """Another process held the write lock for longer than we wait."""

    code = "MEMORY_BUSY"
    hint = "Try again, or raise memory.busy_seconds."
    path: str
    seconds: float

    def __str__(self) -> str:
        return f"Another process has been writing to the memory {self.path} for over {self.seconds:g} s."


@dataclass(eq=False)
class EmbedderUnavailable(RagMemoryError):
    """The embedder gave no embeddings: not reachable, refused the request, or its files are missing."""

    code = "EMBEDDER_UNAVAILABLE"
    embedder: str
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return f"The embedder {self.embedder} is not available: {self.reason}."


@dataclass(eq=False)
class EmbedderMismatch(RagMemoryError):
    """The memory was embedded by another embedder; vectors of two are never mixed."""

    code = "EMBEDDER_MISMATCH"
    hint = "Set the embedder back, or embed everything anew with `ragchat memory reembed`."
    stored: str
    stored_dimensions: int
    configured: str
    configured_dimensions: int = 0  # where only the first answer of a service would tell

    def __str__(self) -> str:
        sizes = [
            f" ({count} dimensions)" if count else ""
            for count in (self.stored_dimensions, self.configured_dimensions)
        ]
        return (
            f"The memory was embedded with {self.stored}{sizes[0]}, "
            f"but {self.configured}{sizes[1]} is configured."
        )


@dataclass(eq=False)
class BadArgument(RagMemoryError):
    """An empty text, or a metadata or filter value of the wrong kind."""

    code = "INVALID_PARAMS"
    path: str  # dotted, such as metadata.tags
    reason: str

    def __str__(self) -> str:
        return f"{self.path} {self.reason}."


@dataclass(eq=False)
class DocumentNotFound(RagMemoryError):
    """No document has this id or uri."""

    code = "RESOURCE_NOT_FOUND"
    hint = "`ragchat memory ls` lists the documents."
    document: str

    def __str__(self) -> str:
        return f"There is no document {self.document} in memory."


@dataclass(eq=False)
class NothingToUndo(RagMemoryError):
    """The journal holds no write that is not undone."""

    code = "NOTHING_TO_UNDO"

    def __str__(self) -> str:
        return "There is nothing to undo."


@dataclass(eq=False)
class UndoConflict(RagMemoryError):
    """Something was written between looking at the journal and taking its last entry back."""

    code = "UNDO_CONFLICT"
    hint = "Look at the journal, then try again."
    seq: int

    def __str__(self) -> str:
        return f"Entry {self.seq} of the journal is no longer the last write, so it was not undone."


@dataclass(eq=False)
class AddressUnusable(RagMemoryError):
    """The server cannot listen there."""

    code = "ADDRESS_UNUSABLE"
    hint = "Choose another with --host or --port; port 0 takes any free one."
    host: str
    port: int
    reason: str

    def __str__(self) -> str:
        return f"The server cannot listen at {self.host}, port {self.port}: {self.reason}."
