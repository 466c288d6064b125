"""Windows: the part of each passage that answers best, and which of them are shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf

from ragchat.grounding.evidence import Evidence, Piece
from ragchat.grounding.pieces import MAX_LINE, Span
from ragchat.grounding.question import Word
from ragchat.grounding.words import index_terms
from ragcommon.contract.search import Hit
from ragcommon.text.rules import FENCE, MAX_HEADING, heading_of, heading_text, is_row, is_rule

# Characters of the windows of the first three cards, which fill one terminal screen. Later ones are as long
# as the third.
SIZES = (900, 470, 330)
SHOWN = len(SIZES)
# If no passage has the question's words, up to WEAK_WINDOWS shorter windows are shown.
WEAK_SIZE = 340
WEAK_WINDOWS = 5
# The minimum score of such a window relative to the first one.
MIN_NEAREST_SHARE = 0.5
# Weights of a window's score, relative to its late interaction (1).
W_BEST = 0.3  # score of its best piece
W_OWN = 0.06  # coverage by the piece alone, so that one below a title is not as good as the title
W_BELOW = 0.1  # coverage by the titles above, divided by the distance: a section begins with its topic
W_PAIRS = 0.1  # pairs of adjacent words of the question, such as "Laptop 20"
W_DEFINES = 3.0  # a term or symbol of the question is defined there, if it asks for that
W_NUMBER = 0.5  # a digit in the piece, if the question asks for a number
W_COVERAGE = 0.3  # coverage of the question's words
W_EARLY = 0.3  # the best piece is in the first half, so that what follows is visible
W_TEST = 0.3  # subtracted from tests of code, if the question is not about tests
W_RANK = 0.3  # divided by the rank of the passage in memory's order
# The share of the window size that is filled before neighbours are added.
CORE = 0.85
# The share of its score that a header of a mail keeps: the body answers more often.
W_MAIL = 0.95
# The minimum score of a card relative to the best one to be shown at once.
MIN_SHARE = 0.6
# A window is like another one if they share at least this part of its terms.
ALIKE_SHARE = 0.8

_COMMENT = re.compile(r"\s*(?://|#(?![!\[])|--\s|;|/?\*)")
# The place of the headers of a mail, and such a line of it or a salutation.
_MAIL_HEADER = re.compile(r".*(?:headers|message \d+)\n(?:(?:From|To|Cc|Date|Subject): |.{,40},$)")
_DEFINED = re.compile(r"(?i)\b(?:define[sd]|declared|implemented|(?:defin|deklar|implement)iert|what does)\b")
# A line that introduces the text below it: a question, or a few words, parted from what is above, with a
# sentence below.
_TITLE = re.compile(
    r"(?<![^\n])[ *_]*(?:[^\n.!]{1,120}[?？][ *_]*(?:\n|\Z)"
    r"|(?<![^\n]\n)[^\W\da-z_][^.:;!?|\n]{0,38}\w[ *_]*\n+[^\n]{40,}[.!?][ *_]*(?:\n|\Z))"
)
# The year, the month, the day or the version in the name of a file; not a number such as 12024.
_VERSION = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?:-(?:0[1-9]|1[0-2])(?:-\d\d)?)?(?!-?\d)|(?<![^\W_])v\d+(?:\.\d+)*"
)
# What surrounds a title in its line, or underlines it.
_DRAWN = " .:,=*~#^+_─═━-"


@dataclass(frozen=True)
class Window:
    """The pieces of a passage from `first` to `last` (inclusive); `best` is the most likely answer.

    If it shows a list, `list_end` is the last line of that, from 1, and it is not shortened to fit a card.
    """

    evidence: Evidence
    first: int
    last: int
    best: int
    score: float = 0.0
    list_end: int = 0

    @property
    def hit(self) -> Hit:
        return self.evidence.hit

    @property
    def pieces(self) -> Sequence[Piece]:
        return self.evidence.pieces[self.first : self.last + 1]

    @property
    def span(self) -> Span:
        """Offsets in the passage's `full_text`, of whole lines unless they are long."""
        text, start, end = f"\n{self.hit.full_text}\n", self.pieces[0].start, self.pieces[-1].end
        # The lines in which it begins and ends.
        first, last = ((text.rindex("\n", 0, at + 1), text.index("\n", at + 1) - 1) for at in (start, end))
        begins_long, ends_long = (stop - begin > MAX_LINE for begin, stop in (first, last))
        return start if begins_long else first[0], end if ends_long else last[1]

    @property
    def text(self) -> str:
        return self.hit.full_text[slice(*self.span)]

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(index_terms(self.text))

    def is_like(self, other: Window) -> bool:
        return len(self.terms & other.terms) >= ALIKE_SHARE * len(self.terms)

    def overlaps(self, other: Window) -> bool:
        return self.evidence is other.evidence and self.first <= other.last and other.first <= self.last


def best_window(evidence: Evidence, size: int) -> Window | None:
    """The best run of at most `size` characters, or a longer piece.

    On a tie, one that begins below the front matter, or the longer run.
    """
    hit, pieces = evidence.hit, evidence.pieces
    scores = _piece_scores(evidence)
    names, *weighed = [evidence.weigh(piece, W_COVERAGE) for piece in (evidence.names, *pieces)]
    is_unasked = hit.is_test and "test" not in evidence.question.text.lower()
    of_rank = W_RANK / max(1, hit.rank) - W_TEST * is_unasked
    best, most, body = None, (-inf, False, 0), hit.front_matter
    for first in range(len(pieces)):
        start, highest, top = pieces[first].start, names, first
        for last in range(first, len(pieces)):
            stop = pieces[last].end
            if last > first and stop - start > CORE * size:
                break
            # Each row of a table is about something else.
            held = [*map(max, names if evidence.is_table else highest, weighed[last])]
            highest = max(highest, held, key=sum)
            if scores[last] > scores[top]:
                top = last
            early = W_EARLY * (last + 1 == len(pieces) or 2 * pieces[top].start <= start + stop)
            score = of_rank + sum(highest) + W_BEST * scores[top] + early
            if (found := (score, start >= body, last - first)) > most:
                best, most = Window(evidence, first, last, top, score), found
    return _expanded(best, size) if best else None


# A passage whose best window turns out too long is searched again for a shorter one.
@lru_cache(100)
def _piece_scores(evidence: Evidence) -> list[float]:
    """How likely each piece is the answer, also by what is above it: headings or a question, which have 0."""
    hit, asks_number = evidence.hit, evidence.question.asks_number
    scores, above, below = list[float](), list[Piece](), 1  # how many pieces below the titles
    for place, piece in enumerate(evidence.pieces):
        text = hit.full_text[piece.start : piece.end].rstrip().rstrip("*_").rstrip()
        is_mail = bool(hit.places) and _MAIL_HEADER.match(f"{hit.places[0][1]}\n{text}") is not None
        is_title = _is_heading(evidence, place) or _is_header(evidence, place) or text.endswith(("?", "？"))
        above = ([piece] if below else [*above, piece]) if is_title or is_mail else above
        below = 0 if is_title or is_mail else below + 1
        own = W_OWN * evidence.mean([piece.held]) + W_NUMBER * (asks_number and any(map(str.isdigit, text)))
        own += W_PAIRS * piece.pairs + W_DEFINES * (evidence.defines(piece) or bool(defined(evidence, place)))
        if below and any(piece.held) and not evidence.is_table:
            own += W_BELOW / below * evidence.mean([one.held for one in above])
        scores.append(0 if is_title else (W_MAIL if is_mail else 1) * (evidence.late([piece, *above]) + own))
    return scores


def defined(evidence: Evidence, place: int) -> list[Word]:
    """The words of the question that are symbols which a piece defines, if it asks where, or what they do."""
    hit, question, piece = evidence.hit, evidence.question, evidence.pieces[place]
    if not hit.is_code or not _DEFINED.search(question.text):
        return []
    text, path = hit.full_text[piece.start : piece.end], path_of(evidence, place)
    symbols = {*re.findall(r"\w+", text)}.intersection(re.findall(r"\w+", path))
    return [word for word in question.words if word.text.rpartition(".")[2] in symbols]


def _is_header(evidence: Evidence, place: int) -> bool:
    """Whether a piece is the header of a Markdown table, the line below it, or the header of a CSV file."""
    lines = [evidence.hit.full_text[one.start : one.end] for one in evidence.pieces[place : place + 2]]
    start, end = evidence.hit.columns
    return start <= evidence.pieces[place].start < end or (is_row(lines[0]) and any(map(is_rule, lines)))


def runs(evidence: Evidence, size: int) -> Iterator[Window]:
    """The longest window of at most `size` characters from each piece on, without windows inside others."""
    pieces, scores, end = evidence.pieces, _piece_scores(evidence), -1
    for first in range(len(pieces)):
        last = first
        while last + 1 < len(pieces) and pieces[last + 1].end - pieces[first].start <= size:
            last += 1
        if last > end:
            best = max(range(first, last + 1), key=scores.__getitem__)
            yield Window(evidence, first, _without_headings(evidence, last, best), best)
            end = last


def _expanded(window: Window, most: int) -> Window:
    """Extend a window to `most` characters: upwards by the pieces that belong to it, and downwards."""
    evidence, pieces, first, last = window.evidence, window.evidence.pieces, window.first, window.last

    def fits(first: int, last: int) -> bool:
        return pieces[last].end - pieces[first].start <= most

    while first > 0 and fits(first - 1, last) and _belong_together(evidence, first - 1):
        first -= 1
    while last + 1 < len(pieces) and fits(first, last + 1):
        last += 1
    shown = path_of(evidence, window.best)  # by the location
    while first < window.best and _is_heading(evidence, first) and shown.startswith(path_of(evidence, first)):
        first += 1
    return Window(evidence, first, _without_headings(evidence, last, window.best), window.best, window.score)


def _without_headings(evidence: Evidence, last: int, best: int) -> int:
    """The last piece of a window that ends neither with titles nor before its best piece."""
    while last > best and _is_title(evidence, last):
        last -= 1
    return last


def _is_title(evidence: Evidence, place: int) -> bool:
    """Whether a piece is a heading that its passage names, introduces the text below it, or heads a table."""
    hit, start = evidence.hit, evidence.pieces[place].start
    is_line = not hit.is_code and _TITLE.match(hit.full_text, start) is not None
    return is_line or _is_named(evidence, place) or _is_header(evidence, place)


def _is_heading(evidence: Evidence, place: int) -> bool:
    """Whether a piece is a heading. In code and settings, `#` begins a comment."""
    hit, piece = evidence.hit, evidence.pieces[place]
    is_atx = not hit.is_code and heading_of(hit.full_text[piece.start : piece.end]) is not None
    return is_atx or _is_named(evidence, place)


def _is_named(evidence: Evidence, place: int) -> bool:
    """Whether a piece is a heading that its passage names, a line of one, or a rule above or below."""
    hit, piece = evidence.hit, evidence.pieces[place]
    if hit.is_code or piece.end - piece.start > MAX_HEADING or not (path := path_of(evidence, place)):
        return False
    text = hit.full_text[piece.start : piece.end]
    _, title = heading_of(text) or (0, heading_text(text))
    bare = " ".join(title.split()).strip(_DRAWN)
    names = (name.rstrip(_DRAWN) for name in path.split(" > "))
    return any(name.startswith(bare) or name.endswith(bare) for name in names)


def path_of(evidence: Evidence, place: int) -> str:
    """The path of headings above a piece, its own included."""
    start = evidence.pieces[place].start
    return evidence.hit.heading_at(lines_of(evidence.hit, start, start)[0])


def lines_of(hit: Hit, start: int, end: int) -> Span:
    """The first and last line, in the document, of a part of a passage."""
    context = len(hit.context)
    first = hit.text_line + hit.text.count("\n", 0, max(0, start - context))
    return first, first + hit.full_text.count("\n", max(start, context), max(end, context))


def _belong_together(evidence: Evidence, place: int) -> bool:
    """Whether a piece and the next one belong together: a comment and its setting, a term and its text,
    a sentence and the code that it introduces, a heading and its section, a call and its arguments."""
    text, is_code = evidence.hit.full_text, evidence.hit.is_code
    above, below = evidence.pieces[place], evidence.pieces[place + 1]
    upper, lower = text[above.start : above.end], text[below.start : below.end]
    if upper.rstrip().endswith(":") or _is_heading(evidence, place) or _is_title(evidence, place):
        return not above.start < evidence.hit.front_matter <= below.start
    if text.count("\n", above.end, below.start) > 1:
        return False
    is_indented = len(lower) - len(lower.lstrip()) > len(upper) - len(upper.lstrip())
    is_open = upper.count("(") > upper.count(")") or (FENCE.match(upper) and not FENCE.match(lower))
    return bool(is_open or (_COMMENT.match(upper) if is_code else is_indented))


def ranked(evidence: Sequence[Evidence]) -> list[Window]:
    """The best window of each passage, best first."""
    return sorted(filter(None, (best_window(one, SIZES[0]) for one in evidence)), key=lambda one: -one.score)


def chosen(largest: Sequence[Window]) -> tuple[list[Window], list[Window]]:
    """Split the best windows (best first) into those that are shown at once and further ones.

    Windows that repeat others are dropped.
    """
    shown, further = list[Window](), list[Window]()
    for window in _newest_first(largest):
        size = SIZES[min(len(shown), SHOWN - 1)]
        if not window.list_end and window.first < window.last and len(window.text) > size:
            window = best_window(window.evidence, size) or window
        adds = len(shown) < SHOWN and window.score >= MIN_SHARE * largest[0].score
        if not any(_repeats(window, other) for other in (*shown, *further)):
            (shown if adds else further).append(window)
    return shown, further


def _repeats(window: Window, other: Window) -> bool:
    """Whether `other` has almost all terms of `window`, with those of its best piece and all numbers."""
    if not window.is_like(other):
        return False
    piece = window.evidence.pieces[window.best]
    said = {*index_terms(window.hit.full_text[piece.start : piece.end])}
    return not any(term in said or re.search(r"\d", term) for term in window.terms - other.terms)


def _newest_first(windows: Sequence[Window]) -> Sequence[Window]:
    """Put the newest version of a document where the first one is."""
    found: list[Window] = []
    for window in windows:
        found.insert(next((at for at, one in enumerate(found) if _is_newer(window, one)), len(found)), window)
    return found


def _is_newer(window: Window, other: Window) -> bool:
    """Whether a window is that of a later version, by the names of the files, with as many of the words."""
    (name, own), (others_name, theirs) = _version(window.hit.uri), _version(other.hit.uri)
    if name != others_name or own <= theirs or not window.is_like(other):
        return False
    words = [word for word in window.evidence.question.words if word.is_in(other.evidence.terms)]
    return all(word.is_in(window.evidence.terms) and not word.has_digit for word in words)


@lru_cache(100)
def _version(uri: str) -> tuple[str, list[list[int]]]:
    """The URI without the versions in it, and the numbers of these."""
    return _VERSION.sub("", uri), [[*map(int, re.findall(r"\d+", one))] for one in _VERSION.findall(uri)]


def nearest(windows: Iterable[Window]) -> list[Window]:
    """The best windows that do not overlap, from at most SHOWN documents, best first."""
    found: list[Window] = []
    for window in sorted(windows, key=lambda window: -window.score):
        documents = {one.hit.document_id for one in found} | {window.hit.document_id}
        if len(documents) > SHOWN or any(window.overlaps(other) for other in found):
            continue
        if len(found) == WEAK_WINDOWS or (found and window.score < MIN_NEAREST_SHARE * found[0].score):
            break
        found.append(window)
    return found
