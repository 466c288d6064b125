"""The findings as a list."""

from __future__ import annotations

from msgspec.structs import replace

from ragchat.grounding.evidence import gather
from ragchat.grounding.question import Question
from ragchat.offline.windows import Window
from ragchat.research.listing import SIZE, answering, cited_passages, list_findings
from ragchat.research.state import Finding
from tests.support.turns import ListMemory, hit


async def listed(question: str, *findings: Finding) -> list[tuple[Finding, Window | None]]:
    evidence = await gather(Question.of(question), cited_passages(findings), ListMemory())
    return answering(findings, evidence)


async def test_findings_are_grouped_by_document_and_cited_by_the_number_of_their_passage() -> None:
    tea = hit("Green tea is brewed at 75 degrees.", chunk_id=1)
    coffee = hit("Espresso is pressed at nine bar. It is black.", chunk_id=2)
    found = [Finding(tea), Finding(coffee, "It is black."), Finding(tea, "brewed at 75 degrees")]
    text, citations = list_findings(await listed("How is green tea brewed?", *found))
    assert text == (
        "## /notes/1.md\n\n> Green tea is brewed at 75 degrees.\n\n[1]\n\n> brewed at 75 degrees [1]\n\n"
        "## /notes/2.md\n\n> It is black. [2]"
    )
    assert [(one.n, one.verified) for one in citations] == [(1, True), (2, True), (1, True)]


async def test_of_an_unread_passage_the_best_part_is_quoted_as_it_was_written() -> None:
    rows = [f"| Line{number} | Bergen | {number}0 NOK |" for number in range(1, 60)]
    table = "\n".join(["| line | from | price |", "|---|---|---|", *rows])
    text, [citation] = list_findings(await listed("Which lines leave from Bergen?", Finding(hit(table))))
    assert "| line | from | price |\n|---|---|---|\n" in text
    assert citation.quote in table
    assert len(citation.quote) <= SIZE


async def test_a_question_is_no_finding() -> None:
    question = "Which ferries leave from Bergen?"
    own = "**You** (2026-01-01 10:00):\nWhich ferries leave from Bergen? I need it for Monday."
    answer = "Which ferries leave from Bergen? Fjord1 leaves from Bergen at nine."
    passages = [replace(hit(own, chunk_id=8), uri="ragchat:session/1"), hit(answer, chunk_id=9)]
    found = await listed(question, *(Finding(passage) for passage in passages))
    assert [finding.hit.chunk_id for finding, _ in found] == [9]
