"""How far a research is, and the file that keeps it until the report is saved."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import msgspec
from msgspec import Struct, field

from ragchat.types import Usage
from ragcommon.contract.search import Hit
from ragcommon.files.safe_open import read_regular
from ragcommon.files.writing import private_folder, replace_file

LARGEST_BYTES = 2**26
# A research that was stopped can be resumed for 30 days.
KEPT_SECONDS = 30 * 86_400.0


class Finding(Struct, frozen=True):
    """A passage, and what it says on the question; `quote` is "" if the model has not read it."""

    hit: Hit
    quote: str = ""


class SubQuestion(Struct):
    """A part of the question, `wordings` to search for as well, and what was found."""

    text: str
    wordings: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  # what the model read that is not the user's own
    read: bool = False  # by the model

    @property
    def queries(self) -> list[str]:
        return [*dict.fromkeys([self.text, *self.wordings])]


class State(Struct):
    """Everything that a later run needs to go on. `place` names the documents that are searched."""

    question: str
    place: str
    sub_questions: list[SubQuestion] = field(default_factory=list)
    draft: str = ""  # the report before its claims are checked
    usage: Usage = Usage()

    @property
    def findings(self) -> list[Finding]:
        """Those of all sub-questions in turn, the best of each first."""
        rows = [sub.findings for sub in self.sub_questions]
        longest = max(map(len, rows), default=0)
        return [row[rank] for rank in range(longest) for row in rows if rank < len(row)]


class StateFile:
    """The state of one question about one place. Every method raises OSError."""

    def __init__(self, folder: Path, question: str, place: str) -> None:
        name = hashlib.sha256(f"{place}\n{question}".encode()).hexdigest()
        self.path = folder / f"{name}.json"

    def load(self) -> State | None:
        """What an earlier run has left; None if that is nothing usable."""
        return _read(self.path)

    def save(self, state: State) -> None:
        """Replace the file as a whole."""
        private_folder(self.path.parent)
        replace_file(self.path, msgspec.json.encode(state))

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def remove_old(folder: Path) -> None:
    """Remove what was left more than KEPT_SECONDS ago. Raises OSError."""
    oldest = time.time() - KEPT_SECONDS
    for path in folder.glob("*.json"):
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


def last_question(folder: Path, place: str) -> str:
    """The question of the research about `place` that was stopped last; "" if there is none."""
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    states = (state for path in files if (state := _read(path)) and state.place == place)
    return next((state.question for state in states), "")


def _read(path: Path) -> State | None:
    try:
        return msgspec.json.decode(read_regular(path, LARGEST_BYTES), type=State)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
