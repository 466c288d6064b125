"""The line at the bottom of the chat."""

from __future__ import annotations

from prompt_toolkit.formatted_text import fragment_list_to_text

from ragchat.ui.prompt.toolbar import Status, toolbar


def shown(status: Status, columns: int = 80) -> str:
    return fragment_list_to_text(toolbar(status, columns))


def test_the_toolbar_shows_model_memory_context_and_tokens() -> None:
    status = Status("gpt-x", documents=1, chunks=1204, tokens=345, history=0.123)
    assert shown(status) == " gpt-x · 1 document, 1,204 chunks · history 12% of context · 345 tokens"


def test_turns_that_no_longer_fit_are_counted_next_to_the_share_of_the_history() -> None:
    status = Status("gpt-x", history=0.02, left_out=3)
    assert shown(status) == " gpt-x · history 2% of context, 3 turns left out"


def test_tokens_that_the_server_did_not_count_are_about_so_many() -> None:
    status = Status("gpt-x", tokens=345, tokens_reported=False)
    assert shown(status) == " gpt-x · about 345 tokens"


def test_the_toolbar_shows_which_documents_are_asked() -> None:
    assert shown(Status("offline", scope="notes/")) == " offline · in notes/"


def test_the_toolbar_shows_nothing_that_is_not_known_yet() -> None:
    assert shown(Status()) == " starting"


def test_a_narrow_toolbar_leaves_whole_parts_out() -> None:
    status = Status("gpt-x", documents=1, chunks=1204, tokens=345, history=0.123)
    assert shown(status, 40) == " gpt-x · 1 document, 1,204 chunks"
