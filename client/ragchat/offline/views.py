"""Views of a document's structure: all rows of a table, all items of a list, or an outline. Pure.

A false match is worse than a miss: patterns match from the first word on, and memory must have a document of
the name they find.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import inf

from ragchat.grounding.evidence import Evidence, names_of
from ragchat.grounding.pieces import Span, blanked, sentence_spans
from ragchat.grounding.question import Word
from ragchat.grounding.words import index_terms
from ragchat.offline.cards import ELLIPSIS
from ragcommon.contract.search import Hit
from ragcommon.text.columns import csv_header
from ragcommon.text.lists import introduction, lists_in
from ragcommon.text.places import Place
from ragcommon.text.rules import FENCE, ITEM, heading_of, is_row, is_rule, searchable
from ragconfig.settings import packaged

MAX_ENTRIES = 12
MAX_ROWS = 40
# A point with fewer words is joined with what follows; one with more characters gets no further item.
MIN_WORDS = 3
MAX_POINT = 200
# The minimum share of the question's words that a list and its names contain.
MIN_COVERAGE = 0.5

_FILE = packaged("views.toml")
_BEGIN = rf"^\W*(?:(?:{_FILE['polite']})\W+)*"
_PATTERNS = {
    kind: [re.compile(_BEGIN + pattern.format(**_FILE["names"]), re.IGNORECASE) for pattern in _FILE[kind]]
    for kind in ("lists", "filters", "several", "outlines", "contents")
}
_ARTICLE = re.compile(r"^(?:the|an?|my|our|your|this|der|die|das|den|dem|[md]eine?[mnrs]?)\s+", re.IGNORECASE)
_KIND = r"(?:document|file|notes?|page|dokuments?|datei|notiz|seite)"
_OF_A_KIND = re.compile(rf"{_KIND}\s+(?=\S)|(?<=\S)\s+{_KIND}$", re.IGNORECASE)
_MARK = re.compile(rf"^(?:{ITEM.pattern}(?:\[[ xX]\]\s)?|\s*(?:>|#{{1,6}}\s|\((?:\d{{1,2}}|[a-z])\)\s))")
_FENCED = re.compile(rf"^{FENCE.pattern}.*?(?:^ {{0,3}}\1[^\n]*|\Z)", re.MULTILINE | re.DOTALL)
# A line of code that defines nothing: a comment or a decorator.
_NO_DEFINITION = r"\s*(?:@|#[ !\[]|//|/?\*(?:[\s*/]|$)|--\s)"
_QUOTES = " \t?!,;:\"'`“”„‘’«»"


def asks_for_list(question: str, kind: str = "lists") -> bool:
    """Whether a question asks for all items of a list, or all rows of a table.

    With the kind "filters", for some rows; with "several", for things that a list may have.
    """
    return any(pattern.match(question) for pattern in _PATTERNS[kind])


def asks_for_outline(question: str) -> tuple[str, bool]:
    """The name of the document whose outline is asked for ("": none), and whether that is certain."""
    for kind, is_certain in (("outlines", True), ("contents", False)):
        for pattern in _PATTERNS[kind]:
            if found := pattern.match(question):
                name = bare(found["name"])
                without_kind = _OF_A_KIND.sub("", name)
                return bare(without_kind), is_certain or without_kind != name
    return "", False


def bare(name: str) -> str:
    """A name without quotation marks and article."""
    return _ARTICLE.sub("", name.strip(_QUOTES).removesuffix(".")).strip(_QUOTES)


def is_name(name: str, other: str) -> bool:
    """Whether two names have the same words, ignoring order, case and endings."""
    return name_terms(name) == name_terms(other) != frozenset()


def name_terms(name: str) -> frozenset[str]:
    """The terms of a name; any sign separates words, as in file names."""
    return frozenset(index_terms(re.sub(r"[\W_]+", " ", name)))


def find_lists(evidence: Sequence[Evidence]) -> Iterator[tuple[Evidence, int]]:
    """The passages with a list that a question may ask for, and the offset of its best line."""
    for one in evidence:
        text, is_csv = one.hit.full_text, one.hit.is_csv
        body = [piece for piece in one.pieces if not heading_of(text[piece.start : piece.end])]
        lines = [piece for piece in body if is_csv or is_entry(text[piece.start : piece.end])]
        if len(lines) < 2 or one.coverage(one.pieces, one.question.judged) < MIN_COVERAGE:
            continue
        # The question may be about text below the same heading; text right above a list introduces it.
        best = max(range(len(body)), key=lambda at: one.mean([body[at].matches]))
        if any(piece in lines for piece in body[best : best + 2]):
            yield one, max(lines, key=lambda piece: one.late([piece])).start


def all_of_list(document: str, line: int, hit: Hit, words: Sequence[Word]) -> tuple[list[Span], int] | None:
    """The whole list or table around a line of a document (from 1), with its header.

    These are the spans of its lines in the document, and the number of those left out.
    If some of these words of the question occur in some entries only, the other entries are left out. The
    term of a word may be a pair of terms, joined by a space.
    """
    lines, is_csv = list(line_spans(document)), hit.is_csv
    texts = [document[slice(*span)] for span in lines]
    around = [] if is_csv else [one for one in lists_in(texts) if one.first < line <= one.last + 1]
    if not (is_csv or around):
        return None
    starts = [*range(len(lines) + 1)] if is_csv else [*around[-1].entries, around[-1].last + 1]
    parts = [(lines[at][0], lines[below - 1][1]) for at, below in pairwise(starts)]
    entries = [(at, at + len(entry)) for at, stop in parts if (entry := document[at:stop].rstrip())]
    top = csv_header(document)[1] if is_csv else 0
    size = sum(start < top for start, _ in entries) or 2 * is_rule(document[slice(*entries[:2][-1])])
    header, entries = entries[:size], entries[size:]
    begin = lines[introduction(texts, starts[0])][0]
    intro = document[begin : header[-1][1] if header else lines[starts[0]][0]]
    named = _terms(f"{names_of(hit)} {intro}")
    telling = [word for word in words if not word.is_general and not word.is_in(named)]
    rows = [(span, _terms(document[slice(*span)]) if telling else set[str]()) for span in entries]
    wanted = [word for word in telling if any(word.is_in(terms) for _, terms in rows)]
    kept = [span for span, terms in rows if all(word.is_in(terms) for word in wanted)]
    is_list = len(kept) > 1 or (kept and any(" " in word.text for word in wanted))
    return ([*header, *kept[:MAX_ROWS]], max(0, len(kept) - MAX_ROWS)) if is_list else None


def _terms(text: str) -> set[str]:
    """The terms of a text and the pairs of neighbouring ones."""
    found = index_terms(text)
    return {*found, *map(" ".join, pairwise(found))}


def is_entry(line: str) -> bool:
    """Whether a line is a row or begins an item in Markdown; other marks are often those of sections."""
    return is_row(line) or ITEM.match(line) is not None


@dataclass(frozen=True)
class OutlineEntry:
    """A heading ("" for a paragraph) with its `level` (from 1), and the span of its point, maybe empty."""

    heading: str
    level: int
    sentence: Span


_Heading = tuple[str, int, int, int]  # its text and level; where its line, and what follows it, begins


def outline(document: str, places: Sequence[Place] = (), *, is_code: bool = False) -> list[OutlineEntry]:
    """The headings of a document, each with the sentence that follows it; else its paragraphs.

    `places` are the lines and paths of headings that memory found in a text that is not Markdown. Those of
    code are its symbols: their entries are the lines that define them.
    """
    if is_code and len(places) > 1 and not any(", " in path or " > " in path for _, path in places):
        return list(_symbols(document, places))
    text = blanked(document, map(re.Match.span, _FENCED.finditer(document)))
    headings = [] if is_code else list(_headings(text))
    headings = headings if len(headings) > 1 else list(_placed(text, places))
    if len(headings) < 2:
        headings, stop = [], 0
        for start, end in (found.span() for found in re.finditer(r"\S(?:.|\n(?!\s*\n))*", text)):
            # A fragment belongs to the paragraph that follows it.
            if not headings or not _is_fragment(text[headings[-1][2] : stop]):
                headings.append(("", 1, start, start))
            stop = end
    ends = [*(start for _, _, start, _ in headings[1:]), len(document)]
    entries = [
        OutlineEntry(name, level, _point(text, start, end))
        for (name, level, _, start), end in zip(headings, ends, strict=False)
    ]
    return [entry for entry in entries if entry.heading or entry.sentence[0] < entry.sentence[1]]


def headings_in(chunks: Sequence[Hit]) -> list[Place]:
    """The first lines and paths of the headings in the chunks of a document, in the order of their lines."""
    ordered = sorted(chunks, key=lambda hit: hit.start_line)
    every = [(hit.heading_at(n), n) for hit in ordered for n in range(hit.start_line, hit.end_line + 1)]
    return sorted((line, path) for path, line in dict(reversed(every)).items() if path)


def highest(entries: Sequence[OutlineEntry], limit: int = MAX_ENTRIES) -> list[OutlineEntry]:
    """The highest headings, in document order."""
    ranked = sorted(range(len(entries)), key=lambda place: entries[place].level)[:limit]
    return [entries[place] for place in sorted(ranked)]


def _headings(document: str) -> Iterator[_Heading]:
    for start, end in line_spans(document):
        if heading := heading_of(document[start:end]):
            yield heading[1].strip(" #*_"), heading[0], start, end


def _placed(document: str, places: Sequence[Place]) -> Iterator[_Heading]:
    lines = list(line_spans(document))
    for line, path in places:
        name, (start, end) = path.rpartition(" > ")[2], lines[line - 1]
        # Text may follow in the line of the heading.
        title = re.compile(rf".*?{re.escape(name)}[\s.:–—-]*").match(document, start, end)
        yield name, path.count(" > ") + 1, start, title.end() if title else end


def _symbols(document: str, places: Sequence[Place]) -> Iterator[OutlineEntry]:
    """The lines that define symbols, below their comments and decorators; parameters may take several."""
    lines = list(line_spans(document))
    for (line, symbol), (below, _) in zip_longest(places, places[1:], fillvalue=(len(lines) + 1, "")):
        names, own = re.findall(r"\w+", symbol) or [""], lines[line - 1 : max(line, below - 1)]
        defining = re.compile(rf"(?!{_NO_DEFINITION}).*\b{names[-1]}\b")
        start, end = next((span for span in own if defining.match(document, *span)), own[0])
        if document.endswith("(", start, end):
            end = next((stop for at, stop in own if at > end and document[at:stop].lstrip()[:1] == ")"), end)
        yield OutlineEntry("", len(names), (start, min(end, start + MAX_POINT)))


def _point(document: str, start: int, end: int) -> Span:
    """The first sentence, list or row of a table; with what comes next if that is a fragment."""
    begin = stop = start
    lines = [(start + first, start + last) for first, last in line_spans(document[start:end])]
    place = 0
    while place < len(lines) and (begin == stop or _is_fragment(document[begin:stop])):
        first, stop_of_line = lines[place]
        line, place = document[first:stop_of_line], place + 1
        if not _is_text(line):
            continue
        begin = first if begin == stop else begin
        if is_entry(line):
            texts = [document[slice(*span)] for span in lines[place - 1 : place + MAX_POINT]]
            last = max(one.last for one in lists_in(texts, inf) if not one.first)
            shown = lines[place - 1 : place + last]
            stops = [stop for begins, stop in shown if document[begins:stop].strip()]
            enough = first if is_row(line) else first + MAX_POINT
            return begin, next((stop for stop in stops if stop >= enough), stops[-1])
        while (
            place < len(lines) and _is_text(below := document[slice(*lines[place])]) and not is_entry(below)
        ):
            place, stop_of_line = place + 1, lines[place][1]
        for _, last in sentence_spans(document[first:stop_of_line]):
            stop = first + last
            if not _is_fragment(document[begin:stop]):
                break
    return begin + len(document[begin:stop]) - len(document[begin:stop].lstrip()), stop


def _is_text(line: str) -> bool:
    return not line.lstrip().startswith("<!--") and re.search(r"\w", line) is not None


def _is_fragment(text: str) -> bool:
    """Whether a text has too few words for a point, or announces what follows it."""
    return text.rstrip().endswith(":") or len(searchable(text).split()) < MIN_WORDS


def readable(document: str, span: Span) -> str:
    """A point as one line, without the marks of lists, quotations and tables."""
    text, in_list = "", False
    for line in document[slice(*span)].split("\n"):
        if is_row(line):
            line = ", ".join(cell.strip() for cell in line.strip().strip("|").split("|"))
        is_item, bare = ITEM.match(line) is not None, " ".join(_MARK.sub("", line, count=1).split())
        text = f"{text.rstrip('.,;')}; {bare}" if is_item and in_list else f"{text} {bare}".strip()
        in_list = in_list or is_item
    following = document[span[1] :].lstrip("\n").partition("\n")[0]
    return f"{text} {ELLIPSIS}" if in_list and ITEM.match(following) else text


def line_spans(document: str) -> Iterator[Span]:
    """The span of each line, without the line break."""
    return (line.span() for line in re.finditer("^.*$", document, re.MULTILINE))
