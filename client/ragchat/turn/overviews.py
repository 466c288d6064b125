"""Answers without a model to questions that ask for more than one fact; see `offline.requests`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote, urlsplit

import anyio

from ragchat.errors import NoDocumentMatches, RagChatError
from ragchat.formatting import counted
from ragchat.memory.matching import Match, match
from ragchat.memory.types import DocumentInfo, DocumentText
from ragchat.offline.answer import markdown_of, quote_windows
from ragchat.offline.evidence import Question, share
from ragchat.offline.lists import MOST_ITEMS, NAMED, find_list, find_rows, says_it_directly
from ragchat.offline.outline import SHORT, Entry, is_name, name_terms, only_in, outline, section
from ragchat.offline.places import Place, answer_of
from ragchat.offline.requests import OutlineRequest, comparison_request, list_request, outline_request
from ragchat.offline.windows import Window, best_windows
from ragchat.offline.words import content_words
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.retrieval import Memory, Retrieval
from ragchat.types import Answer, Hit, format_uri
from ragchat.uris import exact_glob
from ragconfig.text_rules import with_words_replaced

# Of a longer document only the passage that was found is read: cutting it into units takes seconds.
MOST_CHARACTERS = 1_000_000
# Passages and documents among which a name is looked for.
NAMED_PASSAGES = 20
NAMED_DOCUMENTS = 50
MOST_DIFFERENCES = 8  # of one document from another
MOST_CHUNKS = 100  # of a document, for the numbers of chunks in citations; memory gives no more at once
NOTHING_ABOUT_IT = "Nothing in your documents is about this."
_PATH_PART = re.compile(r"[^/]*\w[^/]*")  # not ".." or "~"


async def overview_of(
    question: str, windows: Sequence[Window], retrieval: Retrieval, memory: Memory, limits: RetrievalLimits
) -> Answer | None:
    """The answer to a question for more than one fact; None for others, and without an answer from memory.

    `windows` are what is quoted otherwise.
    """
    question = with_words_replaced(question, retrieval.corrections)
    try:
        with anyio.fail_after(limits.seconds):
            return (
                await _list(question, windows, retrieval, memory)
                or await _outline(question, retrieval, memory)
                or await _comparison(question, retrieval, memory, limits)
            )
    except (RagChatError, TimeoutError):
        return None


async def _list(
    question: str, windows: Sequence[Window], retrieval: Retrieval, memory: Memory
) -> Answer | None:
    request = list_request(question)
    if request is None:
        return None
    subject = Question.named(request.subject, retrieval.weights)
    if says_it_directly(request, subject, windows):
        return None
    hits = [candidate.hit for candidate in retrieval.candidates]
    found = find_list(request, subject, hits)
    if found is None:
        return None if request.counts else await _rows(subject, hits, windows, retrieval, memory)
    document = await memory.show(found.hit.document_id)
    whole = found.whole(document.text) if document.characters <= MOST_CHARACTERS else None
    if whole is None:
        return None
    counts = request.counts and found.is_certain
    return answer_of(
        [whole.markdown(1), whole.notes(counts=counts)],
        [Place(whole.passage, whole.quote)],
        retrieval.candidates,
        grounded=True,
    )


async def _rows(
    subject: Question,
    hits: Sequence[Hit],
    windows: Sequence[Window],
    retrieval: Retrieval,
    memory: Memory,
) -> Answer | None:
    """The rows of a table that hold what is asked for; None if there are few, or a window holds more."""
    found = find_rows(subject, hits)
    if found is None or any(share(subject.words, window.terms) > found.share for window in windows):
        return None
    document = await memory.show(found.hit.document_id)
    rows = found.windows(document.text) if document.characters <= MOST_CHARACTERS else []
    if len(rows) < 2:
        return None
    note = f"{MOST_ITEMS} of {counted(len(rows), 'row')} shown." if len(rows) > MOST_ITEMS else ""
    is_grounded = found.share >= NAMED
    return quote_windows(subject, rows[:MOST_ITEMS], retrieval.candidates, grounded=is_grounded, note=note)


async def _outline(question: str, retrieval: Retrieval, memory: Memory) -> Answer | None:
    """The outline of the document or section that a question names; None if it names none."""
    request = outline_request(question)
    if request is None or not name_terms(request.name):
        return None
    hits = [*(await memory.query(request.name, NAMED_PASSAGES)).hits]
    hits += [candidate.hit for candidate in retrieval.candidates]
    document = await _document(request, memory, hits)
    if document and len(document.text) <= MOST_CHARACTERS:
        return await _of_document(document, None, retrieval, memory)
    for document_id in dict.fromkeys(hit.document_id for hit in hits if _is_under(request.name, hit)):
        document = await memory.show(document_id)
        if len(document.text) > MOST_CHARACTERS:
            continue
        if found := section(document.text, format_uri(document.uri, document.metadata), request.name):
            return await _of_document(document, found, retrieval, memory)
    return None


async def _document(request: OutlineRequest, memory: Memory, hits: Sequence[Hit]) -> DocumentText | None:
    """The one document of that name, or where an outline is certainly asked for, with that part of a name."""
    try:
        found = await match(memory, request.name, limit=NAMED_DOCUMENTS)
    except NoDocumentMatches:
        found = Match([], 0, None)
    named: Sequence[DocumentInfo | Hit] = [*found.documents, *hits]
    same = {one.document_id for one in named if _has_name(one, request.name)}
    if not same and request.is_certain:
        wanted = name_terms(request.name)
        same = {one.document_id for one in named if wanted <= name_terms(f"{_file(one)} {one.title}")}
    return await memory.show(same.pop()) if len(same) == 1 else None


def _has_name(one: DocumentInfo | Hit, name: str) -> bool:
    folders = len(_PATH_PART.findall(name)) - 1
    file = _file(one, folders)
    return any(is_name(name, other) for other in (one.title, file, file.rpartition(".")[0], one.uri))


def _file(one: DocumentInfo | Hit, folders: int = 0) -> str:
    """The name of a document's file, after so many of the folders that it is in."""
    return "/".join(unquote(urlsplit(one.uri).path).split("/")[-folders - 1 :])


def _is_under(name: str, hit: Hit) -> bool:
    return any(is_name(name, heading) for heading in hit.heading.split(" > "))


async def _of_document(
    document: DocumentText, part: Entry | None, retrieval: Retrieval, memory: Memory
) -> Answer | None:
    """The outline of a document or of a long part of it; a short part is quoted as it is."""
    chunks = await _chunks(document, memory)
    if part and part.end - part.start <= SHORT:
        place = Place(_passage(document, part, chunks), document.text[part.start : part.end].rstrip())
        # Two spaces: a line break in Markdown.
        lines = [f"> {line}  " if line.strip() else ">" for line in place.quote.splitlines()]
        return answer_of(["\n".join(lines), "[1]"], [place], retrieval.candidates, grounded=True)
    found = outline(document.text, format_uri(document.uri, document.metadata), part)
    if found is None:
        return None
    lines, places = [], []
    for entry in found.entries:
        cited = ""
        if entry.quote:
            places.append(Place(_passage(document, entry, chunks), entry.quote))
            cited = f" [{len(places)}]"
        lines.append(f"{found.indent(entry)}- {entry.markdown}{cited}")
    return answer_of(["\n".join(lines), found.note], places, retrieval.candidates, grounded=True)


async def _chunks(document: DocumentText, memory: Memory) -> Sequence[Hit]:
    """The passages of a document, without near-duplicates, at most MOST_CHUNKS."""
    found = await memory.query(document.title, MOST_CHUNKS, {"uri": exact_glob(document.uri)})
    return [hit for hit in found.hits if hit.document_id == document.document_id]


def _passage(document: DocumentText, entry: Entry, chunks: Sequence[Hit]) -> Hit:
    """An entry of an outline as a passage, in the chunk that has its first line; 0 if that was not found."""
    text = document.text[entry.start : entry.end].rstrip()
    line = document.text.count("\n", 0, entry.start) + 1
    chunk = next((hit for hit in chunks if hit.start_line <= line <= hit.end_line), None)
    return Hit(
        rank=1,
        score=1.0,
        chunk_id=chunk.chunk_id if chunk else 0,
        document_id=document.document_id,
        uri=document.uri,
        title=document.title,
        heading=entry.path or (chunk.heading if chunk else ""),
        start_line=line,
        end_line=line + text.count("\n"),
        text=text,
        places=chunk.places if chunk else [],
    )


async def _comparison(
    question: str, retrieval: Retrieval, memory: Memory, limits: RetrievalLimits
) -> Answer | None:
    """What memory says of two things, one after the other; None if none is to be compared or found."""
    request = comparison_request(question)
    if request is None:
        return None
    documents = [
        await _document(OutlineRequest(name, is_certain=True), memory, []) for name, _ in request.sides
    ]
    if not request.topic and documents[0] and documents[1] and documents[0].uri != documents[1].uri:
        return await _differences(documents[0], documents[1], retrieval, memory)
    sides = [
        await _side(name, text, document if request.topic else None, memory, limits)
        for (name, text), document in zip(request.sides, documents, strict=True)
    ]
    found = [window for window, _ in sides if window]
    if not found or (len(found) == 2 and found[0].overlaps(found[1])):
        return None
    parts, places = [], []
    for (name, _), (window, _) in zip(request.sides, sides, strict=True):
        if window:
            places.append(Place(window.hit, window.text, window.lines))
        said = markdown_of(window, len(places), window.terms) if window else NOTHING_ABOUT_IT
        parts += [f"**{name}**", said]
    missing = [word for window, lacking in sides if not window for word in lacking]
    return answer_of(parts, places, retrieval.candidates, grounded=len(found) == 2, missing=missing)


async def _side(
    name: str, text: str, document: DocumentText | None, memory: Memory, limits: RetrievalLimits
) -> tuple[Window | None, Sequence[str]]:
    """The best window for one of the things compared, and the words of its name that no window holds."""
    only = {"uri": exact_glob(document.uri)} if document else None
    lacking: Sequence[str] = content_words(name)
    # The words of the other name may not fit this one.
    for words in dict.fromkeys([text, name]):
        result = await memory.query(words, limits.top_k, only)
        named = Question.named("" if document else name, result.weights)
        for window in best_windows(Question.named(words, result.weights), result.hits):
            missing = named.missing(window.terms)
            if not missing and not named.lacks_exact(window.terms):
                return window, []
            lacking = min(lacking, missing or lacking, key=len)
    return None, lacking


async def _differences(
    first: DocumentText, second: DocumentText, retrieval: Retrieval, memory: Memory
) -> Answer:
    """What each of two documents says and the other does not, in the same words."""
    parts: list[str] = []
    places: list[Place] = []
    for one, other in ((first, second), (second, first)):
        changed = only_in(one.text, other.text, format_uri(one.uri, one.metadata))
        chunks = await _chunks(one, memory)
        parts.append(f"**{one.title}**")
        for run in changed[:MOST_DIFFERENCES]:
            start, end = run[0].start, run[-1].end
            passage = _passage(one, Entry("", 1, "", start, end, run[0]), chunks)
            own = [replace(unit, start=unit.start - start) for unit in run]
            window = Window(passage, own, 0, len(own) - 1)
            places.append(Place(passage, window.text))
            parts.append(markdown_of(window, len(places), window.terms))
        if not changed:
            parts.append("It says nothing that the other does not say.")
        elif len(changed) > MOST_DIFFERENCES:
            parts.append(f"{MOST_DIFFERENCES} of {len(changed):,} differences shown.")
    return answer_of(parts, places, retrieval.candidates, grounded=bool(places))
