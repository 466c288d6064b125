"""Which claims of a report its sources do not support."""

from __future__ import annotations

import pytest

from ragchat.research.checking import Claim, check_words, claims_of, marked
from tests.support.turns import hit

TEA = hit("Green tea is brewed at 75 degrees for two minutes. Anna Keller sells it.", chunk_id=1)
COFFEE = hit("Espresso is pressed at nine bar.", chunk_id=2)
HITS = {1: TEA, 2: COFFEE}


def flaws(report: str) -> list[str]:
    claims = claims_of(report)
    return [*check_words(claims, HITS, "How is tea brewed?").values()]


@pytest.mark.parametrize(
    "report",
    [
        "Green tea is brewed at 75 degrees [1].",
        'Green tea is "brewed at 75 degrees for two minutes" [1].',
        "Green tea is brewed at 75 degrees. It takes two minutes [1].",
        "Green tea is brewed at 75 degrees. [1] Espresso is pressed at nine bar. [2]",
        "# A heading without a source\n\n**And a title in bold letters**",
        "The parts in short are these:\n- Espresso is pressed at nine bar [2].",
        "Does the water of the espresso boil?",
        "```\nsome code without a source\n```",
        "| drink | is made with | by |\n|---|---|---|\n| espresso | nine bar [2] | pressing |",
    ],
)
def test_what_the_sources_hold_and_what_claims_nothing_is_not_marked(report: str) -> None:
    assert flaws(report) == []
    assert marked(report, claims_of(report), {}) == report


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("Everyone likes green tea.", "it cites no source"),
        ("Everyone likes green tea [7].", "there is no source 7"),
        ("Green tea is brewed at 90 degrees [1].", "90 degrees: not in source 1"),
        ("Green tea is sold by Peter Miller [1].", "Peter Miller: not in source 1"),
        (
            'Green tea is "brewed with boiling water" [1].',
            '"brewed with boiling water" is not in source 1 word for word',
        ),
        ("Green tea is brewed at 75 degrees [1]. Everyone likes it.", "it cites no source"),
        ("| drink | by |\n|---|---|\n| espresso and so on | pressing |", "it cites no source"),
    ],
)
def test_a_claim_that_its_source_does_not_hold_has_a_reason(report: str, reason: str) -> None:
    assert flaws(report) == [reason]


def test_claims_are_marked_behind_their_markers_and_listed_without_them() -> None:
    report = "Tea is hot today [1]. Coffee is black today. [2]\n\n| one two | three [1] |"
    claims = claims_of(report)
    text = marked(report, claims, {0: "it is not.", 1: "who knows", 2: "no"})
    assert text == (
        "Tea is hot today [1]. **(not supported)** Coffee is black today. [2] **(not supported)**\n\n"
        "| one two | three [1] **(not supported)** |\n\n## Not supported\n\n"
        "- Tea is hot today. (it is not)\n- Coffee is black today. (who knows)\n- | one two | three | (no)"
    )


def test_a_claim_ends_where_its_markers_end() -> None:
    report = "- Tea is hot today. [1][2] Coffee is black today [1]."
    assert claims_of(report) == [
        Claim("Tea is hot today. [1][2]", report.index(" Coffee"), (1, 2)),
        Claim("Coffee is black today [1].", len(report), (1,)),
    ]
