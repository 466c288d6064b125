"""Scanned pages of a file: a parser asks for their text, and collects the images that are still to be read.

A parser runs in a worker process, which may be killed at any time, so it does not start an OCR program.
`ragmemory.files.parsing` has the collected images read, and runs the parser again with their texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar

from msgspec import Struct

from ragmemory.files.formats.file_text import page_ranges

NOT_INSTALLED = "the program tesseract, which reads scans, is not installed"
# Scanned pages per file. A page takes a few seconds.
MAX_PAGES = 2_000
# Percent, the mean over the words of a page. Clean print has 95; pages of noise or turned on their side have
# less than 30, and no word is right.
USABLE, SURE = 40, 80
# The share of the print on a page. Pages that lost a third of their words or more have 0.65 or less, complete
# ones with a small photo or a few lines of handwriting 0.74 or more.
MOST = 0.7


class Image(Struct, frozen=True):
    """A file that tesseract reads, and the number of the page in it, from 0."""

    data: bytes
    page: int = 0


class Recognised(Struct, frozen=True):
    """The text of a scanned page; "" if there is none, or `problem` says why it could not be read."""

    text: str
    confidence: float = 100.0  # percent
    problem: str = ""  # the end of a sentence
    covered: float = 1.0  # the share of the print that lies in the words


class Scans(Struct):
    """The scanned pages of a file and of the files in it, as far as they are known."""

    known: dict[str, Recognised] = {}
    problem: str = NOT_INSTALLED  # why no page can be read; "": they can
    with_images: bool = False  # images in archives and e-mails too
    room: int = 0  # bytes of images that are collected
    wanted: dict[str, Image] = {}
    missing: list[str] = []  # pages that are not known, whether collected or not
    unread: int = 0  # pages that are not read because of `problem`
    failed: bool = False  # whether a page could not be read


scans: ContextVar[Scans] = ContextVar("scans")


def current() -> Scans:
    return scans.get(None) or Scans()


class ScannedPages:
    """The scanned pages of one file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._scans = current()
        self._digest = ""
        self._read: dict[int, Recognised] = {}

    def text(self, number: int, image: Callable[[], Image]) -> str:
        """The text of a page; "" if it is not known yet, or cannot be read."""
        state = self._scans
        self._digest = self._digest or hashlib.blake2b(self._data, digest_size=16).hexdigest()
        key = f"{self._digest} {number}"
        if (found := state.known.get(key)) is None:
            if state.problem:
                state.unread += 1
                return ""
            if len(state.missing) + len(state.known) < MAX_PAGES:
                if state.room > 0:
                    state.wanted[key] = collected = image()
                    state.room -= len(collected.data)
                state.missing.append(key)  # If it can be drawn.
                return ""
            found = Recognised("", problem=f"only {MAX_PAGES:,} scanned pages of a file are read")
        state.failed |= bool(found.problem)
        self._read[number] = found
        return found.text

    @property
    def reason(self) -> str:
        """Why pages are not read, to follow a clause about them; "": they are."""
        return f", and {self._scans.problem}" if self._scans.unread else ""

    def __contains__(self, number: int) -> bool:
        """Whether an OCR program has read this page, or has tried to."""
        return number in self._read

    def note(self, *, paged: bool = True) -> str:
        """How the pages were read, as the end of a sentence about the file; "": there are none."""

        def on(numbers: Sequence[int]) -> str:
            return f" on {page_ranges(numbers)}" if paged else ""

        texts = {number: one for number, one in self._read.items() if one.text}
        blank = [number for number, one in self._read.items() if not one.text and not one.problem]
        unsure = [number for number, one in texts.items() if one.confidence < SURE]
        partial = [number for number, one in texts.items() if one.covered < MOST]
        problems: dict[str, list[int]] = {}
        for number, one in self._read.items():
            if one.problem:
                problems.setdefault(one.problem, []).append(number)
        notes = []
        if texts:
            mean = sum(one.confidence for one in texts.values()) / len(texts)
            notes.append(f"was read by OCR{on([*texts])} with {mean:.0f}% confidence")
        if unsure:
            notes.append(f"OCR was unsure{on(unsure)}: compare the text with the original")
        if partial:
            rest = "the rest may be lost lines, handwriting or pictures"
            notes.append(f"OCR found words in only a part of the print{on(partial)}: {rest}")
        if blank:
            notes.append(f"OCR found no text{on(blank)}")
        notes += [f"OCR failed{on(numbers)}: {problem}" for problem, numbers in problems.items()]
        return "; ".join(notes)
