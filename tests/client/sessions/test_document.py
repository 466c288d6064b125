"""Sessions as documents of memory."""

from __future__ import annotations

from msgspec.structs import replace

from ragchat.grounding.types import Citation
from ragchat.sessions.document import as_document, report_as_document
from ragchat.sessions.types import Session
from ragchat.turn.approval import untrusted_texts
from ragchat.turn.past_turns import NOT_GROUNDED
from ragchat.turn.types import Trace
from tests.support.turns import FLAWED, FLAWS, hit, turn


def test_a_document_holds_the_title_the_date_and_the_turns() -> None:
    turns = [
        turn("What is\ntea?", "> Tea is a drink. [1]"),
        turn("And coffee?", f"I do not know.\n\n{NOT_GROUNDED}", turn_id="t2"),
    ]
    text, metadata = as_document(Session("abc", "What is\ntea?", "not a time", turns))
    at = "2026-01-01"
    said = [line for line in text.splitlines() if line and at not in line]
    assert said == [
        *("# What is tea?", "Conversation with ragchat on not a time", "What is", "tea?"),
        *("> Tea is a drink.", "And coffee?", "I do not know."),
    ]
    assert [line.partition(" (")[0] for line in text.splitlines() if at in line] == [
        "**You**",
        "**ragchat**",
    ] * 2
    assert metadata == {"uri": "ragchat:session/abc", "title": "What is tea?", "created_at": "not a time"}


def test_an_answer_in_a_document_is_marked_with_what_the_checks_found() -> None:
    text, _ = as_document(Session("abc", "Why?", "2026-01-01", [FLAWED]))
    assert text.endswith("\n\n".join(["\nIt is 1.5 bar. Hans Meier set it.", *FLAWS]) + "\n")


def test_headings_of_an_answer_are_no_headings_of_the_conversation() -> None:
    answer = "# **Tea**\nIt is hot.\n\nUse\n===\n```sh\n# boil\n```\n> # Quoted"
    text, _ = as_document(Session("abc", "What is tea?", "2026-01-01", [turn("Say:\n## tea", answer)]))
    said = [line for line in text.splitlines() if line and "2026" not in line]
    assert said == [
        *("# What is tea?", "Say:", "**tea**"),
        *("**Tea**", "It is hot.", "**Use**", "```sh", "# boil", "```", "> # Quoted"),
    ]


def test_a_session_with_a_report_counts_as_generated() -> None:
    report = replace(turn("Is tea hot?", "Tea is hot [1]."), trace=Trace(is_report=True))
    _, metadata = as_document(Session("abc", "Tea", "2026-01-01", [turn("Hello?", "Hello."), report]))
    assert metadata["generated"] is True
    assert untrusted_texts([replace(hit("Tea is hot."), uri=metadata["uri"])]) == [metadata["uri"]]


def test_a_report_has_its_sources_and_counts_as_generated_and_foreign() -> None:
    cited = Citation.of(1, hit("Tea is hot."), "Tea is hot.")
    text, metadata = report_as_document(turn("Is tea\nhot?", "Tea is hot [1].", cited=[cited]))
    assert text.splitlines() == [
        *("# Report: Is tea hot?", "", "Tea is hot [1].", ""),
        *("- [1] Notes, <file:///notes/1.md>, line 1",),
    ]
    assert (metadata["uri"], metadata["generated"]) == ("ragchat:report/t1", True)
    assert untrusted_texts([replace(hit(text), uri=metadata["uri"])]) == [metadata["uri"]]
