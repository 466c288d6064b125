"""The findings as a list."""

from __future__ import annotations

from ragchat.offline.evidence import Question
from ragchat.research.listing import list_findings
from ragchat.research.state import Finding
from tests.support.turns import hit


def test_findings_are_grouped_by_document_and_cited_by_the_number_of_their_passage() -> None:
    tea = hit("Green tea is brewed at 75 degrees.", chunk_id=1)
    coffee = hit("Espresso is pressed at nine bar. It is black.", chunk_id=2)
    found = [Finding(tea), Finding(coffee, "It is black."), Finding(tea, "brewed at 75 degrees")]
    text, citations = list_findings(Question.of("How is green tea brewed?"), found)
    assert text == (
        "## /notes/1.md\n\n> Green tea is brewed at 75 degrees. [1]\n\n> brewed at 75 degrees [1]\n\n"
        "## /notes/2.md\n\n> It is black. [2]"
    )
    assert [(one.n, one.verified) for one in citations] == [(1, True), (2, True), (1, True)]
