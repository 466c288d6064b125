"""The answer without a model: cards with the best windows of the passages that memory found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio
from msgspec.structs import replace as with_changes

from ragchat.answer import Answer
from ragchat.errors import RagChatError
from ragchat.grounding.evidence import Evidence, gather, names_of
from ragchat.grounding.judging import Closeness, Judgement
from ragchat.grounding.question import Question
from ragchat.offline.answer import answer_with, nothing
from ragchat.offline.windows import (
    SIZES,
    WEAK_SIZE,
    Window,
    best_window,
    chosen,
    defined,
    nearest,
    runs,
)
from ragchat.turn.beginnings import with_beginning_first
from ragchat.turn.days import is_from_today
from ragchat.turn.grounding import ON_TOPIC_SCORE, judge_passages
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.lists import with_list_first
from ragchat.turn.retrieval import Memory, Retrieval
from ragchat.turn.views import view_of
from ragcommon.text.rules import with_words_replaced

# Below this coverage of the question's words, passages are chosen by meaning.
WEAK = 0.4
# Below this similarity, a question is off topic. On three sets of documents, .2 loses 1 of 63 questions that
# are answered in other words, .26 loses 11.
MIN_SIMILARITY = 0.2
# So is one of which no word is as similar to those of any passage, such as "zorblax".
MIN_MATCH = 0.5
# Passages that are compared by meaning. More of them gain little.
WIDE_TOP_K = 60
# Divided by the rank of a passage in memory's order and added to the score of each of its windows. From .03
# to .07, one to three answers of 425 more are first, and none is lost.
W_NEAREST_RANK = 0.05
# Characters of a note that is shown to its end.
SHORT_NOTE = 400


async def answer_offline(
    question: str, query: str, retrieval: Retrieval, memory: Memory, limits: RetrievalLimits
) -> Answer:
    """Answer from memory, which is searched again only if no passage has the words of the question."""
    grounding = await judge_passages(question, query, retrieval, memory, limits.seconds)
    judged, evidence = grounding.judgement, grounding.evidence
    # "Summarise" is the word of a command, also where documents have only "summaries".
    for wording in dict.fromkeys((grounding.question.text, question)):
        if found := await view_of(wording, grounding, retrieval, memory, limits):
            return found
    windows: Sequence[Window] = []
    similarity = 0.0
    coverage = max((one.coverage(one.pieces, grounding.question.judged) for one in evidence), default=1.0)
    if coverage < WEAK and not retrieval.beginning and not _has_names(grounding.windows[0]):
        query = with_words_replaced(query, retrieval.corrections)
        windows, similarity = await _nearest(grounding.question, query, memory, limits)
    is_far = similarity < MIN_SIMILARITY or _best_match(windows) < MIN_MATCH
    if judged.state is Closeness.NOTHING and is_far and not retrieval.beginning:
        return nothing(retrieval.candidates, empty=retrieval.empty, missing=judged.missing)
    further: Sequence[Window] = ()
    if not windows:
        if retrieval.beginning:
            ordered = with_beginning_first(grounding.windows, retrieval.beginning)
        else:
            best, *others = await with_list_first(grounding.windows, memory, limits)
            ordered = [await _with_replies(best, memory, limits), *others]
        windows, others = chosen(ordered)
        further = [window for window in others if window.hit.score >= ON_TOPIC_SCORE]
    if retrieval.of_day:  # Whatever the note of the day says, it is what is asked for.
        windows, further = windows[:1], [*windows[1:], *further]
        judged = replace(judged, state=Closeness.GROUNDED, missing=[])
    else:
        judged = _of_shown(judged, grounding.question, windows)
        if is_from_today(question):  # Other texts with "last week" mean another week.
            judged = replace(judged, state=Closeness.NEAREST)
    return answer_with(windows, further, retrieval.candidates, judged)


def _of_shown(judged: Judgement, question: Question, shown: Sequence[Window]) -> Judgement:
    """The judgement of an answer with these windows: a name in none of their passages makes it NEAREST."""
    terms = frozenset[str]().union(*(window.evidence.terms for window in shown))
    symbols = defined(shown[0].evidence, shown[0].best) if shown else []
    # An ordinary word may be a symbol by chance.
    is_defined = any(word.is_name for word in symbols) or (symbols and not question.missing(terms))
    explains = any(window.evidence.defines(piece) for window in shown[:1] for piece in window.pieces)
    answers = judged.state is Closeness.GROUNDED or is_defined or explains
    grounded = answers and not question.missing_names(terms)
    state = Closeness.GROUNDED if grounded else Closeness.NEAREST
    return replace(judged, state=state, missing=question.missing(terms))


async def _with_replies(window: Window, memory: Memory, limits: RetrievalLimits) -> Window:
    """The window of a turn of a conversation with the turns after it, as far as they fit, and that of a short
    note with the rest of it if only its titles have the words of the question.

    The words of a question are often in the turn that asks it, and its answer in the next one; those of a
    question about a day are in the title of its note.
    """
    hit = window.hit
    room = (SIZES[0] if hit.surroundings else SHORT_NOTE) - len(hit.text)
    if hit.places or hit.is_code or hit.context or room <= 0:
        return window
    if not (hit.surroundings or _is_named(window)):
        return window
    try:
        with anyio.fail_after(limits.seconds):
            part = await memory.part(hit.document_id, hit.end_line + 1, None, "", SIZES[0])
            if not hit.surroundings and len(part.text) > room:
                return window
            replies = part.text if len(part.text) <= room else part.text[: part.text.rfind("\n", 0, room) + 1]
            last = hit.end_line + replies.rstrip().count("\n") + 1
            longer = with_changes(hit, text=f"{hit.text.rstrip()}\n{replies}", end_line=last)
            evidence = await gather(window.evidence.question, [longer], memory)
    except (RagChatError, TimeoutError):  # Also if it is the last turn.
        return window
    found = best_window(evidence[0], SIZES[0])
    return replace(found, score=window.score) if found else window


def _best_match(windows: Sequence[Window]) -> float:
    """How well the word that is matched best is matched; 1 if the embedder compares no words."""
    pieces = [piece for window in windows for piece in window.pieces]
    found = [pair for piece in pieces for pair in zip(piece.matches, piece.held, strict=True)]
    is_known = any(match > share for match, share in found)
    return max(match for match, _ in found) if is_known else 1.0


def _is_named(window: Window) -> bool:
    """Whether the titles have all words of the question that the best piece has; half a date is no word."""
    held = zip(window.evidence.pieces[window.best].held, window.evidence.names.held, strict=True)
    return all(share < 1 or named == 1 for share, named in held)


async def _nearest(
    question: Question, query: str, memory: Memory, limits: RetrievalLimits
) -> tuple[Sequence[Window], float]:
    """The windows nearest by meaning, and the highest similarity; none if memory does not answer in time."""
    try:
        with anyio.fail_after(limits.seconds):
            hits = (await memory.query(query, WIDE_TOP_K)).hits
            evidence = _of_named_documents(question, await gather(question, hits, memory))
            windows = [window for one in evidence for window in runs(one, WEAK_SIZE)]
            texts = [f"{names_of(window.hit)}. {window.text}" for window in windows]
            compared = await memory.compare(query, texts)
    except (RagChatError, TimeoutError):
        return [], 0.0
    scores = [
        (similarity + window.evidence.late(window.pieces)) / 2 + W_NEAREST_RANK / max(1, window.hit.rank)
        for window, similarity in zip(windows, compared.similarities, strict=True)
    ]
    scored = [replace(window, score=score) for window, score in zip(windows, scores, strict=True)]
    return nearest(scored), max(compared.similarities, default=0.0)


def _has_names(window: Window) -> bool:
    """Whether the best piece is code with all names of the question, which may be in another language."""
    held = zip(window.evidence.question.words, window.evidence.pieces[window.best].held, strict=False)
    names = [share for word, share in held if word.is_name]
    return window.hit.is_code and bool(names) and min(names) == 1


def _of_named_documents(question: Question, evidence: Sequence[Evidence]) -> list[Evidence]:
    """The passages of the documents that hold most of the question's names; all without such names.

    A question in other words, or in another language, still contains the names.
    """
    held: dict[str, set[str]] = {one.hit.document_id: set() for one in evidence}
    for word in question.all_words:
        for one in evidence if word.is_name else ():
            if word.is_in(one.terms):
                held[one.hit.document_id].add(word.text)
    most = max(map(len, held.values()), default=0)
    return [one for one in evidence if len(held[one.hit.document_id]) == most]
