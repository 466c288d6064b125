"""The list that answers a question for several things, whole and with what introduces it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

import anyio
from msgspec.structs import replace as with_changes

from ragchat.errors import RagChatError
from ragchat.grounding.evidence import gather
from ragchat.grounding.pieces import Span
from ragchat.memory.types import DocumentText
from ragchat.offline.views import asks_for_list
from ragchat.offline.windows import Window, lines_of
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.retrieval import Memory
from ragchat.turn.views import MAX_CHARACTERS
from ragcommon.contract.search import Hit
from ragcommon.text.places import within
from ragcommon.text.rules import heading_of

# Windows whose lists are compared.
TRIED = 8
MIN_ENTRIES = 3
# The most characters of an average entry: longer ones are sections.
MAX_ENTRY = 400
# Characters of a list that are shown: they fill one terminal screen.
SIZE = 1500
# Lines of the paragraph above a list.
MAX_INTRO = 6
# The minimum score of a list, relative to what the best window would score as an introduction. On six sets of
# documents, lists about something else reach .89.
MIN_SHARE = 0.9
# What an entry begins with, also in text that is not Markdown: "•", "a)", "(2)", "3a.", "1ª)".
_MARK = re.compile(r"\s*(?:[-*+•·–]|o(?=\s\s)|\(?(?:\d{1,3}[a-z]?|[a-z]|[ivx]{2,4})[ªº°]?[.)])(?=\s)")
_WORD = re.compile(r"\w+")


@dataclass
class _List:
    """The first and last line (from 0) of a list; where its marks begin and end, and their kind."""

    first: int
    last: int
    indent: int
    end: int
    kind: str
    entries: int = 1


async def with_list_first(windows: Sequence[Window], memory: Memory, limits: RetrievalLimits) -> list[Window]:
    """The windows (best first), preceded by the list that is asked for if one of the best is part of it.

    Those that the list repeats or adjoins are left out.
    """
    best = windows[0]
    if best.score <= 0 or not asks_for_list(best.evidence.question.text, "several"):
        return [*windows]
    try:
        with anyio.fail_after(limits.seconds):
            if (found := await _best_list(windows, memory)) is None:
                return [*windows]
    except (RagChatError, TimeoutError):
        return [*windows]
    return [found, *(window for window in windows if window is not found and not _adjoin(window, found))]


async def _best_list(windows: Sequence[Window], memory: Memory) -> Window | None:
    """The list whose introduction, headings included, matches the question best."""
    first, found = windows[0], [one async for one in _lists_of(windows[:TRIED], memory)]
    evidences = await gather(first.evidence.question, [hit for _, hit, _ in found], memory)
    best, highest = None, MIN_SHARE * (1 + first.evidence.late(first.pieces))
    for (window, hit, size), evidence in zip(found, evidences, strict=True):
        intro = len("\n".join(hit.text.split("\n")[:size]))
        late = evidence.late([piece for piece in evidence.pieces if piece.start < intro])
        if (score := window.score / first.score + late) > highest:
            top = max(range(len(evidence.pieces)), key=lambda at: evidence.late([evidence.pieces[at]]))
            whole = Window(evidence, 0, len(evidence.pieces) - 1, top, is_whole=True)
            best, highest = window if _has(window, hit) else whole, score
    return best and replace(best, score=first.score)


async def _lists_of(windows: Sequence[Window], memory: Memory) -> AsyncIterator[tuple[Window, Hit, int]]:
    """The lists that windows are part of, as passages, each with the number of lines that introduce it."""
    documents: dict[str, tuple[DocumentText, list[str], list[_List]]] = {}
    found = set[tuple[str, int]]()
    for window in windows:
        hit = window.hit
        if hit.is_code or hit.is_table or hit.surroundings:
            continue
        if hit.document_id not in documents:
            document = await memory.show(hit.document_id)
            lines = document.text[:MAX_CHARACTERS].split("\n")
            documents[hit.document_id] = document, lines, [*_lists_in(lines)]
        document, lines, lists = documents[hit.document_id]
        for one in lists:
            start = _introduced(lines, one.first)
            if (hit.document_id, start) not in found and _is_part(window, one, start):
                found.add((hit.document_id, start))
                passage = _passage(hit, document, lines[start : one.last + 1], start + 1)
                yield window, passage, one.first - start


def _is_part(window: Window, one: _List, start: int) -> bool:
    """Whether a window is part of a list that begins, introduction included, in line `start`, or adjoins it.

    If only headings introduce it, its best piece must be: they are about the text around the list, too.
    """
    piece = window.evidence.pieces[window.best]
    first, last = _lines(window) if start < one.first else lines_of(window.hit, piece.start, piece.end)
    return first - 1 <= one.last and start <= last - (start == one.first)


def _passage(hit: Hit, document: DocumentText, lines: Sequence[str], first: int) -> Hit:
    """A list as a passage, cut at SIZE characters. `first` is its first line, from 1."""
    text = "\n".join(lines)
    text = text if len(text) <= SIZE else text[: text.rfind("\n", 0, SIZE)]
    last = first + text.count("\n")
    return with_changes(
        hit,
        text=text,
        start_line=first,
        end_line=last,
        heading=hit.heading_at(first),
        headings=[],
        context="",
        places=[*within(document.places, first, last)] or hit.places,
    )


def _lines(window: Window) -> Span:
    return lines_of(window.hit, *window.span)


def _has(window: Window, hit: Hit) -> bool:
    """Whether a window shows all of a list anyway."""
    first, last = _lines(window)
    return first <= hit.start_line and hit.end_line <= last


def _adjoin(window: Window, other: Window) -> bool:
    """Whether two windows share lines, or would share a card."""
    (first, last), (start, end) = _lines(window), _lines(other)
    is_same = window.hit.document_id == other.hit.document_id
    return is_same and first <= end + 2 and start <= last + 2


def _lists_in(lines: Sequence[str]) -> Iterator[_List]:
    """The lists of a document, also those inside others, of MIN_ENTRIES entries or more."""
    for one in _any_lists_in(lines):
        size = sum(len(line) + 1 for line in lines[one.first : one.last + 1])
        if one.entries >= MIN_ENTRIES and size <= MAX_ENTRY * one.entries:
            yield one


def _any_lists_in(lines: Sequence[str]) -> Iterator[_List]:
    """All lists. As in Markdown, a line that is not indented ends one only after an empty line."""
    is_open, after_empty = list[_List](), True
    for at, line in enumerate(lines):
        if not (text := line.expandtabs()).strip():
            after_empty = True
            continue
        indent = len(text) - len(text.lstrip())
        if heading_of(line):
            yield from is_open
            is_open = []
        elif mark := _MARK.match(text):
            end, kind = mark.end(), _WORD.sub(_kind_of, mark[0].strip())
            same = [one for one in is_open if one.kind == kind and (one.indent == indent or one.end == end)]
            while is_open and is_open[-1] not in same and (same or is_open[-1].indent > indent):
                yield is_open.pop()
            if same:
                same[-1].entries += 1
            else:
                is_open.append(_List(at, at, indent, end, kind))
        elif after_empty:
            while is_open and is_open[-1].indent >= indent:
                yield is_open.pop()
        for one in is_open:
            one.last = at
        after_empty = False
    yield from is_open


def _kind_of(number: re.Match[str]) -> str:
    return "1" if number[0][0].isdigit() else "a"


def _introduced(lines: Sequence[str], first: int) -> int:
    """The first line of the paragraph or entry that introduces a list, or the first one of the list."""
    last = next((at for at in range(first - 1, max(-1, first - 4), -1) if lines[at].strip()), -1)
    if last < 0 or heading_of(lines[last]):
        return first
    at = last
    while at > max(0, last - MAX_INTRO) and not _MARK.match(lines[at]):
        if not lines[at - 1].strip() or heading_of(lines[at - 1]):
            break
        at -= 1
    return at
