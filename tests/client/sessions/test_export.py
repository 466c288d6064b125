"""Sessions as documents."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ragchat.grounding.types import Citation
from ragchat.sessions.export import export_session
from ragchat.sessions.types import Session
from ragchat.turn.types import Turn
from tests.support.turns import FLAWED, FLAWS, hit, turn

SESSION = Session(
    "abc",
    "What is\ntea?",
    "2026-01-01T00:00:00.000Z",
    [
        turn(
            "What is\ntea?",
            "> Tea is a drink. [1]",
            cited=[Citation.of(1, hit("Tea is a drink.", heading="Tea"), "x")],
        ),
        turn("And coffee?", "Unknown.", turn_id="t2"),
    ],
)


def test_markdown_holds_questions_answers_and_sources() -> None:
    assert export_session(SESSION, "markdown") == (
        "# What is tea?\n\nSession abc, 2026-01-01T00:00:00.000Z.\n\n"
        "## What is tea?\n\nWhat is\ntea?\n\n> Tea is a drink. [1]\n\n"
        "- [1] Notes, Tea, <file:///notes/1.md>, line 1\n\n*offline, 2026-01-01T00:00:00.000Z*\n\n"
        "## And coffee?\n\nUnknown.\n\n*offline, 2026-01-01T00:00:00.000Z*\n\n<!-- exported by ragchat -->\n"
    )


def test_markdown_marks_what_the_checks_found_in_an_answer() -> None:
    session = Session("abc", "Why?", "2026-01-01T00:00:00.000Z", [FLAWED])
    assert [one for one in export_session(session, "markdown").split("\n\n") if one[0] == "!"] == FLAWS


def test_json_holds_everything() -> None:
    exported = msgspec.json.decode(export_session(SESSION, "json"))
    assert [Turn.of_record(msgspec.json.encode(turn)) for turn in exported.pop("turns")] == SESSION.turns
    assert msgspec.convert(exported, Session) == replace(SESSION, turns=[])


def test_a_title_that_begins_the_heading_path_is_not_said_twice() -> None:
    cited = [Citation.of(1, hit("1.2 bar.", title="Flat", heading="Flat > Boiler"), "")]
    session = Session("abc", "Why?", "2026-01-01T00:00:00.000Z", [turn("Why?", "So [1].", cited=cited)])
    assert "- [1] Flat > Boiler, <file:///notes/1.md>" in export_session(session, "markdown")


def test_a_source_without_pages_is_cited_by_its_lines() -> None:
    tea = hit("Tea is a drink.\nIt is hot.")
    for quote, lines in (("It is hot.", "line 2"), ("", "lines 1 to 2")):
        session = Session(
            "abc",
            "Why?",
            "2026-01-01T00:00:00.000Z",
            [turn("Why?", "So [1].", cited=[Citation.of(1, tea, quote)])],
        )
        assert f"<file:///notes/1.md>, {lines}\n" in export_session(session, "markdown")
