"""Answers without a model to questions for a whole list, or for the outline of a document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import anyio
from msgspec.structs import replace

from ragchat.answer import Answer, Candidate, Card
from ragchat.errors import NoDocumentMatches, RagChatError
from ragchat.grounding.evidence import Evidence
from ragchat.grounding.pieces import Span
from ragchat.grounding.question import Word
from ragchat.grounding.types import Citation
from ragchat.grounding.words import index_terms
from ragchat.memory.matching import match
from ragchat.memory.types import DocumentText
from ragchat.offline.answer import markdown, markdown_of
from ragchat.offline.cards import ELLIPSIS
from ragchat.offline.views import (
    MAX_ENTRIES,
    MAX_POINT,
    OutlineEntry,
    all_of_list,
    asks_for_list,
    asks_for_outline,
    bare,
    find_lists,
    headings_in,
    highest,
    is_entry,
    is_name,
    line_spans,
    name_terms,
    outline,
    readable,
)
from ragchat.turn.days import day_of, notes_of_period
from ragchat.turn.grounding import Grounding
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.retrieval import Memory, Retrieval
from ragchat.uris import exact_glob, short_names
from ragcommon.contract.documents import DocumentInfo
from ragcommon.contract.search import Hit, is_code
from ragcommon.text.places import file_name, within
from ragcommon.text.rules import counted
from ragconfig.settings import packaged

# A longer document is not read.
MAX_CHARACTERS = 1_000_000
# Passages with lists that are tried.
MAX_LISTS = 3
NUMBERED = re.compile(r"\b[^\W\d_]+ \d+\b(?![.,]\d)")
MAX_POINTS = 60  # of an outline
QUERY_CHARACTERS = 1000  # of a document, to find its chunks
# Passages and documents that are searched for a name.
NAMED_PASSAGES = 20
NAMED_DOCUMENTS = 50
_FILE = packaged("views.toml")
ASKING = frozenset(index_terms(_FILE["asking"]))
COMPARING = re.compile(_FILE["comparing"], re.IGNORECASE)
TAGGED = re.compile(_FILE["tagged"].format(**_FILE["names"]), re.IGNORECASE)
MAX_TAGGED = 40
# A line with three words, which is no heading, front matter, property or open checkbox.
TELLING = re.compile(r"\s*+(?:[-*+>] )?+(?!\[ \]|#+ |[\w-]+::? |\W*$)(?:[^\w\s]*+\w\S*+\s++){2}[^\w\s]*+\w")
MAX_CHUNKS = 100  # of a document, for the chunk ids of citations; memory returns no more at once


async def view_of(
    question: str, grounding: Grounding, retrieval: Retrieval, memory: Memory, limits: RetrievalLimits
) -> Answer | None:
    """The answer; None for other questions, without such a structure, or if memory fails."""
    try:
        with anyio.fail_after(limits.seconds):
            if tagged := await _tagged(question, retrieval, memory):
                return tagged
            if not retrieval.goes_on and (period := await _period(question, retrieval, memory)):
                return period
            compares = COMPARING.search(question) is not None
            if asks_for_list(question):
                return await _list(grounding.evidence, retrieval, memory, is_whole=compares)
            asks_for_rows = asks_for_list(question, "filters") and not compares
            if asks_for_rows and (rows := await _rows(grounding, retrieval, memory)):
                return rows
            return await _outline(question, retrieval, memory)
    except (RagChatError, TimeoutError):
        return None


async def _tagged(question: str, retrieval: Retrieval, memory: Memory) -> Answer | None:
    """The documents with the tag that a question names."""
    if (found := TAGGED.fullmatch(question)) is None:
        return None
    for tag in dict.fromkeys((found["tag"], found["tag"].lower(), found["tag"].capitalize())):
        page = await memory.documents(MAX_TAGGED, {"tags": tag})
        if not page.total:
            continue
        own = {hit.document_id: hit for hit in (await memory.query(tag, MAX_CHUNKS, {"tags": tag})).hits}
        lines, hits = list[str](), list[Hit]()
        names = short_names([(one.uri, one.title) for one in page.documents])
        for document, name in zip(page.documents, names, strict=True):
            hits += [own[document.document_id]] if document.document_id in own else []
            lines.append(f"- {name}" + f" [{len(hits)}]" * (document.document_id in own))
        lines += [f"- {ELLIPSIS} {page.total - len(names):,} more"] * (page.total > len(names))
        count = f"{counted(page.total, 'document')} {'is' if page.total == 1 else 'are'}"
        citations = [Citation.of(n, hit, "") for n, hit in enumerate(hits, 1)]
        return _answer("\n".join([f"{count} tagged {tag}:\n", *lines]), citations, hits, retrieval)
    return None


async def _period(question: str, retrieval: Retrieval, memory: Memory) -> Answer | None:
    """The notes of the week or month that is asked about, each with its first line that says something."""
    lines, hits, citations = list[str](), list[Hit](), list[Citation]()
    for own in await notes_of_period(question, memory):
        spans = [(hit, span) for hit in own for span in line_spans(hit.text) if span[0] < span[1]]
        hit, said = next(((hit, one) for hit, one in spans if TELLING.match(hit.text[slice(*one)])), spans[0])
        hits.append(hit)
        line = hit.text_line + hit.text.count("\n", 0, said[0])
        citations.append(Citation.of(len(hits), hit, hit.text[slice(*said)], lines=(line, line)))
        sentence = readable(hit.text, said)
        shown = sentence if len(sentence) <= MAX_POINT else f"{sentence[:MAX_POINT]}{ELLIPSIS}"
        lines.append(f"- **{day_of(hit.uri)}**: {shown} [{len(hits)}]")
    return _answer("\n".join(lines), citations, hits, retrieval) if hits else None


async def _rows(grounding: Grounding, retrieval: Retrieval, memory: Memory) -> Answer | None:
    """The rows that hold all that is asked, if the best passage is of a table that has others too."""
    best = grounding.evidence[:1]
    found = await _list(best, retrieval, memory) if best and best[0].hit.is_table else None
    return found if found and found.grounded and f"\n{ELLIPSIS}" in found.cards[0].text else None


async def _list(
    evidences: Sequence[Evidence], retrieval: Retrieval, memory: Memory, *, is_whole: bool = False
) -> Answer | None:
    """The list that is asked for, with all of its entries or those that hold what is asked.

    Of a list that is not in the best passage, it must be all that is asked.
    """
    for number, (evidence, place) in enumerate(islice(find_lists(evidences), MAX_LISTS)):
        answer = await _list_at(evidence, place, retrieval, memory, is_whole=is_whole)
        if answer and (answer.grounded or not number):
            return answer
    return None


async def _list_at(
    evidence: Evidence, place: int, retrieval: Retrieval, memory: Memory, *, is_whole: bool
) -> Answer | None:
    hit = evidence.hit
    whole = await memory.show(hit.document_id)
    line = hit.text_line + hit.full_text.count("\n", 0, place) - hit.context.count("\n")
    # The cells of a CSV file may have line breaks.
    is_broken = hit.is_csv and any(row.count('"') % 2 for row in whole.text.split("\n"))
    if is_broken or len(whole.text) > MAX_CHARACTERS:
        return None
    words = () if is_whole else [*evidence.question.words, *_numbered(evidence.question.text)]
    if (listed := all_of_list(whole.text, line, hit, words)) is None:
        return None
    answer = _listed(whole, hit, *listed, retrieval)
    terms = evidence.terms | {*index_terms(answer.cards[0].text)} | ASKING
    if not (missing := evidence.question.missing(terms)):
        return answer
    text = markdown(answer.cards, grounded=False, missing=missing)
    return replace(answer, text=text, citations=[], nearest=answer.citations, grounded=False, missing=missing)


def _numbered(question: str) -> list[Word]:
    """Names with their numbers, such as "case 1": a row may have the number with another name."""
    return [Word(one, frozenset((" ".join(index_terms(one)),)), 1) for one in NUMBERED.findall(question)]


def _listed(
    document: DocumentText, hit: Hit, shown: Sequence[Span], left_out: int, retrieval: Retrieval
) -> Answer:
    """Lines of a list or table with a passage `hit`, as one card."""
    text, end = "", 0
    for start, stop in shown:
        gap = "" if not text else "\n" if not document.text[end:start].strip() else f"\n{ELLIPSIS}\n"
        text, end = text + gap + document.text[start:stop], stop
    starts = [document.text.count("\n", 0, start) + 1 for start, _ in shown]
    # The list may begin and end outside of the passage.
    places = dict.fromkeys(place for one in starts for place in within(document.places, one, one))
    last = document.text.count("\n", 0, end) + 1
    citation = Citation.of(1, replace(hit, places=[*places] or hit.places), text, lines=(starts[0], last))
    following = document.text[end:].lstrip("\n").partition("\n")[0]
    if left_out:
        text += f"\n{ELLIPSIS} {left_out:,} more"
    elif (hit.is_csv and following) or is_entry(following):
        text += f"\n{ELLIPSIS}"
    card = Card(1, citation.location, hit.heading, text, (0, 0), hit.score, hit.chunk_id)
    return _answer(markdown_of(card), [citation], [hit], retrieval, [card])


async def _outline(question: str, retrieval: Retrieval, memory: Memory) -> Answer | None:
    name, is_certain = asks_for_outline(question)
    if not name_terms(name):
        return None
    same = await _documents(name, retrieval, memory, is_certain=is_certain)
    if len(same) != 1:
        return _several(name, same) if is_certain else None
    document = await memory.show(same[0].document_id)
    if len(document.text) > MAX_CHARACTERS:
        return None
    # Text from stdin has no title, and chunks without a word of the query may not be found.
    query = f"{document.title} {document.text[:QUERY_CHARACTERS]}"
    found = await memory.query(query, MAX_CHUNKS, {"uri": exact_glob(document.uri)})
    chunks = [hit for hit in found.hits if hit.document_id == document.document_id]
    if chunks and chunks[0].is_csv:
        rows = [span for span in line_spans(document.text) if span[0] < span[1]]
        shown_rows = rows[: MAX_ENTRIES + 1]  # with the header
        return _listed(document, chunks[0], shown_rows, len(rows) - len(shown_rows), retrieval)
    return _points(document, chunks, retrieval) if chunks else None


def _several(name: str, same: Sequence[DocumentInfo | Hit]) -> Answer | None:
    """The question which of the documents of a name is meant; None if their names do not tell them apart."""
    names = sorted({*short_names([(one.uri, one.title) for one in same])})
    if not names or len(names) < len(same) or not all(_has_name(one, name) for one in same):
        return None
    listed = [f"- {one}" for one in names[:MAX_ENTRIES]] + [f"- {ELLIPSIS}"] * (len(names) > MAX_ENTRIES)
    return Answer("\n".join([f"Several documents are called {name}. Ask for one of these:\n", *listed]))


def _points(document: DocumentText, chunks: Sequence[Hit], retrieval: Retrieval) -> Answer | None:
    """The headings of a document, or the lines that define symbols, as a list with citations."""
    of_code = is_code(document.uri, document.metadata)
    count = document.text.count("\n") + 1
    # The chunks may be of a longer text, if the document was changed in between.
    places = [place for place in headings_in(chunks) if place[0] <= count]
    entries = outline(document.text, places, is_code=of_code)
    if not entries:
        return None
    shown, lines, hits, citations = highest(entries, MAX_POINTS), list[str](), list[Hit](), list[Citation]()
    levels = sorted({entry.level for entry in shown})
    for entry in shown:
        sentence = readable(document.text, entry.sentence)
        if of_code and sentence:
            stop = entry.sentence[1]
            sentence = _as_code(sentence, is_cut=document.text[stop : stop + 1] not in ("", "\n"))
        parts = [f"**{entry.heading}**"] if entry.heading else []
        if sentence:
            hits.append(_passage(len(hits) + 1, document, entry, chunks))
            citations.append(_citation(len(hits), hits[-1], document, entry))
            parts.append(f"{sentence} [{len(citations)}]")
        between = " " if entry.heading.endswith("?") else ": "
        lines.append(f"{'  ' * levels.index(entry.level)}- {between.join(parts)}")
    if len(shown) < len(entries):
        lines.append(f"\n{len(shown)} of {len(entries):,} shown: the source of [1] has them all.")
    return _answer("\n".join(lines), citations, hits, retrieval)


def _as_code(line: str, *, is_cut: bool) -> str:
    """A line of code in Markdown."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    gap = " " * ("`" in line)
    return f"{ticks}{gap}{line}{gap}{ticks}" + f" {ELLIPSIS}" * is_cut


async def _documents(
    name: str, retrieval: Retrieval, memory: Memory, *, is_certain: bool
) -> list[DocumentInfo | Hit]:
    """The documents of that name; if an outline is certain, else those whose names contain it."""
    named: list[DocumentInfo | Hit] = [*(await memory.query(name, NAMED_PASSAGES)).hits]
    named += [candidate.hit for candidate in retrieval.candidates]
    with suppress(NoDocumentMatches):
        named += (await match(memory, name, limit=NAMED_DOCUMENTS)).documents
    same = {one.document_id: one for one in named if _has_name(one, name)}
    if not same and is_certain:
        wanted = name_terms(name)
        same = {
            one.document_id: one for one in named if wanted <= name_terms(f"{file_name(one.uri)} {one.title}")
        }
    return list(same.values())


def _has_name(one: DocumentInfo | Hit, name: str) -> bool:
    folders = len(re.findall(r"[^/]*\w[^/]*", name))
    file = "/".join(PurePosixPath(unquote(urlsplit(one.uri).path)).parts[-folders:])
    title = bare(one.title)  # "The Road"
    titles = one.title, title, title.partition(":")[0]  # "Lecture 2: Estimation"
    return any(is_name(name, other) for other in (*titles, file, file.rpartition(".")[0], one.uri))


def _passage(n: int, document: DocumentText, entry: OutlineEntry, chunks: Sequence[Hit]) -> Hit:
    """The chunk with the first line of an entry; its own lines, with chunk id `-n`, if that was not found."""
    start, end = entry.sentence
    first, last = (document.text.count("\n", 0, at) + 1 for at in (start, end))
    unknown = replace(
        chunks[0],
        chunk_id=-n,
        heading=entry.heading,
        start_line=first,
        end_line=last,
        text=document.text[start:end],
        context="",
        places=list(within(document.places, first, last)),
        headings=[],
    )
    return next((hit for hit in chunks if hit.start_line <= first <= hit.end_line), unknown)


def _citation(n: int, hit: Hit, document: DocumentText, entry: OutlineEntry) -> Citation:
    start, end = entry.sentence
    lines = document.text.count("\n", 0, start) + 1, document.text.count("\n", 0, end) + 1
    return Citation.of(n, hit, document.text[start:end], lines=lines)


def _answer(
    text: str,
    citations: Sequence[Citation],
    hits: Sequence[Hit],
    retrieval: Retrieval,
    cards: Sequence[Card] = (),
) -> Answer:
    """The answer that cites `hits`: one for each citation, the same one several times perhaps."""
    shown: dict[int, Candidate] = {}
    for citation, hit in zip(citations, hits, strict=True):
        shown.setdefault(hit.chunk_id, Candidate(hit, True, "shown", citation.n))
    others = [one.hit for one in retrieval.candidates if one.hit.chunk_id not in shown]
    unused = [Candidate(hit, False, "not the place that was asked for") for hit in others]
    return Answer(text, list(citations), [*shown.values(), *unused], grounded=True, cards=list(cards))
