"""The outcome of loading files: for each document, in one sentence, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct, field

from ragchat.memory.history import new_group
from ragchat.uris import short_uri
from ragcommon.contract.files import AddedSource, FileOutcome
from ragcommon.files.uris import is_address, path_of
from ragcommon.text.rules import counted
from ragconfig.redaction import redacted

Status: TypeAlias = Literal["added", "updated", "unchanged", "failed"]
STATUSES: Sequence[Status] = ("added", "updated", "unchanged", "failed")


class Progress(Struct):
    """The progress of a load, in files and in their bytes; of an upload, in their characters."""

    files: int
    bytes: int
    done_files: int = 0
    done_bytes: int = 0
    scanning: str = ""  # the scanned page that was read last


OnProgress = Callable[[Progress], None]


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
    """The outcome of loading texts and files.

    `files` is the number of files to load, of which `begun` may be stored and `done` have an outcome. All
    writes of the load have the `group`, so that they are undone as one.
    """

    texts: list[Document] = field(default_factory=list)  # texts that are not files
    outcomes: list[FileOutcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    begun: int = 0
    done: int = 0
    files: int = 0
    group: str = field(default_factory=new_group)
    sources: list[AddedSource] | None = None  # that were registered; None: none were to be

    @property
    def documents(self) -> list[Document]:
        """The texts, then the files in the order in which they were found."""
        files = [_document(outcome) for outcome in self.outcomes if outcome.status in STATUSES]
        return [*self.texts, *files]

    @property
    def skipped(self) -> list[Skipped]:
        """The files that are no documents."""
        return [Skipped(_path(one), one.reason) for one in self._with_status("skipped")]

    @property
    def missing(self) -> list[str]:
        """The URIs of documents whose files are no longer in the loaded folders."""
        return [one.uri for one in self._with_status("missing")]

    @property
    def pruned(self) -> list[str]:
        """The URIs of documents that were removed, as their files are gone or no longer loaded."""
        return [one.uri for one in self._with_status("removed")]

    def _with_status(self, status: str) -> list[FileOutcome]:
        return [one for one in self.outcomes if one.status == status]

    @property
    def longest_list(self) -> int:
        """The length of the longest list in `failures` and `remarks`."""
        others = (len(self.skipped), len(self.pruned), len(self.remarks_on_files))
        return max(self.count("failed"), *others)

    @property
    def remarks_on_files(self) -> list[str]:
        """How files were read, where that is not obvious; then the other notes."""
        files = [f"{short_uri(one.uri)} {one.note}." for one in self.outcomes if one.note]
        return files + self.notes

    def count(self, status: Status) -> int:
        """How many documents have this status."""
        return sum(document.status == status for document in self.documents)

    @property
    def chunks(self) -> int:
        """The chunks of all documents."""
        return sum(document.chunks for document in self.documents)

    def public(self) -> dict[str, Any]:
        """The shape of `ragchat inject --json`, and of `source add --json` with its `sources`."""
        return {
            **({} if self.sources is None else {"sources": self.sources}),
            "documents": self.documents,
            **{status: self.count(status) for status in STATUSES},
            "skipped": self.skipped,
            "gone": self.missing,
            "pruned": self.pruned,
            "notes": self.remarks_on_files,
        }

    def summary(self) -> str:
        """One sentence with the counts."""
        parts = [f"{number:,} {status}" for status in STATUSES if (number := self.count(status))]
        if self.pruned:
            parts.append(f"{len(self.pruned):,} removed")
        if pages := sum(map(is_address, self.missing)):
            parts.append(f"{pages:,} missing")
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
            parts.append(f"{counted(left, 'file')} not loaded")
        return f"Interrupted: {', '.join(parts)}." if parts else ""

    def failures(self, limit: int, fatal: str = "") -> Iterator[str]:
        """A line for each failed document, at most `limit`.

        `fatal` is the error that ended the loading: documents that failed with it are only named, and many
        only counted.
        """
        ended = [short_uri(one.uri) for one in self.documents if one.error and one.error == fatal]
        if len(ended) > limit:
            ended = [f"{ended[0]} and {counted(len(ended) - 1, 'other document')}"]
        others = [one.error for one in self.documents if one.error and one.error != fatal]
        yield from _limited("failed", [*ended, *others], limit)

    def remarks(self, limit: int, remove: str) -> Iterator[str]:
        """Lines about what was skipped, at most `limit`, about encodings, and about missing files.

        `remove` is the command that removes a document.
        """
        skipped = [f"{short_uri(one.uri)} {one.reason}" for one in self._with_status("skipped")]
        yield from _limited("skipped", skipped, limit)
        yield from _limited("note", self.remarks_on_files, limit)
        removed = [f"{short_uri(one.uri)} {one.reason}".rstrip() for one in self._with_status("removed")]
        yield from _limited("removed", removed, limit)
        pages = [one for one in self._with_status("missing") if is_address(one.uri)]
        kept = [f"{short_uri(one.uri)} {one.reason}; memory keeps what it has of it" for one in pages]
        yield from _limited("missing", kept, limit)
        if missing := [uri for uri in self.missing if not is_address(uri)]:
            files, them = counted(len(missing), "file"), "it" if len(missing) == 1 else "them"
            yield (
                f"Memory holds {files} that these folders no longer have, such as "
                f"{short_uri(missing[0])}. {remove} removes {them}."
            )


def _limited(kind: str, lines: Sequence[str], limit: int) -> Iterator[str]:
    yield from (f"{kind}: {line}" for line in lines[:limit])
    if len(lines) > limit:
        yield f"{kind}: {len(lines) - limit:,} more"


def _path(outcome: FileOutcome) -> str:
    """The path of a file, the address of a page."""
    return outcome.uri if is_address(outcome.uri) else str(path_of(outcome.uri))


def _document(outcome: FileOutcome) -> Document:
    error = _error(outcome) if outcome.status == "failed" else None
    status = cast("Status", outcome.status)
    return Document(outcome.uri, outcome.document_id, status, outcome.chunks, error)


def _error(outcome: FileOutcome) -> str:
    name = short_uri(outcome.uri) if outcome.uri else '""'
    end = "" if outcome.reason.endswith("?") else "."
    return redacted(outcome.error or f"{name} {outcome.reason}{end}")
