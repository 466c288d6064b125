"""Questions about a mail itself."""

from __future__ import annotations

import pytest

from ragchat.offline.mail import asks_for_header
from ragchat.offline.words import index_terms


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Who wrote the mail about the tent?", True),
        ("What is the subject of the e-mail?", True),
        ("Wer hat die Nachricht geschrieben?", True),
        ("When was the tent sent?", False),
        ("What does the mail say about tents?", False),
    ],
)
def test_a_question_for_the_writer_or_the_subject_is_answered_by_the_header(
    question: str, asks: bool
) -> None:
    assert asks_for_header(frozenset(index_terms(question))) is asks
