"""The headings of a document without styles for them: bold paragraphs, "Article 12", "2.1 Terms". Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from ragmemory.ingest.candidates import is_title
from ragmemory.ingest.headings import LISTED, MAX_REPEATED, MIN_EQUAL, numbered_titles

HEADING = re.compile("#{1,6} ")
# The lowest level of a heading in Markdown.
MAX_LEVEL = 6
# Upper limit of the share of paragraphs that are headings.
MAX_SHARE = 0.5
# Upper limit of the share of a text between two headings of its own.
MAX_WITHOUT = 0.6
# Upper limit of the spaces in a title that ends with a full stop.
MAX_SPACES = 5


def with_headings(parts: Sequence[str], bold: Collection[int]) -> list[str]:
    """The parts of a text in Markdown, with headings if it has none of its own, only a title, or few.

    `bold`: the places of the parts that are bold throughout.
    """
    own = [place for place, part in enumerate(parts) if HEADING.match(part)]
    are_styled = len(own) >= MIN_EQUAL
    if are_styled and _longest(parts, own) <= MAX_WITHOUT * sum(map(len, parts)):
        return list(parts)
    found = _bold(parts, bold) or ({} if are_styled else _worded(parts))
    if are_styled and len(found) <= 2 * len(own):
        return list(parts)
    above = 0 if are_styled else len(own)
    return [
        f"{'#' * min(above + found[place], MAX_LEVEL)} {part}" if place in found else part
        for place, part in enumerate(parts)
    ]


def _longest(parts: Sequence[str], own: Sequence[int]) -> int:
    """The characters of the longest stretch without a heading of its own."""
    return max(sum(map(len, parts[start:end])) for start, end in pairwise([0, *own, len(parts)]))


def _bold(parts: Sequence[str], bold: Collection[int]) -> dict[int, int]:
    """The level of each bold part that is a heading, by its place: not of remarks, and not of a bold text."""
    times = Counter(parts[place] for place in bold)
    found: list[int] = []
    run: list[int] = []
    for place in range(len(parts) + 1):
        if place in bold:
            run.append(place)
            continue
        if len(run) < LISTED:
            found += [
                one
                for one in run
                if times[parts[one]] < MAX_REPEATED and _is_line(parts[one]) and is_title(parts[one])
            ]
        run = []
    # A question right below the title counts with it: the answers may be one paragraph each.
    apart = found[:1] + [other for one, other in pairwise(found) if other - one > 1]
    counted = found if len(apart) < MIN_EQUAL else apart
    are_some = MIN_EQUAL <= len(counted) <= MAX_SHARE * len(parts)
    return dict.fromkeys(found, 1) if are_some else {}


def _worded(parts: Sequence[str]) -> dict[int, int]:
    """The level of each part that is a heading by its wording or number, by its place."""
    # Pages and mail are few parts of many lines; looking through them would be in vain.
    if sum(map(_is_line, parts)) < MIN_EQUAL:
        return {}
    starts, at = {}, 0
    for place, part in enumerate(parts):
        starts[at] = place
        at += len(part) + 2
    levels = {
        starts[mark.start]: mark.level for mark in numbered_titles("\n\n".join(parts)) if mark.start in starts
    }
    levels = {place: level for place, level in levels.items() if _is_line(parts[place])}
    are_sentences = any(parts[one].endswith(".") and parts[one].count(" ") > MAX_SPACES for one in levels)
    return {} if are_sentences or len(levels) < MIN_EQUAL else levels


def _is_line(part: str) -> bool:
    """Whether a part may be a heading, of which Markdown has one line."""
    return "\n" not in part and not HEADING.match(part)
