"""The reasoning of a model is not part of its answer, however the pieces are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragchat.llm.reasoning import ReasoningSplitter, split_whole


def split(pieces: list[str]) -> tuple[str, str]:
    """The reasoning and the answer."""
    splitter = ReasoningSplitter()
    parts = [*map(splitter.feed, pieces), splitter.finish()]
    return "".join(part for part, _ in parts), "".join(part for _, part in parts)


@given(st.lists(st.integers(0, 60)), st.sampled_from(["", "\n", "  \n"]))
def test_reasoning_is_removed_wherever_the_pieces_are_cut(cuts: list[int], before: str) -> None:
    text = f"{before}<think>\nTea? [3] <b>\n</think>\n\nIt is 70 degrees [1]."
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert split(pieces) == ("\nTea? [3] <b>\n", "It is 70 degrees [1].")


@given(st.text(alphabet="<think>/ a\n"), st.integers(0, 20))
def test_any_other_answer_stays_as_it_is(text: str, cut: int) -> None:
    if not text.lstrip().startswith("<think>"):
        assert split([text[:cut], text[cut:]]) == ("", text)


def test_an_answer_is_not_held_back() -> None:
    splitter = ReasoningSplitter()
    assert [splitter.feed(piece)[1] for piece in ("<th", "e tea>", " is", " <think>")] == [
        "",
        "<the tea>",
        " is",
        " <think>",
    ]


def test_reasoning_is_not_held_back_either() -> None:
    splitter = ReasoningSplitter()
    fed = [splitter.feed(piece)[0] for piece in ("<think>Hm", ", tea </", "b> ", "</thin", "k> Tea")]
    assert fed == ["Hm", ", tea ", "</b> ", "", ""]


def test_reasoning_without_an_end_is_no_answer() -> None:
    assert split(["<think>", "Hm, tea", " …"]) == ("Hm, tea …", "")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Hm, tea.\n</think>\n\nIt is hot.", ("Hm, tea.\n", "It is hot.")),
        ("The tag `</think>` ends it.", ("", "The tag `</think>` ends it.")),
        ("First <think>, then </think>.", ("", "First <think>, then </think>.")),
        ("It is hot.", ("", "It is hot.")),
    ],
)
def test_reasoning_that_has_only_an_end_is_no_answer(text: str, parts: tuple[str, str]) -> None:
    assert split_whole(text) == parts
