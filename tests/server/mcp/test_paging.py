"""Pages of results. Covers `ragmemory.mcp.toolsets.paging`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from ragmcp.errors import InvalidArguments
from ragmcp.protocol.pagination import cursor_to
from ragmemory.limits import MAX_OFFSET, TOKEN_BYTES
from ragmemory.mcp.toolsets.paging import DEFAULT_TOKENS, first_of, page_of, text_page


@given(items=st.lists(st.text(max_size=60)), max_tokens=st.integers(1, 30))
def test_pages_hold_every_item_once_in_order_and_keep_to_the_budget(
    items: list[str], max_tokens: int
) -> None:
    found: list[str] = []
    page, cursor = page_of(items, "", max_tokens)
    found += page
    while cursor is not UNSET:
        assert page
        page, cursor = page_of(items, cursor, max_tokens)
        found += page
    assert found == items


def test_an_item_larger_than_the_budget_has_a_page_of_its_own() -> None:
    assert page_of(["x" * 100, "y"], "", 1) == (["x" * 100], cursor_to(1))


def test_what_a_result_without_pages_leaves_out_is_counted() -> None:
    assert first_of([]) == ([], 0)
    assert first_of(["x"]) == (["x"], 0)
    named, more = first_of(["x" * TOKEN_BYTES] * DEFAULT_TOKENS)
    assert 0 < more < DEFAULT_TOKENS
    assert len(named) + more == DEFAULT_TOKENS


@given(text=st.text(), max_tokens=st.integers(1, 10))
def test_the_pages_of_a_text_join_to_it(text: str, max_tokens: int) -> None:
    found, cursor = text_page(text, "", max_tokens)
    while cursor is not UNSET:
        part, cursor = text_page(text, cursor, max_tokens)
        assert len(part.encode()) <= max_tokens * TOKEN_BYTES
        found += part
    assert found == text


def test_a_text_is_cut_after_a_line_if_there_is_one() -> None:
    assert text_page("one\ntwo\nthree\n", "", 3) == ("one\ntwo\n", cursor_to(8))
    assert text_page("onetwothree", "", 1) == ("onet", cursor_to(4))


@pytest.mark.parametrize("cursor", ["x", cursor_to(9), cursor_to(MAX_OFFSET + 1)])
def test_a_cursor_that_no_list_returned_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidArguments):
        page_of(["a"], cursor)
    with pytest.raises(InvalidArguments):
        text_page("a", cursor, 9)
