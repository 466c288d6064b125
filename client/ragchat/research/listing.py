"""The findings as a list, grouped by document: the report without a model."""

from __future__ import annotations

from collections.abc import Sequence

from ragchat.offline.answer import markdown_of
from ragchat.offline.evidence import Question
from ragchat.offline.windows import best_windows
from ragchat.research.state import Finding
from ragchat.sanitize import one_line
from ragchat.types import Citation, Hit
from ragchat.uris import short_uri


def list_findings(question: Question, findings: Sequence[Finding]) -> tuple[str, list[Citation]]:
    """Markdown, best document first, and its citations. Of an unread passage, its best part is quoted.

    Each passage has the number of its place among the passages of `findings`, counting from 1.
    """
    numbers = {hit.chunk_id: n for n, hit in enumerate(passages_of(findings), 1)}
    by_document: dict[str, list[str]] = {}
    citations: list[Citation] = []
    for finding in findings:
        hit, n = finding.hit, numbers[finding.hit.chunk_id]
        if finding.quote:
            lines = "  \n".join(f"> {line}".rstrip() for line in finding.quote.splitlines())
            quoted = [(f"{lines} [{n}]", Citation.of(n, hit, finding.quote))]
        else:
            quoted = [
                (markdown_of(window, n, question.terms), Citation.of(n, hit, window.text, lines=window.lines))
                for window in best_windows(question, [hit])[:1]
            ]
        name = one_line(short_uri(hit.uri, hit.title))
        by_document.setdefault(name, []).extend(text for text, _ in quoted)
        citations += [citation for _, citation in quoted]
    parts = [part for name, texts in by_document.items() if texts for part in (f"## {name}", *texts)]
    return "\n\n".join(parts), citations


def passages_of(findings: Sequence[Finding]) -> list[Hit]:
    """The passages of findings, each once."""
    return [*{finding.hit.chunk_id: finding.hit for finding in findings}.values()]
