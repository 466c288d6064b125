"""The beginning of the document that a question names: what it is about, who wrote it, how old it is."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace

import anyio
from msgspec.structs import replace as with_changes

from ragchat.answer import Candidate
from ragchat.errors import RagChatError
from ragchat.grounding.definitions import THE, asked_term
from ragchat.grounding.evidence import Evidence
from ragchat.grounding.words import content_words
from ragchat.offline.views import bare, name_terms
from ragchat.offline.windows import SIZES, Window
from ragchat.turn.days import note_of_day
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.retrieval import Memory, Retrieval
from ragchat.uris import exact_glob
from ragcommon.contract.documents import DocumentInfo
from ragcommon.contract.search import Hit
from ragcommon.text.places import file_name
from ragconfig.settings import packaged

# The minimum share of the words of a title or a file name that a question has.
MIN_SHARE = 1 / 3
# Characters by which the first passage of a document is found, and the passages that they find.
SEARCHED, FOUND = 400, 20

_FILE = packaged("views.toml")
_PATTERNS = [
    re.compile(rf"\W*+{pattern.format(**_FILE['names'])}\W*+", re.IGNORECASE)
    for pattern in _FILE["beginnings"]
]


async def with_beginning(
    retrieval: Retrieval, question: str, memory: Memory, limits: RetrievalLimits
) -> Retrieval:
    """Add the first passage of the document that a question is about, if other passages of it were found, and
    the beginning of the note of a day that it asks about."""
    hits = [candidate.hit for candidate in retrieval.candidates]
    try:
        with anyio.fail_after(limits.seconds):
            noted = None if retrieval.goes_on else await note_of_day(question, memory)
            if (best := noted or _best_named(question, hits)) is None:
                return retrieval
            if noted is None and (first := _first_of(best, hits, 1)) is not None:
                return replace(retrieval, beginning=first.chunk_id)
            part = await memory.part(best.document_id, 1, None, "", SEARCHED)
            found = await memory.query(part.text[:SEARCHED], FOUND, {"uri": exact_glob(best.uri)})
    except (RagChatError, TimeoutError):
        return retrieval
    if (first := _first_of(best, found.hits, part.end_line)) is None:
        return retrieval
    if isinstance(best, Hit):
        first = with_changes(first, rank=best.rank, score=best.score)
    else:
        first = _longer(first, part.text)
    added = Candidate(first, True, "the beginning of the document that the question names")
    others = [one for one in retrieval.candidates if one.hit.chunk_id != first.chunk_id]
    shown = replace(retrieval, candidates=[added, *others], beginning=first.chunk_id)
    return replace(shown, of_day=noted is not None)


def _longer(first: Hit, text: str) -> Hit:
    """A hit of the first passage with as much of its note as a card shows."""
    text = text if len(text) <= SIZES[0] else text[: text.rfind("\n", 0, SIZES[0]) + 1] or first.text
    lines = text.rstrip().count("\n")
    return with_changes(first, text=text, start_line=1, end_line=1 + lines, heading="", headings=[])


def with_beginning_first(windows: Sequence[Window], beginning: int) -> list[Window]:
    """Windows (best first) with that of this chunk first; second if the first one defines what is asked."""
    first = windows[0]
    others = [window for window in windows if window.hit.chunk_id != beginning]
    found = [_top(one.evidence, first.score) for one in windows if one.hit.chunk_id == beginning]
    is_defined = any(first.evidence.defines(piece) for piece in first.pieces)
    place = int(is_defined and first.hit.chunk_id != beginning)
    return [*others[:place], *found, *others[place:]]


def _top(evidence: Evidence, score: float) -> Window:
    """The window at the top of a passage; below its front matter, unless that may name the author."""
    pieces, is_asked = evidence.pieces, _asked(evidence.question.text)
    start = 0 if is_asked else evidence.hit.front_matter
    first = next((at for at, piece in enumerate(pieces) if piece.start >= start), 0)
    fitting = (at for at, piece in enumerate(pieces) if piece.end - pieces[first].start <= SIZES[0])
    # On a small screen, a card is cut around its best piece.
    return Window(evidence, first, max(first, *fitting), first, score)


def _first_of(named: Hit | DocumentInfo, hits: Sequence[Hit], last: int) -> Hit | None:
    """The first passage of a document, if it begins in line `last` or before."""
    own = [hit for hit in hits if hit.document_id == named.document_id and hit.start_line <= last]
    return min(own, key=lambda hit: hit.start_line, default=None)


def _asked(question: str) -> str:
    """The name of which a question asks for the author or the date; "" for other questions."""
    found = next(filter(None, (pattern.fullmatch(question) for pattern in _PATTERNS)), None)
    return " ".join(content_words(found["name"])) if found else ""


def _best_named(question: str, hits: Sequence[Hit]) -> Hit | None:
    """The best hit of the document whose name is most like what the question is about, or the question."""
    terms = [name_terms(_asked(question)) or {*asked_term(question)} - {THE}, name_terms(bare(question))]
    shares = {hit.chunk_id: max(_share(term, hit) for term in terms) for hit in hits}
    best = max(hits, key=lambda hit: shares[hit.chunk_id], default=None)
    return best if best and shares[best.chunk_id] >= MIN_SHARE else None


def _share(term: Set[str], hit: Hit) -> float:
    """The share that a term has of the title, or of the name of the file; 0 if it is not part of either."""
    names = (name_terms(hit.title), name_terms(file_name(hit.uri).rpartition(".")[0]))
    return max(len(term) / len(name) if name and term <= name else 0.0 for name in names)
