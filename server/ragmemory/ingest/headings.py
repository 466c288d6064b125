"""Recognise the headings of a text that is not Markdown: manuals, laws, books, commented settings. Pure.

A line is a heading if its kind recurs in the text: underlined lines, numbered ones, labels such as
"Article 12", the sections of a manual page. Entries of a list or table of contents are not headings. For
speed, only the first lines of paragraphs, comments with rules, and keys of settings are examined.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple, get_args

from msgspec.structs import replace

from ragmemory.ingest.banners import banners
from ragmemory.ingest.blocks import Block, joined, markdown_blocks, paragraphs
from ragmemory.ingest.candidates import (
    MAX_QUESTION,
    NONBLANK,
    Candidate,
    Distinct,
    Family,
    Worded,
    candidates,
    next_line,
    squeezed,
)

# Minimum headings of a kind; more are needed if only the wording identifies it.
MIN_EQUAL = 2
MIN_WORDED = 3
WORDED: tuple[Family, ...] = get_args(Worded)
ORDER: tuple[Family, ...] = (*get_args(Distinct), *WORDED)
# Maximum kinds of one family, such as different labels.
MAX_KINDS = 8
# This many of one kind without text between them are a list.
LISTED = 3
# Maximum step between consecutive numbers: some headings, such as whole sentences, are not recognised.
MAX_STEP = 4
# Characters of a numbered clause: items of lists are shorter.
MIN_CLAUSE = 300
# A title that occurs this often is a running header, or a remark such as "NOTE".
MAX_REPEATED = 3
# Labels of the lowest level.
SMALLEST = re.compile(r"(?:article|artikel|artículo|articolo|artigo|art\.|§|rule|clause|條|条|조)(?: [a-z])?")
# Between blank lines.
ATX = re.compile(r"\n[ \t\r]*\n(#{1,6}) +[^\s#][^\n]*(?=\n[ \t\r]*\n)")
DIGITS = re.compile(r"\d+")
# The end of a sentence, before a lone number that is a heading and not a page number.
ENDED = re.compile(r"""[.!?:…*_=~-]["'”’»«“)\]*_]*\s*\Z""")
LOOKBACK = 200


class Mark(NamedTuple):
    """A heading; `end` equals `start` for a run-in heading, whose text follows in the same line.

    Without a title it only ends the section of its level, for example after the last option.
    """

    start: int
    end: int
    level: int  # from 1
    title: str


def headings(text: str, families: Collection[Family] = ORDER) -> list[Mark]:
    """The headings of a plain text, in order, of some families."""
    every = sorted([*candidates(text), *banners(text)], key=lambda one: one.start)
    chosen = [one for one in every if one.family in families]
    found = list(_apart(_with_longer_titles(chosen)))
    members: dict[Family, list[Candidate]] = defaultdict(list)
    for one in _without_lists(text, found):
        members[one.family].append(one)
    kept: list[Candidate] = []
    # Numbering may restart below headings of other families.
    for family in sorted(members, key=ORDER.index):
        outer = [one.start for one in kept]
        kept += sorted(_recurring(text, family, members[family], sorted(outer)))
    return list(_without_idle_ends(_with_levels(sorted(kept, key=lambda one: one.start))))


def numbered_titles(text: str) -> list[Mark]:
    """The articles and numbered titles of a text without other marks, such as that of a PDF in one font size.

    None if paragraphs are numbered: in some, the text follows in the same line.
    """
    marks = headings(text, ("label", "number", "roman"))
    alone = [mark for mark in marks if mark.end > mark.start]
    return alone if 10 * len(alone) >= 9 * len(marks) else []


def plain_blocks(text: str) -> Iterator[Block]:
    """The headings and paragraphs of a plain text, or of Markdown, each with the blank lines after it.

    Short sections may share a chunk: they are often clauses or options.
    """
    if has_markdown(text):
        for block in markdown_blocks(text):
            yield replace(block, is_soft=True)
        return
    path: list[tuple[int, str]] = []
    heading, at = "", 0
    for section, mark in enumerate([*headings(text), Mark(len(text), len(text), 0, "")]):
        for block in paragraphs(text, at, mark.start):
            yield replace(block, section=section, heading=heading, is_soft=section > 0 or mark.level > 0)
        path = [*(higher for higher in path if higher[0] < mark.level), (mark.level, mark.title)]
        heading, at = joined([name for _, name in path if name]), mark.start
        if mark.end > mark.start:
            at = next_line(text, mark.end)
            yield Block(mark.start, at, section + 1, heading, "heading", mark.level, is_soft=True)


def has_markdown(text: str) -> bool:
    """Whether a text has Markdown headings of several levels, and hardly any other lines with "#"."""
    count = f"\n{text}".count("\n#")
    if count < MIN_EQUAL:
        return False
    marks = Counter(map(len, ATX.findall(f"\n\n{text}")))
    return len(marks) > 1 and 3 * marks.total() >= count


def _with_longer_titles(found: Sequence[Candidate]) -> Iterator[Candidate]:
    """Extend candidates by the title in the next line, if most of their kind have one."""
    kinds = Counter(map(_kind, found))
    longer = Counter(_kind(one) for one in found if one.longer)
    for one in found:
        if one.longer and longer[_kind(one)] > kinds[_kind(one)] / 2:
            one = one._replace(end=one.longer[0], title=one.longer[1])
        yield one


def _apart(found: Iterable[Candidate]) -> Iterator[Candidate]:
    """The candidates that do not overlap the previous one."""
    last = 0
    for one in found:
        if one.start >= last:
            last = one.end
            yield one


def _without_lists(text: str, found: Sequence[Candidate]) -> Iterator[Candidate]:
    """The candidates without runs of the same kind, as in a table of contents."""
    run: list[Candidate] = []
    keys: dict[tuple[Family, str | int], tuple[int, ...]] = {}
    for one in found:
        begins_again = bool(one.key) and one.key <= keys.get(_kind(one), ())
        last = run[-1] if run else one
        is_run_in = bool(run) and last.start == last.end
        if begins_again or is_run_in or NONBLANK.search(text, last.end, one.start):
            yield from _unlisted(run)
            run, keys = [], {}
        run.append(one)
        keys[_kind(one)] = one.key
    yield from _unlisted(run)


def _unlisted(run: list[Candidate]) -> list[Candidate]:
    kinds = Counter(map(_kind, run))
    if max(kinds.values(), default=0) < LISTED:
        return run
    return run[-1:] if kinds[_kind(run[-1])] == 1 else []


def _kind(one: Candidate) -> tuple[Family, str | int]:
    return one.family, one.rank


def _recurring(
    text: str, family: Family, members: Sequence[Candidate], outer: Sequence[int]
) -> list[Candidate]:
    """The candidates of a family that are headings. Numbering may restart after each offset in `outer`."""
    fewest = MIN_WORDED if family in WORDED else MIN_EQUAL
    if family == "number":
        return _numbered_headings(members, outer, fewest)
    if family in ("capitals", "margin", "key"):
        single = _rare(members, family)
        if family == "capitals":
            single = _not_terms(single, bool(outer))
        return single if len(single) >= fewest else []
    if family == "clause" and not _are_clauses(text, members):
        return []
    kinds: dict[str | int, list[Candidate]] = defaultdict(list)
    for one in members:
        kinds[one.rank].append(one)
    every = [_of_kind(text, family, kind) for kind in kinds.values()]
    common = sorted(every, key=len, reverse=True)[:MAX_KINDS]
    return [one for kind in common if len(kind) >= fewest for one in kind]


def _numbered_headings(members: Sequence[Candidate], outer: Sequence[int], fewest: int) -> list[Candidate]:
    ruled = [one for one in members if one.rule]
    # Where the numbered headings are underlined, the others are items of lists.
    kept = _counted(ruled if 2 * len(ruled) > len(members) else members, outer)
    if all(len(one.key) == 1 for one in kept):
        return kept if len(kept) >= MIN_WORDED and kept[0].key[0] <= 1 else []
    return kept if len(kept) >= fewest else []


def _rare(members: Sequence[Candidate], family: Family) -> list[Candidate]:
    """Those whose titles do not recur, as a running header does; a key that recurs only ends a section.

    Titles that differ in numbers count as equal, but not those of keys.
    """
    titles = [one.title if family == "key" else DIGITS.sub("0", one.title) for one in members]
    times = Counter(titles)
    return [
        one if is_rare else one._replace(title="")
        for one, title in zip(members, titles, strict=True)
        if (is_rare := times[title] < MAX_REPEATED) or family == "key"
    ]


def _of_kind(text: str, family: Family, members: list[Candidate]) -> list[Candidate]:
    """The members of one kind without those that are out of order, in a family that has an order."""
    match family:
        case "label":
            return _counted_either_way(members, None)
        case "roman":
            return _counted(members, None)
        case "numeral":
            kept = _counted(members, None)
            return kept if _is_between_sentences(text, kept) else []
        case "version":
            return members if _is_ordered(members) else []
        case "question" if len(members) >= MIN_WORDED:
            return sorted([*members, *_statements(text, members[0])])
    return members


def _statements(text: str, one: Candidate) -> Iterator[Candidate]:
    """What an interviewer says without asking, which ends the section of the question before it.

    After a letter such as "Q" it is a title, as a question is.
    """
    label = re.escape(str(one.rank))
    said = rf"^{label}:[ \t]((?:[^?\n]|\n(?![ \t\r]*\n|{label}:))*+)(?=\n(?:[ \t\r]*\n|{label}:)|\Z)"
    for found in re.finditer(said, text, re.MULTILINE):
        title = squeezed(found[1]) if len(str(one.rank)) == 1 and len(found[1]) <= MAX_QUESTION else ""
        yield Candidate(found.start(), found.start(), "question", one.rank, title)


def _not_terms(members: Sequence[Candidate], has_others: bool) -> list[Candidate]:
    """Titles in capitals without remarks such as "NOTE: …", and without terms if there are other headings."""
    if has_others:
        return [one for one in members if one.end > one.start and " " in one.title and "," not in one.title]
    alone = [one for one in members if one.end > one.start]
    are_titles = min(len(alone), len(members) - len(alone)) >= MIN_WORDED
    return list(members) if are_titles else alone


def _counted(members: Sequence[Candidate], outer: Sequence[int] | None) -> list[Candidate]:
    """The longest chain of consecutive numbers, without those of lists and references.

    Numbering may restart with an underlined title, and after each of `outer`, or anywhere if that is None.
    Words such as "ONE" always fit.
    """
    firsts = [place for place, one in enumerate(members) if not one.key or one.key[0] <= 1][:LISTED]
    chains = []
    for first in firsts or [0]:
        chain: list[Candidate] = []
        for one, after in zip_longest(members[first:], members[first + 1 :]):
            if not chain or _follows(chain[-1], one, outer):
                chain.append(one)
            # Some were not recognised, or repealed: the next one goes on from here.
            elif one.key > chain[-1].key and after and _follows(one, after, ()):
                chain.extend([] if _follows(chain[-1], after, outer) else [one])
        chains.append(chain)
    # Of two equally long chains, the first is a table of contents, unless the other lacks its first chapter.
    return max(reversed(chains), key=lambda chain: (len(chain), -len(chain[0].key)), default=[])


def _counted_either_way(members: Sequence[Candidate], outer: Sequence[int] | None) -> list[Candidate]:
    """The longer of the chains from the top and from the bottom: releases are listed newest first."""
    return max(_counted(members, outer), _counted(members[::-1], outer)[::-1], key=len)


def _follows(before: Candidate, one: Candidate, outer: Sequence[int] | None) -> bool:
    above, key = before.key, one.key
    if not above or not key:
        return True
    begins_again = max(key) <= 1 and key != above
    begins_next = 0 < key[0] - above[0] <= MAX_STEP and max(key[1:], default=MAX_STEP) <= 1
    is_apart = outer is None or one.rule or bisect(outer, before.start) < bisect(outer, one.start)
    if (begins_again or begins_next) and is_apart:
        return True
    last = len(key) - 1
    if last > len(above) or key[:last] != above[:last]:
        return False
    return key[last] <= MAX_STEP if last == len(above) else 0 < key[last] - above[last] <= MAX_STEP


def _is_ordered(members: Sequence[Candidate]) -> bool:
    """Whether most of the numbers that differ from the one before rise, or most of them fall."""
    steps = [one.key < other.key for one, other in pairwise(members) if one.key != other.key]
    rises = sum(steps)
    return len(steps) > 1 and 5 * max(rises, len(steps) - rises) >= 4 * len(steps)


def _are_clauses(text: str, members: Sequence[Candidate]) -> bool:
    """Whether paragraphs numbered throughout are most of a text, and longer than the items of a list."""
    length = members[-1].start - members[0].start
    counted = all(other.key[0] - one.key[0] in (1, 2) for one, other in pairwise(members))
    return (
        counted and members[0].key[0] <= 1 and 2 * length > len(text) and length > MIN_CLAUSE * len(members)
    )


def _is_between_sentences(text: str, members: Sequence[Candidate]) -> bool:
    """Whether the text before most of them ends a sentence; page numbers occur anywhere."""
    before = [text[max(0, one.start - LOOKBACK) : one.start] for one in members[1:]]
    return 5 * sum(1 for one in before if ENDED.search(one)) >= 4 * len(before)


def _with_levels(found: Sequence[Candidate]) -> list[Mark]:
    """Assign levels: a kind is below another one if several headings of that contain some of it."""
    found = _with_ranks_of_numbers(found)
    ranks: dict[str, list[str | int]] = defaultdict(list)
    for one in found:
        if one.rank not in ranks[_unit(one)]:
            ranks[_unit(one)].append(one.rank)
    for unit, order in ranks.items():
        if all(isinstance(rank, int) for rank in order):
            order.sort(key=int)
        elif unit == "underlined":  # Titles between two rules are above those with one.
            order.sort(key=lambda rank: -len(str(rank)))
    base: dict[str, int] = {}
    for unit in sorted(ranks, key=lambda unit: (not _are_chapters(unit, found), _depth(unit))):
        outer = [other for other in base if unit == "option" or _holds(other, unit, found)]
        base[unit] = max((base[other] + len(ranks[other]) for other in outer), default=0)
    return [
        Mark(one.start, one.end, base[_unit(one)] + ranks[_unit(one)].index(one.rank) + 1, one.title)
        for one in found
    ]


def _without_idle_ends(marks: Sequence[Mark]) -> Iterator[Mark]:
    """The marks without those that end no section, or one that the next heading ends at the same place."""
    levels: list[int] = []  # of the open sections
    for mark, after in zip_longest(marks, marks[1:]):
        outer = [level for level in levels if level < mark.level]
        is_ended = after and after.title and after.start == mark.start and after.level <= mark.level
        if mark.title or (len(outer) < len(levels) and not is_ended):
            yield mark
        levels = [*outer, mark.level] if mark.title else outer


def _unit(one: Candidate) -> str:
    """The unit of nesting: a family, or one label."""
    return f"label {one.rank}" if one.family == "label" else one.family


def _depth(unit: str) -> int:
    """The sort key of units, before their nesting is known."""
    if unit in ("question", "clause"):
        return 3
    if unit in ("key", "margin", "capitals", "emphasis", "option"):
        return 2
    return int(bool(SMALLEST.fullmatch(unit.removeprefix("label "))))


def _are_chapters(unit: str, found: Sequence[Candidate]) -> bool:
    """Whether sections below most of a kind are numbered after it or from 1: "Chapter 2", "2.1" or "1."."""
    numbers = [
        one.key[:1] == other.key[:1] if len(other.key) > 1 else other.key == (1,)
        for one, other in pairwise(found)
        if _unit(one) == unit != _unit(other) and other.family in ("number", "label")
    ]
    return unit != "number" and MIN_EQUAL <= sum(numbers) > len(numbers) / 2


def _with_ranks_of_numbers(found: Sequence[Candidate]) -> list[Candidate]:
    """Give underlined titles without a number the rank of numbered ones with the same underline."""
    depths: dict[str, int] = {}
    for one in found:
        if one.family == "number" and one.rule:
            depths[one.rule] = min(int(one.rank), depths.get(one.rule, len(one.key)))
    return [
        one._replace(family="number", rank=depths[one.rule])
        if one.family == "underlined" and one.rank in depths
        else one
        for one in found
    ]


def _holds(outer: str, inner: str, found: Sequence[Candidate]) -> bool:
    """Whether several headings of one family are followed by some of the other."""
    both = [unit for one in found if (unit := _unit(one)) in (outer, inner)]
    return sum(1 for one, other in pairwise(both) if one == outer != other) >= MIN_EQUAL
