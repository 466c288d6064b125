"""What a citation names."""

from __future__ import annotations

from msgspec.structs import replace

from ragchat.grounding.types import Citation
from tests.support.turns import hit


def test_a_quotation_of_one_cell_is_cited_by_the_cell() -> None:
    row = replace(
        hit("| Item | Price |\n| --- | --- |\n| Tea | 4.5 |"),
        uri="file:///budget.xlsx",
        start_line=3,
        end_line=5,
        places=[(3, "sheet Q3 row 1"), (5, "sheet Q3 row 2")],
    )
    assert Citation.of(1, row, "4.5").location == "budget.xlsx sheet Q3 B2"
    assert Citation.of(1, row, "| Tea | 4.5 |").location == "budget.xlsx sheet Q3 row 2"


def test_a_citation_names_the_heading_above_its_quotation() -> None:
    text = "Article 1\nRead.\n\nArticle 2\nWrite.\n"
    found = replace(
        hit(text),
        heading="Chapter I",
        start_line=7,
        end_line=11,
        headings=[(7, "Article 1"), (10, "Article 2")],
    )
    assert Citation.of(1, found, "Read.").heading == "Chapter I > Article 1"
    assert Citation.of(1, found, "Write.").heading == "Chapter I > Article 2"
    assert Citation.of(1, found, "").heading == "Chapter I"
