"""Splits a passage into units that can be quoted: sentences, list items, table rows, blocks of code. Pure.

Every unit is a verbatim part of the passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    SENTENCE = "sentence"
    ITEM = "item"  # of a list
    ROW = "row"  # of a table
    CODE = "code"


@dataclass(frozen=True)
class Unit:
    """A quotable part of a passage. `header` is the header row of a table row, as it is in the text."""

    text: str
    kind: Kind
    header: str = ""


_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s|\s*(?:={3,}|-{3,})\s*$")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$")

# A full stop ends a sentence if white space and a capital follow; an ideographic one always does.
_END = re.compile(r"""(?<=[.!?…])["'”’»)\]]*\s+(?=["'“„«(\[¿¡]*[^\W_a-zß-öø-ÿ])|(?<=[。！？])[”’」』）]*""")
# A full stop after one letter or a common abbreviation does not end a sentence.
_NO_END = re.compile(
    r"(?:^|[\s(.\[])(?:[^\W\d_]|\d{1,2}|Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|Gen|Col|Lt|Capt|Rev|Hon|Gov|Sen|Rep|vs|etc|e\.g|i\.e|cf"
    r"|al|ca|approx|est|Inc|Ltd|Co|Corp|No|Nos|Nr|Fig|Figs|Eq|Sec|Vol|pp|ed|eds|Bd|Abb|Tab|bzw|usw|evtl|ggf|inkl"
    r"|Mio|Mrd|Std|Str|Hrsg|u\.a|z\.B|d\.h|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|Okt|Dez|M|Mme|Mlle|Sra)\.$"
)


def units(text: str) -> list[Unit]:
    """The quotable parts of a passage, in order and without headings."""
    found: list[Unit] = []
    for block, kind in _blocks(text.splitlines()):
        if kind is Kind.ROW:
            found += _rows(block)
        elif kind is Kind.SENTENCE:
            found += [Unit(part, kind) for part in sentences("\n".join(block))]
        else:
            found.append(Unit("\n".join(block).strip("\n"), kind))
    return [unit for unit in found if any(map(str.isalnum, unit.text))]


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        candidate = text[begin : end.end()].strip()
        if candidate and not _NO_END.search(candidate):
            parts.append(candidate)
            begin = end.end()
    return [part for part in [*parts, text[begin:].strip()] if part]


def _blocks(lines: list[str]) -> Iterator[tuple[list[str], Kind]]:
    """Runs of lines that belong together. Headings and empty lines separate them."""
    run: list[str] = []
    kind = Kind.SENTENCE
    fence = ""
    for line in lines:
        if fence:
            run.append(line)
            if line.strip().startswith(fence):
                yield run, Kind.CODE
                run, fence, kind = [], "", Kind.SENTENCE
            continue
        begins = _begins(line, kind)
        if begins is not None or not line.strip() or _HEADING.match(line):
            if run:
                yield run, kind
            run, kind = [], begins or Kind.SENTENCE
        if opened := _FENCE.match(line):
            fence, kind = opened.group(1), Kind.CODE
        if line.strip() and not _HEADING.match(line):
            run.append(line)
    if run:
        yield run, kind


def _begins(line: str, kind: Kind) -> Kind | None:
    """The kind of block that a line begins; None if it continues the one before."""
    if _FENCE.match(line):
        return Kind.CODE
    if _ITEM.match(line):
        return Kind.ITEM
    if _ROW.match(line):
        return None if kind is Kind.ROW else Kind.ROW
    return Kind.SENTENCE if kind is Kind.ROW else None


def _rows(lines: list[str]) -> list[Unit]:
    """The rows of a table, each with the header row. A table that is cut at its top has none."""
    if len(lines) > 1 and _RULE.match(lines[1]):
        return [Unit(line.strip(), Kind.ROW, lines[0].strip()) for line in lines[2:]]
    return [Unit(line.strip(), Kind.ROW) for line in lines]
