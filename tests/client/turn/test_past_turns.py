"""The conversation as the model sees it."""

from __future__ import annotations

import pytest

from ragchat.turn.past_turns import (
    NOT_GROUNDED,
    NOT_SEARCHED,
    history_messages,
    newest_that_fit,
    turn_tokens,
)
from tests.support.turns import turn


def test_past_turns_become_alternating_messages_oldest_first() -> None:
    messages = history_messages([turn("One?", "Uno."), turn("Two?", "Dos.")])
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "One?"),
        ("assistant", "Uno."),
        ("user", "Two?"),
        ("assistant", "Dos."),
    ]


def test_marks_of_old_passages_are_taken_out_but_links_and_years_stay() -> None:
    answer = "It is blue [1], or [2][3] red [4, 5]; see [the page](x) of [2019]."
    assert history_messages([turn("?", answer)])[1]["content"] == (
        "It is blue, or red; see [the page](x) of [2019]."
    )


@pytest.mark.parametrize("line", [NOT_GROUNDED, NOT_SEARCHED])
def test_our_own_line_is_not_put_into_the_models_mouth(line: str) -> None:
    assert history_messages([turn("?", f"Hello.\n\n{line}")])[1]["content"] == "Hello."


def test_the_newest_turns_that_fit_are_kept_without_a_gap() -> None:
    small, large = turn("a?", "b."), turn("long?", "word " * 500)
    assert newest_that_fit([small, large, small, small], 3 * turn_tokens(small)) == [small, small]
    assert newest_that_fit([small, small], 2 * turn_tokens(small)) == [small, small]
    assert newest_that_fit([small, small], 0) == []
    assert newest_that_fit([], 100) == []
