"""Recognise conversations, and split them into turns that are embedded with their neighbours. Pure.

A turn begins with the name of its speaker in one of three forms: with a time, in bold, or plain. A name with
a time may stand in a line above the text. All turns of a conversation have the same form. Settings, logs and
Q&A lists look similar but are not conversations.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from msgspec.structs import replace

from ragcommon.text.rules import heading_of
from ragmemory.ingest.blocks import Block

# Characters in which speakers are looked for.
_BEGINNING = 100_000
_MIN_TURNS = 4
# Short turns share a chunk of up to this many characters: a question stays with its answer, and messages such
# as "ok" get no chunk of their own. For LoCoMo's turns, nDCG@10 is .57; with 300 characters it is .55.
_SHARED = 200
# Turns before and after a chunk that are embedded with it, and the maximum characters per side. With one or
# three turns, nDCG@10 is .02 lower.
_NEIGHBOURS = 2
_MAX_SIDE = 600
# A longer preamble is a text of its own, not the title and date of the conversation.
_MAX_PREAMBLE = 300
# Labels that recur like names but are not speakers.
# fmt: off
_NO_SPEAKERS = frozenset((
    "q", "a", "f", "question", "answer", "frage", "antwort", "note", "notes", "tip", "hint", "hinweis",
    "warning", "important", "example", "beispiel", "input", "output", "explanation", "pros", "cons", "todo",
    "action", "decision", "result", "info", "error", "debug", "trace", "warn", "fatal", "critical", "notice",
    "term", "definition", "before", "after", "problem", "solution", "front", "back",
))
# fmt: on


def _stamps() -> tuple[str, str]:
    """Patterns of a time, and of a date and time before a speaker."""
    half = r"[AaPp]\.?\s?[Mm]\.?|[صم]"  # of the day
    time = rf"(?:(?:上午|下午|오전|오후|午前|午後)\s?)?\d{{1,2}}[:.]\d\d(?:[:.]\d\d)?(?:\s?(?:{half}))?"
    date = r"\d{1,4}[-./]\s?\d{1,2}[-./]\s?\d{1,4}\.?"
    stamp = (
        rf"\[[^\]\n]{{0,30}}{time}[^\]\n]{{0,20}}\]\s*(?:[-–—]\s+)?"
        rf"|(?:{date}[,،]?\s+(?:(?:à|um|klo|kl\.|les|alle)\s+)?)?{time}\s+(?:[-–—]\s+)?"
    )
    return time, stamp


@cache  # Compiled at first use, not at start-up.
def _label() -> re.Pattern[str]:
    """A line that begins a turn. Groups: `stamp`, `time` or `line`, `bold`, `name`."""
    time, stamp = _stamps()
    name = r"[^\W\d_][\w.'’-]*+(?: [\w.'’&-]++){0,3}+|[+~][\w ()-]{3,30}"
    after = rf"(?:\s?\((?P<%s>[^)\n]{{0,30}}{time}[^)\n]{{0,20}})\))?:"
    # "Ada Lee   0:03", or "Ada Lee" above "Today at 10:14 AM"; the text is below, and no further time.
    day = r"(?:(?:[^\W\d_]{2,12}(?: (?:at|um|à))?|\d{1,4}[-./]\d{1,2}[-./]\d{1,4},?) )?"
    clock = time.replace("[:.]", ":")  # 2.50 may be a price, or a version
    line = rf"(?:(?: {{2,}}|\t)|[ \t]*\r?\n{day}){clock}(?=[ \t]*\r?\n[ \t]*\S)"
    line += rf"(?![ \t]*\r?\n[^\n]*{clock}[ \t]*\r?(?:\n|\Z))"
    alone = rf"(?:{after % 'time'}|(?P<line>{line}))"
    # Zoom: "12:03:11 From Ada Lee to Everyone: …", always with seconds
    sender = r"(?:(?<=:\d\d:\d\d\s)|(?<=:\d\d:\d\d\s\s))(?P<zoom>From[ \t]{1,3})"
    name = rf"(?(zoom)[^\s:][^:\n]{{0,60}}?(?=[ \t]{{1,3}}to[ \t])|(?:{name}))"
    return re.compile(
        rf"^[\u200e\u200f]?(?P<stamp>{stamp})?(?(stamp)(?:{sender})?)"
        rf"(?P<bold>\*\*|__)?(?P<name>{name})(?(zoom)[ \t]+to[ \t][^:\n]{{1,80}}:|"
        rf"(?(bold)(?::(?P=bold)|(?P=bold){after % 'bold_time'})|{alone}))(?=\s)",
        re.MULTILINE,
    )


def in_turns(text: str, blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks of a text; those of a conversation are cut at turns, with one section per chunk."""
    starts = _turns(text)
    if not starts:
        yield from blocks
        return
    sections = _sections(text, starts)
    section = next(sections)
    for block in blocks:
        start = block.start
        while start < block.end:
            if start >= section.end:
                section = next(sections)
            end = min(block.end, section.end)
            yield replace(
                block, start=start, end=end, section=section.section, nearby=section.nearby, is_soft=False
            )
            start = end


def _turns(text: str) -> list[int]:
    """The starts of the turns of a conversation, including headings right above; empty for other texts."""
    if text.count(":", 0, _BEGINNING) < _MIN_TURNS:
        return []
    found = list(_labels(text, _BEGINNING))
    kinds = Counter(map(_kind, found))
    kind = max(kinds, key=kinds.__getitem__, default="")
    labels = [label for label in found if _kind(label) == kind]
    names = Counter(label["name"].casefold() for label in labels)
    if not _are_speakers(names) or (kind != "time" and not _is_talk(text[:_BEGINNING], labels, kind)):
        return []
    starts: list[int] = []
    for label in _labels(text, len(text)):
        if _kind(label) == kind and (kind == "time" or names[label["name"].casefold()] > 1):
            starts.append(_with_headings(text, label.start(), starts[-1] if starts else 0))
    return starts


def _labels(text: str, end: int) -> Iterator[re.Match[str]]:
    """The labels before `end`. Matches at line starts only, twice as fast as `finditer`."""
    at = 0
    while True:
        label = _label().match(text, at, end)
        if label:
            yield label
            at = label.end()
        at = text.find("\n", at, end) + 1
        if not at:
            return


def _kind(label: re.Match[str]) -> str:
    if label["stamp"] or label["time"] or label["bold_time"] or label["line"]:
        return "time"
    return "bold" if label["bold"] else "plain"


def _are_speakers(names: Counter[str]) -> bool:
    """Whether labels are speakers: at least two recur, and they have most of the turns."""
    regular = [times for name, times in names.items() if times > 1 and name not in _NO_SPEAKERS]
    turns = names.total()
    return len(regular) > 1 and turns >= max(_MIN_TURNS, 2 * len(names)) and sum(regular) * 5 >= turns * 4


def _is_talk(text: str, labels: Sequence[re.Match[str]], kind: str) -> bool:
    """Whether labels without times belong to a dialogue: most turns are sentences, and one is a question.

    Settings and records repeat their keys as well, records in the same order.
    """
    ends = [*(label.start() for label in labels[1:]), len(text)]
    said = [text[label.end() : end].strip() for label, end in zip(labels, ends, strict=True)]
    sentences = sum(turn.endswith((*".!?…。！？", *"\"'”’»)]*")) for turn in said)
    names = [label["name"] for label in labels]
    distinct = len(set(names))
    are_records = distinct > 2 and names == (names[:distinct] * len(names))[: len(names)]
    lines = sum(not line.isspace() for line in text.splitlines(keepends=True))
    is_dense = kind == "bold" or 2 * len(labels) >= lines
    asks = any("?" in turn or "？" in turn for turn in said)
    return asks and is_dense and not are_records and 2 * sentences >= len(said)


def _with_headings(text: str, start: int, above: int) -> int:
    """The start of a turn including headings right above it, such as the day; at least `above`."""
    at = start
    while at > above:
        line_start = text.rfind("\n", above, at - 1) + 1 or above
        line = text[line_start:at]
        if heading_of(line):
            start = line_start
        elif line.strip():
            break
        at = line_start
    return start


def _sections(text: str, starts: Sequence[int]) -> Iterator[Block]:
    """The range of each chunk, which may be cut later. `nearby`: the preamble and the turns around it."""
    first = starts[0]
    is_title = first <= _MAX_PREAMBLE and not _is_notice(text[:first])
    preamble = (0, first) if is_title else (0, 0)
    bounds = [*starts, len(text)]
    # Where another conversation begins, perhaps in another file of an archive.
    walls = [0, *(start for start in starts if text.startswith("# ", start)), len(text)]
    if preamble == (0, 0) and first:
        yield Block(0, first)
    for number, (begin, end) in enumerate(_shared(text, bounds), 1):
        wall = bisect_right(walls, bounds[begin])
        earliest = max(bounds[max(0, begin - _NEIGHBOURS)], bounds[begin] - _MAX_SIDE, walls[wall - 1])
        latest = min(bounds[min(end + _NEIGHBOURS, len(starts))], bounds[end] + _MAX_SIDE, walls[wall])
        nearby = (
            preamble if begin else (0, 0),
            (earliest, bounds[begin]),
            (bounds[end], latest),
        )
        start = preamble[0] if not begin and preamble[1] else bounds[begin]
        yield Block(start, bounds[end], number, nearby=tuple(near for near in nearby if near[0] < near[1]))


def _is_notice(preamble: str) -> bool:
    """Whether each line has a time but no speaker, like a messenger's notices above the first turn."""
    lines = [line for line in preamble.splitlines() if line.strip()]
    stamp = re.compile(rf"[\u200e\u200f]?(?:{_stamps()[1]})")
    return bool(lines) and all(map(stamp.match, lines))


def _shared(text: str, bounds: Sequence[int]) -> Iterable[tuple[int, int]]:
    """The turns of each chunk, as (first, end). A heading begins a new chunk."""
    begin = 0
    for turn in range(1, len(bounds) - 1):
        if bounds[turn + 1] - bounds[begin] > _SHARED or text.startswith("#", bounds[turn]):
            yield begin, turn
            begin = turn
    yield begin, len(bounds) - 1
