"""Error codes of the memory that the chat acts on. The server's errors carry them as `code`."""

from __future__ import annotations

DOCUMENT_NOT_FOUND = "RESOURCE_NOT_FOUND"

# Errors that every other document would meet as well.
FATAL = frozenset(
    {
        *("EMBEDDER_MISMATCH", "EMBEDDER_UNAVAILABLE", "NOT_A_MEMORY"),
        *("MEMORY_DAMAGED", "MEMORY_FULL", "MEMORY_READ_ONLY", "MEMORY_TOO_NEW", "MEMORY_UNUSABLE"),
    }
)
