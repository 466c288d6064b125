"""The significant words of a question in quotations."""

from __future__ import annotations

import pytest

from ragchat.highlight import Highlight
from ragchat.ui.render.stream import AnswerStream
from tests.support.screens import pipe, terminal

QUOTATION = "> The boiler is serviced in March. [1]\n\nThe boiler waits.\n"


def standing_out(question: str, text: str) -> list[str]:
    return [part for part, stands_out in Highlight(question).parts(text) if stands_out]


@pytest.mark.parametrize(
    ("question", "text", "found"),
    [
        ("When is the boiler serviced?", "The boiler service is in March.", ["boiler", "service"]),
        ("What is the retry limit?", "retryAfter = 3; max_retries = 5", ["retryAfter", "max_retries"]),
        ("Wo steht das Fahrrad?", "Alle Fahrräder sind im Keller.", ["Fahrräder"]),
        ("Wo steht das Öl?", "Das O\u0308l steht im Keller.", ["O\u0308l", "steht"]),
        ("चाबी कहाँ है?", "अतिरिक्त चाबी ऊपर है।", ["चाबी"]),
        ("中国的首都?", "北京是中国首都。", ["中国", "首都"]),
        ("What is it?", "What is it, then?", []),
    ],
)
def test_significant_words_are_found_inflected_and_in_identifiers(
    question: str, text: str, found: list[str]
) -> None:
    assert standing_out(question, text) == found


def test_the_parts_join_to_the_text() -> None:
    text = "中国首都 is Beijing, retryAfter the boiler"
    assert "".join(part for part, _ in Highlight("中国首都 boiler retry").parts(text)) == text


@pytest.fixture
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.usefixtures("xterm")
def test_they_are_bold_in_quotations_and_nowhere_else() -> None:
    console, file = terminal(60, 20)
    stream = AnswerStream(console, animated=False)
    stream.highlight = Highlight("boiler")
    stream.take(QUOTATION)
    stream.finish()
    assert file.getvalue().count("boiler") == 2
    assert "boiler is" not in file.getvalue()
    assert "boiler waits" in file.getvalue()


@pytest.mark.usefixtures("xterm")
@pytest.mark.parametrize("quotation", ["```\nboiler = 1\n```\n", "| a |\n| --- |\n| boiler = 1 |\n"])
def test_they_are_bold_in_quoted_code_and_tables(quotation: str) -> None:
    console, file = terminal(60, 20)
    stream = AnswerStream(console, animated=False)
    stream.highlight = Highlight("boiler")
    stream.take(quotation)
    stream.finish()
    assert "boiler" in file.getvalue()
    assert "boiler = 1" not in file.getvalue()


def test_a_pipe_gets_the_text_as_it_is() -> None:
    console, file = pipe()
    stream = AnswerStream(console, animated=False)
    stream.highlight = Highlight("boiler")
    stream.take(QUOTATION)
    stream.finish()
    assert file.getvalue() == QUOTATION
