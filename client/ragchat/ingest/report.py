"""The outcome of loading files: for each document, in one sentence, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from ragchat.formatting import counted
from ragchat.memory.history import new_group
from ragchat.uris import short_path, short_uri

Status: TypeAlias = Literal["added", "updated", "unchanged", "failed"]
STATUSES: Sequence[Status] = ("added", "updated", "unchanged", "failed")


class Document(Struct, frozen=True):
    """What became of one file. A failed one has an error sentence and no document id."""

    uri: str
    document_id: str | None
    status: Status
    chunks: int = 0
    error: str | None = None


class Skipped(Struct, frozen=True):
    path: str
    reason: str


class InjectReport(Struct):
    """The outcome, in the order of the files.

    `missing`: URIs in memory of files that are no longer in the loaded folders; `pruned`: those that were
    removed from memory for that reason. `files` is the number of files to load, of which `begun` were started
    and `done` have an outcome. All writes of the load have the `group`, so that they are undone as one.
    """

    documents: list[Document] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    begun: int = 0
    done: int = 0
    files: int = 0
    group: str = field(default_factory=new_group)

    def count(self, status: Status) -> int:
        return sum(document.status == status for document in self.documents)

    @property
    def chunks(self) -> int:
        return sum(document.chunks for document in self.documents)

    def public(self) -> dict[str, Any]:
        """The shape of `ragchat inject --json`."""
        return {
            "documents": self.documents,
            **{status: self.count(status) for status in STATUSES},
            "skipped": self.skipped,
            "gone": self.missing,
            "pruned": self.pruned,
            "notes": self.notes,
        }

    def summary(self) -> str:
        """One sentence with the counts."""
        parts = [f"{number:,} {status}" for status in STATUSES if (number := self.count(status))]
        if self.skipped:
            parts.append(f"{len(self.skipped):,} skipped")
        if not parts:
            return "There is nothing to load."
        chunks = f" ({counted(self.chunks, 'chunk')})" if self.chunks else ""
        return f"{', '.join(parts)}{chunks}."

    def unfinished(self) -> str:
        """One sentence about the files without an outcome; "" if there are none."""
        in_flight, left = self.begun - self.done, self.files - self.begun
        parts = []
        if in_flight:
            parts.append(f"{counted(in_flight, 'file')} may be stored")
        if left:
            parts.append(f"{counted(left, 'file')} not begun")
        return f"Interrupted: {', '.join(parts)}." if parts else ""

    def failures(self, most: int, final: str = "") -> Iterator[str]:
        """A line for each failed document, at most `most`.

        `final` is the error that ended the loading: documents that failed with it are only named.
        """
        errors = ((document.uri, document.error) for document in self.documents if document.error)
        yield from _first(
            "failed", [short_uri(uri) if error == final else error for uri, error in errors], most
        )

    def remarks(self, most: int, remove: str) -> Iterator[str]:
        """Lines about what was skipped, at most `most`, about encodings, and about missing files.

        `remove` is the command that removes a document.
        """
        yield from _first(
            "skipped",
            [f"{short_path(Path(skipped.path))} {skipped.reason}" for skipped in self.skipped],
            most,
        )
        yield from _first("note", self.notes, most)
        yield from _first("removed", [short_uri(uri) for uri in self.pruned], most)
        if self.missing:
            files, them = counted(len(self.missing), "file"), "it" if len(self.missing) == 1 else "them"
            yield (
                f"Memory holds {files} that these folders no longer have, such as "
                f"{short_uri(self.missing[0])}. {remove} removes {them}."
            )


def _first(kind: str, lines: Sequence[str], most: int) -> Iterator[str]:
    yield from (f"{kind}: {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"{kind}: {len(lines) - most:,} more"
