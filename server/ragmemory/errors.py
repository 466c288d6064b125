"""What can go wrong in the memory. Each leaf holds its data and computes its own sentence.

`code` is the stable word of the wire's `errorCode`; `hint` what the user can do ("" where nothing).
"""

from __future__ import annotations

from typing import Any, ClassVar


class RagMemoryError(Exception):
    """The root of them all."""

    code: ClassVar[str] = "MEMORY_ERROR"
    hint: str = ""

    def details(self) -> dict[str, Any]:
        """The data of the error, ready for JSON."""
        return {name: value for name, value in vars(self).items() if name != "hint"}


class MemoryUnusable(RagMemoryError):
    """The file cannot be opened, read or written."""

    code = "MEMORY_UNUSABLE"
    hint = "Look at the rights to the file and its folder, and at the room on the disk, or name another file."

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"The memory {self.path} cannot be used: {self.reason}."


class MemoryFull(RagMemoryError):
    """The disk has no room for a write. What is stored can still be read."""

    code = "MEMORY_FULL"
    hint = "Free some space, then try again; what is stored is still there."

    def __init__(self, path: str) -> None:
        self.path = path

    def __str__(self) -> str:
        return f"The memory {self.path} cannot be written: the disk is full."


class MemoryReadOnly(RagMemoryError):
    """The file may be read but not written."""

    code = "MEMORY_READ_ONLY"
    hint = "Make the file and its folder writable, or name another file with --memory."

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"The memory {self.path} cannot be written: {self.reason}."


class MemoryDamaged(RagMemoryError):
    """The file, or what is stored in it, was changed or cut off by something other than this program."""

    code = "MEMORY_DAMAGED"
    hint = "`ragchat memory verify` says what is damaged and what to do."

    def __init__(self, path: str, reason: str, place: str = "") -> None:
        self.path = path
        self.reason = reason
        # Such as "page 7 of the table chunks"; "" where it is not known.
        self.place = place

    def __str__(self) -> str:
        place = f" at {self.place}" if self.place else ""
        return f"The memory {self.path} is damaged{place}: {self.reason}."


class NotAMemory(RagMemoryError):
    """The file is something else: no SQLite database, or another program's."""

    code = "NOT_A_MEMORY"
    hint = (
        "Name another file with --memory; this one was left as it is. If it was a memory, its first page is "
        "damaged: put a backup in its place."
    )

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} is not a memory: {self.reason}."


class MemoryTooNew(RagMemoryError):
    """A later release wrote the file."""

    code = "MEMORY_TOO_NEW"
    hint = "Update ragchat, or name another file with --memory."

    def __init__(self, path: str, version: int, known: int) -> None:
        self.path = path
        self.version = version
        self.known = known

    def __str__(self) -> str:
        return f"The memory {self.path} has version {self.version}; this release knows up to {self.known}."


class MemoryBusy(RagMemoryError):
    """Another process held the write lock for longer than we wait."""

    code = "MEMORY_BUSY"
    hint = "Try again, or raise memory.busy_seconds."

    def __init__(self, path: str, seconds: float) -> None:
        self.path = path
        self.seconds = seconds

    def __str__(self) -> str:
        return f"Another process has been writing to the memory {self.path} for over {self.seconds:g} s."


class EmbedderUnavailable(RagMemoryError):
    """The embedder gave no embeddings: not reachable, refused the request, or its files are missing."""

    code = "EMBEDDER_UNAVAILABLE"

    hint = "Look at the settings under [embedder]; `ragchat doctor` checks them."

    def __init__(self, embedder: str, reason: str, hint: str = "") -> None:
        self.embedder = embedder
        self.reason = reason
        self.hint = hint or self.hint

    def __str__(self) -> str:
        return f"The embedder {self.embedder} is not available: {self.reason}."


class EmbedderMismatch(RagMemoryError):
    """The memory was embedded by another embedder; vectors of two are never mixed."""

    code = "EMBEDDER_MISMATCH"
    hint = "Set the embedder back, or embed everything anew with `ragchat memory reembed`."

    def __init__(
        self, stored: str, stored_dimensions: int, configured: str, configured_dimensions: int = 0
    ) -> None:
        self.stored = stored
        self.stored_dimensions = stored_dimensions
        self.configured = configured
        # 0 where only the first answer of a service would tell.
        self.configured_dimensions = configured_dimensions

    def __str__(self) -> str:
        sizes = [
            f" ({count} dimensions)" if count else ""
            for count in (self.stored_dimensions, self.configured_dimensions)
        ]
        return (
            f"The memory was embedded with {self.stored}{sizes[0]}, "
            f"but {self.configured}{sizes[1]} is configured."
        )


class BadArgument(RagMemoryError):
    """An empty text, or a metadata or filter value of the wrong kind."""

    code = "INVALID_PARAMS"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path  # dotted, such as metadata.tags
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} {self.reason}."


class DocumentNotFound(RagMemoryError):
    """No document has this id or uri."""

    code = "RESOURCE_NOT_FOUND"
    hint = "`ragchat memory ls` lists the documents."

    def __init__(self, document: str) -> None:
        self.document = document

    def __str__(self) -> str:
        return f"There is no document {self.document} in memory."


class NothingToUndo(RagMemoryError):
    """The journal holds no write that is not undone."""

    code = "NOTHING_TO_UNDO"

    def __str__(self) -> str:
        return "There is nothing to undo."


class UndoConflict(RagMemoryError):
    """Something was written between looking at the journal and taking its last entry back."""

    code = "UNDO_CONFLICT"
    hint = "Look at the journal, then try again."

    def __init__(self, seq: int) -> None:
        self.seq = seq

    def __str__(self) -> str:
        return f"Entry {self.seq} of the journal is no longer the last write, so it was not undone."


class AddressUnusable(RagMemoryError):
    """The server cannot listen there."""

    code = "ADDRESS_UNUSABLE"
    hint = "Choose another with --host or --port; port 0 takes any free one."

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason

    def __str__(self) -> str:
        return f"The server cannot listen at {self.host}, port {self.port}: {self.reason}."
