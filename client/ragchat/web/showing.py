"""Turns as the page shows them: the answer as nodes, its cards and sources, how it was made. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from ragchat.answer import Candidate, Card
from ragchat.grounding.judging import GROUNDED
from ragchat.grounding.types import Citation
from ragchat.highlight import Highlight
from ragchat.offline.answer import notes_of
from ragchat.sanitize import one_line, sanitize
from ragchat.turn.types import Turn
from ragchat.turn.why import answered, searched, summary
from ragchat.uris import passage_location
from ragchat.web.markup import nodes
from ragchat.web.passages import Passage
from ragcommon.contract.search import Hit


def turn_document(turn: Turn) -> dict[str, Any]:
    """What `ask --json` prints, with the answer as `nodes`, or as `cards` with a line before and after."""
    answer = turn.answer
    scores = {one.hit.chunk_id: round(one.hit.score, 2) for one in answer.candidates}
    before, after = notes_of(grounded=answer.grounded, missing=answer.missing) if answer.cards else ("", "")
    hits = {one.hit.chunk_id: one.hit for one in answer.candidates}
    highlight = Highlight(turn.trace.query or turn.question)
    public: dict[str, Any] = _clean(turn.public())
    return {
        **public,
        "cards": [card_document(card, highlight, hits.get(card.chunk_id)) for card in answer.cards],
        "before": before,
        "after": sanitize(after),
        "nodes": [] if answer.cards else nodes(answer.text),
        "sources": [_source(one, scores.get(one.chunk_id)) for one in answer.sources],
        "notices": _clean(turn.trace.notices),
        "summary": sanitize(summary(turn)),
        "more": answer.further is not None,
        "is_report": turn.trace.is_report,
    }


def card_document(card: Card, highlight: Highlight, hit: Hit | None = None) -> dict[str, Any]:
    """A card of a passage; in its `nodes`, what most likely answers is marked, and what matches is strong."""
    passage = Passage(card.text, {"strong": [*highlight.spans(card.text)], "mark": [card.best]})
    if card.is_code:
        shown = passage.code()
    elif hit and hit.is_csv:
        shown = passage.csv(hit.full_text[slice(*hit.columns)])
    else:
        shown = passage.prose()
    return {
        "n": card.n,
        "location": one_line(card.location),
        "headings": one_line(card.headings),
        "nodes": shown,
    }


def _source(citation: Citation, score: float | None) -> dict[str, Any]:
    document: dict[str, Any] = _clean(msgspec.to_builtins(citation))
    return {**document, "location": passage_location(citation), "score": score}


def why_document(turn: Turn) -> dict[str, Any]:
    """The facts of /why as pairs, the passages, and the signals of the judgement."""
    answer = turn.answer
    return {
        "searched": _clean([*searched(turn)]),
        "answered": _clean([*answered(turn)]),
        "candidates": [_candidate(one) for one in answer.candidates],
        "judgement": answer.judgement,
        "grounded_from": GROUNDED,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    hit = candidate.hit
    return {
        "n": candidate.n,
        "used": candidate.used,
        "reason": one_line(candidate.reason),
        "score": hit.score,
        "reranked": None if hit.rerank_score is UNSET else hit.rerank_score,
        "location": passage_location(hit),
        "heading": one_line(hit.heading),
        "text": sanitize(hit.full_text),
        "document_id": hit.document_id,
        "uri": sanitize(hit.uri),
        "title": one_line(hit.title),
        "start_line": hit.start_line,
        "end_line": hit.end_line,
        "chunk_id": hit.chunk_id,
    }


def _clean(value: Any) -> Any:
    """The same with every text in it sanitized."""
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, dict):
        return {key: _clean(one) for key, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, (list, tuple)) else value
