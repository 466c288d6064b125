"""Sub-questions without a model; with one, see `test_cli_research`."""

from __future__ import annotations

import pytest

from ragchat.research.plan import parts


@pytest.mark.parametrize(
    ("question", "pieces"),
    [
        ("How is tea brewed?", []),
        ("How are tea and coffee brewed?", []),
        ("How is tea brewed? What does it cost?", ["How is tea brewed?", "What does it cost?"]),
        ("How is tea brewed and what does it cost?", ["How is tea brewed", "what does it cost?"]),
        ("Wie heiß ist Tee und wann trinkt man ihn?", ["Wie heiß ist Tee", "wann trinkt man ihn?"]),
    ],
)
def test_a_question_with_several_parts_is_asked_as_a_whole_and_by_them(
    question: str, pieces: list[str]
) -> None:
    assert [sub.text for sub in parts(question, 5)] == [question, *pieces]


def test_there_are_at_most_so_many() -> None:
    assert len(parts("One? Two? Three?", 2)) == 2
