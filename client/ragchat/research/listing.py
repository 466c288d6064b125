"""The report without a model: the findings grouped by document."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ragchat.grounding.evidence import Evidence
from ragchat.grounding.types import Citation
from ragchat.offline.answer import block_quote, quoted
from ragchat.offline.cards import make_cards
from ragchat.offline.windows import Window, best_window
from ragchat.research.state import Finding
from ragchat.sanitize import one_line
from ragchat.sessions.document import is_question_of_user
from ragchat.uris import short_uri
from ragcommon.contract.search import Hit

# Characters that are quoted from a passage that no model has read.
SIZE = 500


def list_findings(findings: Sequence[tuple[Finding, Window | None]]) -> tuple[str, list[Citation]]:
    """Markdown and citations for the result of `answering`, best document first.

    Passages are numbered from 1 in the order of the findings.
    """
    numbers = {hit.chunk_id: n for n, hit in enumerate(cited_passages([one for one, _ in findings]), 1)}
    by_document: dict[str, list[str]] = {}
    citations: list[Citation] = []
    for finding, window in findings:
        hit, n = finding.hit, numbers[finding.hit.chunk_id]
        if window is None:
            text = f"{block_quote(finding.quote)} [{n}]"
            citations.append(Citation.of(n, hit, finding.quote))
        else:
            [card], found = make_cards([window])
            text = f"{quoted(card)}\n\n[{n}]"
            citations += [replace(one, n=n) for one in found]
        by_document.setdefault(one_line(short_uri(hit.uri, hit.title)), []).append(text)
    parts = [part for name, texts in by_document.items() for part in (f"## {name}", *texts)]
    return "\n\n".join(parts), citations


def answering(
    findings: Sequence[Finding], evidence: Sequence[Evidence]
) -> list[tuple[Finding, Window | None]]:
    """The findings with a quotation, and the others with the best window of their passage.

    Passages that only repeat a question of the user are left out.
    """
    windows = {one.hit.chunk_id: best_window(one, SIZE) for one in evidence}
    return [
        (one, None if one.quote else windows.get(one.hit.chunk_id))
        for one in findings
        if one.quote or (not is_question_of_user(one.hit) and windows.get(one.hit.chunk_id))
    ]


def cited_passages(findings: Sequence[Finding]) -> list[Hit]:
    """The passages of findings, each once."""
    return [*{finding.hit.chunk_id: finding.hit for finding in findings}.values()]
