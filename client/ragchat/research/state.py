"""The progress of a research, and the file that keeps it until the report is saved."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import msgspec
from msgspec import Struct, field

from ragchat.llm.types import Usage
from ragcommon.contract.search import Hit
from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.safe_open import read_regular
from ragcommon.files.writing import replace_file

MAX_BYTES = 2**26
# A research that was stopped can be resumed for 30 days.
KEPT_SECONDS = 30 * 86_400.0


class Finding(Struct, frozen=True):
    """A passage, and a quotation that answers the question; `quote` is "" if the model has not read it."""

    hit: Hit
    quote: str = ""


class SubQuestion(Struct):
    """A part of the question, `wordings` to search for as well, and what was found."""

    text: str
    wordings: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    # Texts that the model read and that are not the user's own. The file has the older name.
    untrusted: list[str] = field(default_factory=list, name="foreign")
    read: bool = False  # by the model
    passages: int = 0  # that the model was given
    left_out: int = 0  # quotations that were not in their passages

    @property
    def queries(self) -> list[str]:
        return [*dict.fromkeys([self.text, *self.wordings])]


class ResearchState(Struct):
    """Everything that a later run needs to continue.

    `documents` names the documents that are searched. The file has the older name.
    """

    question: str
    documents: str = field(name="place")
    sub_questions: list[SubQuestion] = field(default_factory=list)
    draft: str = ""  # the report before its claims are checked
    usage: Usage = Usage()

    @property
    def findings(self) -> list[Finding]:
        """The findings of all sub-questions, interleaved, best first."""
        rows = [sub.findings for sub in self.sub_questions]
        longest = max(map(len, rows), default=0)
        return [row[rank] for rank in range(longest) for row in rows if rank < len(row)]


class StateFile:
    """The state of one question about some documents. Every method raises OSError."""

    def __init__(self, folder: Path, question: str, documents: str) -> None:
        name = hashlib.sha256(f"{documents}\n{question}".encode()).hexdigest()
        self.path = folder / f"{name}.json"

    def load(self) -> ResearchState | None:
        """What an earlier run has left; None if that is nothing usable."""
        return _read(self.path)

    def save(self, state: ResearchState) -> None:
        """Replace the file as a whole."""
        replace_file(self.path, msgspec.json.encode(state))

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def remove_old(folder: Path) -> None:
    """Remove states older than KEPT_SECONDS. Raises OSError."""
    oldest = time.time() - KEPT_SECONDS
    for path in folder.glob("*.json"):
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


def last_question(folder: Path, documents: str) -> str:
    """The question of the last unfinished research of these `documents`; "" if there is none."""
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    states = (state for path in files if (state := _read(path)) and state.documents == documents)
    return next((state.question for state in states), "")


def _read(path: Path) -> ResearchState | None:
    try:
        return msgspec.json.decode(read_regular(path, MAX_BYTES), type=ResearchState)
    except (FileNotFoundError, *DECODE_ERRORS):
        return None
