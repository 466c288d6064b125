"""What other programs may rely on in the commands: exit codes, the two streams, the fields of the JSON.

Covers `ragchat.commands.serve`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragchat.offline.answer import NO_MODEL
from tests.support.program import Program, program_in

HIT = {
    "rank": int,
    "score": float,
    "chunk_id": int,
    "document_id": str,
    "uri": str,
    "title": str,
    "heading": str,
    "start_line": int,
    "end_line": int,
    "text": str,
    "metadata": dict,
    "context": str,
    "surroundings": str,
    "location": str,
    "places": list,
}
CITATION = {
    "n": int,
    "chunk_id": int,
    "document_id": str,
    "uri": str,
    "title": str,
    "heading": str,
    "start_line": int,
    "end_line": int,
    "quote": str,
    "verified": bool,
    "location": str,
    "places": list,
}
CARD = {"n": int, "location": str, "heading": str, "text": str, "best": list, "score": float}
ANSWER = {
    "question": str,
    "answer": str,
    "grounded": bool,
    "citations": list,
    "nearest": list,
    "missing": list,
    "cards": list,
    "model": str,
    "usage": dict,
    "timings": dict,
    "session_id": str,
    "turn_id": str,
    "notices": list,
    "corrections": dict,
}
GARDEN = "# Garden\n\n## Watering\n\nThe tomato beds are watered every morning at six.\n"


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    return program_in(tmp_path)


@pytest.fixture
def garden(ragchat: Program) -> Program:
    """A memory of one document."""
    assert ragchat("inject", "-", "--uri", "mem:garden", stdin=GARDEN).code == 0
    return ragchat


def assert_holds(document: dict[str, Any], fields: dict[str, type]) -> None:
    """Every field is there and of its type; more may be there."""
    kinds = {name: type(document.get(name)) for name in fields}
    assert kinds == fields


@pytest.mark.parametrize(
    "words",
    [
        ("bogus",),
        ("ask",),
        ("query",),
        ("inject",),
        ("run",),
        ("memory",),
        ("memory", "bogus"),
        ("session", "show"),
        ("mcp", "config", "bogus"),
        ("query", "x", "-k", "0"),
        ("query", "x", "-k", "-3"),
        ("query", "x", "-k", "many"),
        ("ask", "x", "--bogus"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_with_nothing_on_stdout(ragchat: Program, words: tuple[str, ...]) -> None:
    done = ragchat(*words)

    assert (done.code, done.out) == (2, "")
    assert "usage: ragchat" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("query", "-k", "0", "x", "--json"),
        ("inject", "--json"),
        ("mcp", "config", "bogus", "--json"),
        ("ask", "x", "-c", "--session", "y", "--json"),
        ("--json",),
    ],
    ids=" ".join,
)
def test_wrong_usage_with_json_is_a_document_too(ragchat: Program, words: tuple[str, ...]) -> None:
    done = ragchat(*words)

    assert done.code == 2
    assert "usage: ragchat" in done.err
    error = done.json["error"]
    assert error["code"] == "USAGE"
    assert error["message"] in done.err
    assert "--help` lists the arguments." in error["hint"]


def test_a_server_that_cannot_start_says_so_in_json_on_stdout(ragchat: Program) -> None:
    done = ragchat("serve", "--port", "0", "--token-file", "nowhere", "--json")

    assert done.code == 1
    assert done.json["error"]["code"] == "SETTINGS_INVALID"
    assert "nowhere" in done.json["error"]["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "x", "--session", "nowhere"),
        ("session", "show", "nowhere"),
        ("memory", "show", "nowhere"),
        ("run", "nowhere.toml"),
        ("--config", "nowhere.toml", "query", "x"),
    ],
    ids=" ".join,
)
def test_a_failure_is_exit_code_1_and_one_sentence_on_stderr(
    ragchat: Program, words: tuple[str, ...]
) -> None:
    done = ragchat(*words)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("ragchat: ")
    assert "Traceback" not in done.err


@pytest.mark.smoke
def test_a_search_has_the_fields_of_the_contract(garden: Program) -> None:
    done = garden("query", "tomato beds", "--json")

    assert (done.code, done.err) == (0, "")
    assert done.json["query"] == "tomato beds"
    [hit] = done.json["hits"]
    assert_holds(hit, HIT)
    assert (hit["rank"], hit["uri"]) == (1, "mem:garden")
    assert 0 <= hit["score"] <= 1
    lines = GARDEN.splitlines()[hit["start_line"] - 1 : hit["end_line"]]
    assert hit["text"].strip() == "\n".join(lines).strip()


def test_a_search_of_an_empty_memory_finds_nothing_and_is_done(ragchat: Program) -> None:
    done = ragchat("query", "tomato", "--json")

    assert (done.code, done.json) == (0, {"query": "tomato", "hits": [], "notices": [], "corrections": {}})


@pytest.mark.smoke
def test_a_grounded_answer_has_the_fields_of_the_contract_and_quotes_word_for_word(garden: Program) -> None:
    done = garden("ask", "When are the tomato beds watered?", "--json")

    assert (done.code, done.err) == (0, f"{NO_MODEL}\n")
    assert_holds(done.json, ANSWER)
    assert done.json["grounded"] is True
    for card in done.json["cards"]:
        assert_holds(card, CARD)
        assert card["text"] in GARDEN
    for citation in done.json["citations"]:
        assert_holds(citation, CITATION)
        assert citation["verified"] is True
        assert citation["quote"] in GARDEN
    assert "watered every morning at six" in done.json["answer"]


def test_what_is_said_beside_a_result_stands_in_the_document_too(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path, RAGCHAT_SESSIONS_PATH=str(tmp_path))  # a folder, where nothing is saved
    assert ragchat("inject", "-", "--uri", "mem:garden", stdin=GARDEN).code == 0
    for command, said in (
        ("query", ["Only the first"]),
        ("ask", ["Only the first", NO_MODEL, "This turn was not saved."]),
    ):
        done = ragchat(command, "-", "--json", stdin="tomato beds " * 2_000)

        assert done.code == 0
        notices = done.json["notices"]
        assert done.err == "".join(f"{notice}\n" for notice in notices)
        assert all(notice.startswith(start) for notice, start in zip(notices, said, strict=True))


def test_what_memory_does_not_hold_is_not_grounded_and_cites_nothing(garden: Program) -> None:
    done = garden("ask", "Who won the world cup in 1998?", "--json")

    assert done.code == 0
    assert_holds(done.json, ANSWER)
    assert (done.json["grounded"], done.json["citations"]) == (False, [])


def test_loading_reports_every_document_and_the_sums(ragchat: Program) -> None:
    note = ragchat.folder / "note.md"
    for text, status in (("one", "added"), ("one", "unchanged"), ("two", "updated")):
        note.write_text(text, encoding="utf-8")

        done = ragchat("inject", "note.md", "nowhere.md", "--json")

        assert done.code == 1
        by_status = {document["status"]: document for document in done.json["documents"]}
        fields = {"uri": str, "document_id": str, "status": str, "chunks": int, "error": type(None)}
        assert_holds(by_status[status], fields)
        assert "nowhere.md" in by_status["failed"]["error"]
        sums = {name: done.json[name] for name in ("added", "updated", "unchanged", "failed")}
        assert sums == {"added": 0, "updated": 0, "unchanged": 0, status: 1, "failed": 1}
