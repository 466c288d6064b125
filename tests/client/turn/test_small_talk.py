"""Small talk: which messages are, and what is replied."""

from __future__ import annotations

import pytest

from ragchat.turn.small_talk import small_talk


@pytest.mark.parametrize(
    "message",
    [
        "hi",
        "Hello!",
        "Hey there :-)",
        "Thanks a lot",
        "thank you very much!",
        "ok, thanks",
        "Guten Morgen",
        "danke schön",
    ],
)
def test_greetings_and_thanks_have_a_reply(message: str) -> None:
    assert small_talk(message)


@pytest.mark.parametrize(
    "message", ["What can you do?", "hi, what can you do", "help!", "Was kannst du?", "Hilfe"]
)
def test_a_question_about_the_program_is_answered_with_what_it_does(message: str) -> None:
    reply = small_talk(message)
    assert reply is not None
    assert "ragchat inject" in reply


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ("more", "/more"),
        ("open the second source", "/open"),
        ("Where does it say that?", "/sources"),
        ("wo steht das?", "/sources"),
        ("What files do you have?", "/memory"),
        ("list my documents", "/memory"),
        ("How many notes do I have?", "/memory"),
        ("Zeig mir alle meine Notizen!", "/memory"),
        ("forget that", "/forget"),
        ("welche Dokumente hast du?", "/memory"),
    ],
)
def test_a_command_in_words_is_answered_with_the_command(message: str, command: str) -> None:
    assert command in (small_talk(message) or "")


def test_the_reply_has_the_language_of_the_message() -> None:
    assert (small_talk("thanks") or "").startswith("You're welcome")
    assert (small_talk("danke") or "").startswith("Gern")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "?",
        "there",
        "thanks for the boiler manual",
        "Who wrote the thanks?",
        "What can you do with the boiler?",
        "hi " * 60,
        "help with the printer",
        "What does hello mean?",
    ],
)
def test_a_message_with_any_other_word_is_a_question(message: str) -> None:
    assert small_talk(message) is None
