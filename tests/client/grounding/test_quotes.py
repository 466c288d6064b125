"""Where a quotation stands in a text."""

from __future__ import annotations

import pytest

from ragchat.grounding.quotes import quoted_lines

TEXT = "# Boiler\n\nPressure must *stay* between\n1.2 and 1.8 bar. Refill it\nwith the blue valve.\n"


@pytest.mark.parametrize(
    ("quote", "lines"),
    [
        ("Refill it", (14, 14)),
        ("pressure must stay between 1.2 and 1.8 bar.", (13, 14)),
        ("Pressure must … blue valve", (13, 15)),
        ("Pressure [...] 1.8 bar", (13, 14)),
        ("the red valve", None),
        ("valve … Pressure", None),
        ("", None),
        ("…", None),
    ],
)
def test_a_quotation_has_the_lines_where_its_words_stand(quote: str, lines: tuple[int, int] | None) -> None:
    assert quoted_lines(quote, TEXT, first_line=11) == lines
