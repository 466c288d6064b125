"""The headings of documents without styles for them."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from ragmemory.files.formats.unstyled import with_headings

SAID = "It is written down here."


def marked(parts: list[str], bold: Collection[int] = ()) -> list[str]:
    return [part for part in with_headings(parts, bold) if part.startswith("#")]


def test_bold_paragraphs_between_others_are_headings_below_the_title() -> None:
    parts = ["Quiet hours", SAID, "Water", SAID, SAID]
    assert marked(parts, {0, 2}) == ["# Quiet hours", "# Water"]
    assert marked(["# House rules", *parts], {1, 3}) == ["# House rules", "## Quiet hours", "## Water"]


def test_bold_questions_are_headings_below_a_bold_title_also_with_one_paragraph_between_them() -> None:
    parts = ["Quiet hours", "When is it quiet?", SAID, "Who may sing?", SAID, "Who is deaf?", SAID]
    assert len(marked(parts, {0, 1, 3, 5})) == 4


def test_bold_paragraphs_are_headings_beside_a_few_styled_ones() -> None:
    rest = [part for name in ("Noise", "Water", "Waste", "Pets", "Fees") for part in (name, SAID)]
    parts = ["# Contents", "1", "# Charts", *rest]
    assert len(marked(parts, {3, 5, 7, 9, 11})) == 7
    assert len(marked(parts[:-4], {3, 5, 7})) == 2  # The styled ones are as many.


@pytest.mark.parametrize(
    ("parts", "bold"),
    [
        (["Quiet hours", SAID, SAID], {0}),  # There is only one.
        (["# Rules", "Water", SAID, "# Fees", "Tax", SAID], {1, 4}),  # It has headings of its own.
        (["Note", SAID, "Note", SAID, "Note", SAID, SAID], {0, 2, 4}),  # They are remarks.
        (["One", "Two", "Three", "Four", SAID, SAID, SAID, SAID, SAID], {0, 1, 2, 3}),  # They are a list.
        (["One", "Two", SAID], {0, 1}),  # Nearly all is bold.
        ([f"{SAID} It goes on.", SAID, f"{SAID} And on.", SAID, SAID], {0, 2}),  # They are sentences.
        (["Quiet\nhours", SAID, "Cold\nwater", SAID, SAID], {0, 2}),  # They have several lines.
    ],
)
def test_other_bold_paragraphs_are_none(parts: list[str], bold: set[int]) -> None:
    assert with_headings(parts, bold) == parts


def test_articles_and_numbered_titles_are_headings_where_none_is_bold() -> None:
    assert marked(["Article 1", SAID, "Article 2", SAID]) == ["# Article 1", "# Article 2"]
    parts = ["1. Scope", SAID, "1.1 Words", SAID, "2. Use", SAID]
    assert marked(parts) == ["# 1. Scope", "## 1.1 Words", "# 2. Use"]


def test_numbered_paragraphs_and_lists_are_no_headings() -> None:
    paragraphs = [f"Article {n}. The council, which has {n} members, shall meet in public." for n in (1, 2)]
    assert not marked(paragraphs)
    assert not marked([SAID, "1. Hold it\n2. Run\n3. Let go", SAID])
