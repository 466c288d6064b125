"""Answers without any model: the best sentences of memory, quoted verbatim and cited. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ragchat.types import Citation, Hit

NO_MODEL = "No language model is configured; these are the best passages of your memory."
NOTHING = "Nothing in memory is relevant to this question."


def compose(question: str, hits: Sequence[Hit]) -> tuple[str, list[Citation]]:
    """The answer's Markdown and its citations, from relevant hits (the best first)."""
    if not hits:
        return NOTHING, []
    hit = hits[0]
    quote = hit.text.strip()[:300]
    citation = Citation(
        1,
        hit.chunk_id,
        hit.document_id,
        hit.uri,
        hit.title,
        hit.heading,
        hit.start_line,
        hit.end_line,
        quote,
        True,
    )
    return f"{NO_MODEL}\n\n“{quote}” [1]", [citation]
