"""The shapes of a conversation."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ragchat.types import Candidate, Citation, ModelPlace, Trace, Turn
from tests.support.turns import hit, turn


def test_the_public_form_of_a_turn_is_the_contract_of_ask_json() -> None:
    answered = turn("What?", "That [1].", cited=[Citation.of(1, hit("That.", heading="A > B"), "That.")])
    public = answered.public()
    assert list(public) == [
        "question",
        "answer",
        "grounded",
        "citations",
        "nearest",
        "missing",
        "corrections",
        "unsupported",
        "cards",
        "model",
        "usage",
        "timings",
        "session_id",
        "turn_id",
        "unknown_citations",
    ]
    assert public["citations"] == [
        {
            "n": 1,
            "chunk_id": 1,
            "document_id": "doc1",
            "uri": "file:///notes/1.md",
            "title": "Notes",
            "heading": "A > B",
            "start_line": 1,
            "end_line": 1,
            "quote": "That.",
            "verified": True,
            "quote_start_line": 1,
            "quote_end_line": 1,
            "location": "1.md:1",
            "places": [],
        }
    ]
    assert public["model"] == "offline"
    assert {"prompt_tokens", "completion_tokens"} <= public["usage"].keys()


def test_a_quotation_of_one_cell_is_cited_by_the_cell() -> None:
    row = replace(
        hit("| Item | Price |\n| --- | --- |\n| Tea | 4.5 |"),
        uri="file:///budget.xlsx",
        start_line=3,
        end_line=5,
        places=[(3, "sheet Q3 row 1"), (5, "sheet Q3 row 2")],
    )
    assert Citation.of(1, row, "4.5").location == "budget.xlsx sheet Q3 B2"
    assert Citation.of(1, row, "| Tea | 4.5 |").location == "budget.xlsx sheet Q3 row 2"


def test_a_turn_survives_json_with_its_trace() -> None:
    trace = Trace(
        "q", [Candidate(hit("x"), True, "relevant", 1)], messages=[{"role": "user", "content": "é"}]
    )
    answered = msgspec.structs.replace(turn("What?"), trace=trace)
    assert msgspec.json.decode(msgspec.json.encode(answered), type=Turn) == answered


def test_a_key_is_never_shown() -> None:
    assert "secret" not in repr(ModelPlace("m", "http://x/v1", "secret"))


def test_a_citation_names_the_heading_above_its_quotation() -> None:
    text = "Article 1\nRead.\n\nArticle 2\nWrite.\n"
    found = replace(
        hit(text),
        heading="Chapter I",
        start_line=7,
        end_line=11,
        headings=[(7, "Article 1"), (10, "Article 2")],
    )
    assert Citation.of(1, found, "Read.").heading == "Chapter I > Article 1"
    assert Citation.of(1, found, "Write.").heading == "Chapter I > Article 2"
    assert Citation.of(1, found, "").heading == "Chapter I"
