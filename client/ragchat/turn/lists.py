"""The list that answers a question for several things, whole and with what introduces it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import anyio
from msgspec.structs import replace as with_changes

from ragchat.errors import RagChatError
from ragchat.grounding.evidence import gather
from ragchat.grounding.pieces import Span, sentence_spans
from ragchat.memory.types import DocumentText
from ragchat.offline.views import asks_for_list
from ragchat.offline.windows import Window, lines_of
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.retrieval import Memory
from ragchat.turn.views import MAX_CHARACTERS
from ragcommon.contract.search import Hit
from ragcommon.text.lists import TextList, introduction, lists_in
from ragcommon.text.places import within

# Windows whose lists are compared.
TRIED = 8
MIN_ENTRIES = 3
# Characters of a list that are shown: they fill one terminal screen.
SIZE = 1500
# Characters of what introduces a list: of a longer paragraph, its last sentences do.
MAX_INTRO = 500
# The minimum score of a list, relative to what the best window would score as an introduction. On six sets of
# documents, lists about something else reach .89.
MIN_SHARE = 0.9


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
    evidences = await gather(first.evidence.question, [hit for _, hit, _, _ in found], memory)
    best, highest = None, MIN_SHARE * (1 + first.evidence.late(first.pieces))
    for (window, hit, begin, end), evidence in zip(found, evidences, strict=True):
        late = evidence.late([piece for piece in evidence.pieces if piece.start < begin])
        if (score := window.score / first.score + late) > highest:
            top = max(range(len(evidence.pieces)), key=lambda at: evidence.late([evidence.pieces[at]]))
            whole = Window(evidence, 0, len(evidence.pieces) - 1, top, list_end=end)
            best, highest = window if _has(window, hit) else whole, score
    return best and replace(best, score=first.score)


async def _lists_of(windows: Sequence[Window], memory: Memory) -> AsyncIterator[tuple[Window, Hit, int, int]]:
    """The lists that windows are part of: the best of these windows, the list as a passage with the length of
    its introduction, and the last line of the list, from 1."""
    documents: dict[str, tuple[DocumentText, list[str], list[TextList]]] = {}
    for window in windows:
        hit = window.hit
        if hit.is_code or hit.is_table or hit.surroundings:
            continue
        if hit.document_id not in documents:
            document = await memory.show(hit.document_id)
            lines = document.text[:MAX_CHARACTERS].split("\n")
            several = [one for one in lists_in(lines) if one.count >= MIN_ENTRIES]
            # Of lists that are introduced as well, the first is shown: the one around others.
            several.sort(key=lambda one: (one.first, -one.last))
            documents[hit.document_id] = document, lines, several
        document, lines, lists = documents[hit.document_id]
        for one in [one for one in lists if _is_part(window, one, introduction(lines, one.first))]:
            lists.remove(one)
            yield window, *_passage(window.hit, document, lines, one), one.last + 1


def _is_part(window: Window, one: TextList, start: int) -> bool:
    """Whether a window is part of a list that begins, introduction included, in line `start`, or adjoins it.

    If only headings introduce it, its best piece must be: they are about the text around the list, too.
    """
    piece = window.evidence.pieces[window.best]
    first, last = _lines(window) if start < one.first else lines_of(window.hit, piece.start, piece.end)
    return first - 1 <= one.last and start <= last - (start == one.first)


def _passage(hit: Hit, document: DocumentText, lines: Sequence[str], one: TextList) -> tuple[Hit, int]:
    """A list as a passage, with its introduction and cut at SIZE characters; and the length of the former."""
    intro = "".join(f"{line}\n" for line in lines[introduction(lines, one.first) : one.first])
    if len(intro) > MAX_INTRO:
        last = intro[-MAX_INTRO:]
        intro = last[next((start for start, _ in sentence_spans(last)[1:]), MAX_INTRO) :]
    text = intro + "\n".join(lines[one.first : one.last + 1])
    if len(text) > SIZE:
        cut = text.rfind("\n", len(intro), SIZE)
        text = text[: cut if cut > 0 else SIZE]
    first = one.first + 1 - intro.count("\n")
    end = first + text.count("\n")
    whole = with_changes(
        hit,
        text=text,
        start_line=first,
        end_line=end,
        heading=hit.heading_at(first),
        headings=[],
        context="",
        places=[*within(document.places, first, end)] or hit.places,
    )
    return whole, len(intro)


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
