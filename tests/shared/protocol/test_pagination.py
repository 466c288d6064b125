"""Pages and cursors."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from ragmcp.errors import InvalidParams
from ragmcp.protocol.pagination import PAGE_ITEMS, cursor_to, offset, page


@given(st.integers(0, 4 * PAGE_ITEMS).map(range))
def test_the_pages_together_are_the_list(items: range) -> None:
    seen: list[int] = []
    cursor: str | UnsetType = UNSET
    while True:
        some, cursor = page(items, cursor)
        assert len(some) <= PAGE_ITEMS
        seen += some
        if cursor is UNSET:
            break
    assert seen == [*items]


def test_a_list_that_fits_has_one_page() -> None:
    assert page(range(PAGE_ITEMS), UNSET) == ([*range(PAGE_ITEMS)], UNSET)
    assert page([], UNSET) == ([], UNSET)


@given(st.integers(1, 2**40))
def test_a_cursor_leads_where_it_was_made_for(start: int) -> None:
    assert offset(cursor_to(start)) == start


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "!!!!", "MA==", cursor_to(-5), cursor_to(5) + "\n", cursor_to(5).rstrip("="), "\ud800", "é"]
    + [base64.urlsafe_b64encode(text).decode() for text in (b"1_0", b" 5", b"+5", b"05", b"5.0", b"nan")]
    + [base64.urlsafe_b64encode(b"9" * 5000).decode()],
)
def test_no_list_gave_any_other_cursor(cursor: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        page(range(300), cursor)
    assert refused.value.path == "$.cursor"


def test_a_list_that_became_shorter_says_so() -> None:
    with pytest.raises(InvalidParams, match="no longer reaches this far"):
        page([1, 2], cursor_to(2))
