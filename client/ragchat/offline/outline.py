"""The outline of a document: its headings, each with the sentence that follows it. Pure.

That of settings has the outermost keys with what is below them, that of a CSV file its records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from ragchat.offline.layout import is_settings_file
from ragchat.offline.records import FIELD_SEPARATOR
from ragchat.offline.structure import Kind, Unit, units
from ragchat.offline.words import index_terms
from ragconfig.text_rules import atx_heading

MOST_ENTRIES = 12
# A section without headings of its own that is no longer than this is quoted whole.
SHORT = 1_500
# Of what is below a key, of the fields of a record, of the characters of a line.
MOST_LINES = 6
MOST_FIELDS = 8
MOST_CHARACTERS = 120


@dataclass(frozen=True)
class Entry:
    """A heading, or a paragraph, key or record (`heading` ""), from `start` to `end` of the document.

    `unit` is what follows the heading; None where another heading does.
    """

    heading: str
    level: int  # from 1
    path: str  # the headings above it and its own, joined by " > "
    start: int
    end: int
    unit: Unit | None

    @property
    def markdown(self) -> str:
        """The heading and the sentence, without citation."""
        heading = f"**{self.heading}**" if self.heading else ""
        is_cut = self.unit is not None and self.unit.kind is Kind.CODE and self.unit.end < self.end
        shown = f"{_shown(self.unit)}{' · …' * is_cut}" if self.unit else ""
        return ": ".join(filter(None, [heading, shown]))

    @property
    def quote(self) -> str:
        """What is quoted of it, as it stands in the document."""
        if self.unit is None:
            return ""
        return self.unit.lead if self.unit.kind is Kind.ROW and self.unit.lead else self.unit.text


@dataclass(frozen=True)
class Outline:
    """The first of `total` entries, which are `what`: headings, keys, records or paragraphs."""

    entries: Sequence[Entry]
    total: int
    what: str

    @property
    def note(self) -> str:
        """That it is cut; "" if it is not."""
        if len(self.entries) == self.total:
            return ""
        return f"{len(self.entries)} of {self.total:,} {self.what} shown."

    def indent(self, entry: Entry) -> str:
        """Before the bullet of an entry, by the level of its heading."""
        levels = sorted({other.level for other in self.entries})
        return "  " * levels.index(entry.level)


def outline(document: str, uri: str, part: Entry | None = None) -> Outline | None:
    """The outline of a document or of a part of it; None if that has nothing to say."""
    every = units(document, uri)
    if part:
        every = [unit for unit in every if part.start <= unit.start < part.end]
    if is_settings_file(uri):
        entries, what = list(_keys(document, every)), "keys"
    elif every and every[0].kind is Kind.RECORD:
        entries, what = [_paragraph(unit, unit.end) for unit in every], "records"
    else:
        entries, what = list(_headings(document, every)), "headings"
        if len(entries) < 2:
            entries, what = list(_paragraphs(document, every)), "paragraphs"
    if not entries:
        return None
    # The higher headings first, but in the order of the document.
    chosen = sorted(
        sorted(entries, key=lambda entry: entry.level)[:MOST_ENTRIES], key=lambda entry: entry.start
    )
    return Outline(chosen, len(entries), what)


def section(document: str, uri: str, name: str) -> Entry | None:
    """The part of a document under the heading of that name; None if it has none, or several."""
    entries = list(_headings(document, units(document, uri)))
    same = [place for place, entry in enumerate(entries) if is_name(name, entry.heading)]
    if len(same) != 1:
        return None
    entry, *later = entries[same[0] :]
    end = next((other.start for other in later if other.level <= entry.level), len(document))
    return Entry(entry.heading, entry.level, entry.path, entry.start, end, entry.unit)


def only_in(document: str, other: str, uri: str) -> list[Sequence[Unit]]:
    """What the first of two documents says and the other does not, in the same words.

    Neighbouring units of one block are together.
    """
    said = {_plain(unit) for unit in units(other, uri)}

    def place(unit: Unit) -> tuple[int, bool]:
        return unit.block, unit.kind is not Kind.LABEL and _plain(unit) not in said

    runs = groupby(units(document, uri), key=place)
    return [list(run) for (_, is_only_here), run in runs if is_only_here]


def _plain(unit: Unit) -> str:
    return " ".join(unit.text.split())


def is_name(name: str, other: str) -> bool:
    """Whether two names have the same words, whatever their order, case and endings."""
    words = name_terms(name)
    return bool(words) and words == name_terms(other)


def name_terms(name: str) -> frozenset[str]:
    """The terms of a name; those of a file are separated by any sign."""
    return frozenset(index_terms(re.sub(r"[\W_]+", " ", name)))


def _headings(document: str, every: Sequence[Unit]) -> Iterator[Entry]:
    labels = [place for place, unit in enumerate(every) if unit.kind is Kind.LABEL]
    if marked := [place for place in labels if atx_heading(every[place].text)]:
        labels = marked
    above: list[tuple[int, str]] = []
    for place, following in pairwise([*labels, len(every)]):
        label = every[place]
        level, heading = atx_heading(label.text) or (1, label.text)
        heading = heading.strip(" #*_")
        above = [*((its, name) for its, name in above if its < level), (level, heading)]
        end = every[following].start if following < len(every) else len(document)
        unit = every[place + 1] if place + 1 < following else None
        yield Entry(heading, level, " > ".join(name for _, name in above), label.start, end, unit)


def _paragraphs(document: str, every: Sequence[Unit]) -> Iterator[Entry]:
    firsts = [
        place
        for place, unit in enumerate(every)
        if unit.kind is not Kind.LABEL and (place == 0 or every[place - 1].block != unit.block)
    ]
    for place, following in pairwise([*firsts, len(every)]):
        end = every[following].start if following < len(every) else len(document)
        yield _paragraph(every[place], end)


def _paragraph(unit: Unit, end: int) -> Entry:
    return Entry("", 1, "", unit.start, end, unit)


def _keys(document: str, every: Sequence[Unit]) -> Iterator[Entry]:
    """The outermost keys, each with the first lines below it."""
    outermost = list[int]()
    for place, unit in enumerate(every):
        if not (outermost and _is_below(unit, every[outermost[-1]])):
            outermost.append(place)
    for place, following in pairwise([*outermost, len(every)]):
        last = every[min(following, place + MOST_LINES) - 1]
        key = replace(every[place], text=document[every[place].start : last.end])
        yield _paragraph(key, every[following - 1].end)


def _is_below(unit: Unit, key: Unit) -> bool:
    """Whether a line belongs to an outermost key, or to a section such as [server]."""
    is_section = unit.text.startswith("[")
    return bool(unit.lead) or unit.text.startswith("- ") or (key.text.startswith("[") and not is_section)


def _shown(unit: Unit) -> str:
    if unit.kind is Kind.ROW:
        cells = (unit.lead or unit.text).strip().strip("|").split("|")
        return " · ".join(cell.strip() for cell in cells)
    if unit.kind is Kind.CODE:
        lines = [line.strip() for line in unit.text.splitlines()]
        return " · ".join(f"`{_cut(line)}`" for line in lines if line)
    if unit.kind is Kind.RECORD:
        fields = [_cut(field) for field in unit.reading.split(FIELD_SEPARATOR)]
        return " · ".join(fields[:MOST_FIELDS] + ["…"] * (len(fields) > MOST_FIELDS))
    text = " ".join(unit.text.split())
    if unit.kind is not Kind.ITEM:
        return text
    item = re.sub(r"^[-*+•–]\s+", "", text)
    return f"{unit.lead} {item} …" if unit.lead else item


def _cut(line: str) -> str:
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}…"
