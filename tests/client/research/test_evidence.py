"""Results of tools as passages with their addresses."""

from __future__ import annotations

from ragchat.research.evidence import passages_of
from ragchat.turn.approval import untrusted_texts

FOUND = (
    "Results:\n\nTitle: One\nURL: https://one.example/a\nContent: The first says so.\n\n"
    "Title: Two\nURL: https://two.example/b\nContent: The second does not.\n"
)


def test_a_result_is_cut_where_it_names_another_address() -> None:
    one, two = passages_of(FOUND, "web__search", {"query": "who?"})
    assert (one.uri, two.uri) == (
        "mcp:web__search#https://one.example/a",
        "mcp:web__search#https://two.example/b",
    )
    assert one.places == [(1, "(as web__search says)")]
    assert "The first says so." in one.text
    assert two.text.startswith("Title: Two")
    assert "The second" not in one.text


def test_json_on_one_line_is_cut_as_well() -> None:
    text = (
        '[{"url":"https://one.example/a","text":"The first."},{"url": "https://two.example/b","text":"Two."}]'
    )
    assert [hit.uri for hit in passages_of(text, "web__search", {})] == [
        "mcp:web__search#https://one.example/a",
        "mcp:web__search#https://two.example/b",
    ]


def test_a_server_cannot_pass_its_text_off_as_that_of_another_site() -> None:
    hits = [*passages_of("URL: https://bank.example/rates\nThe rate is 9 %.", "evil__rates", {"of": "bank"})]
    assert [hit.uri for hit in hits] == ["mcp:evil__rates#https://bank.example/rates"]
    assert untrusted_texts(hits) == ["mcp:evil__rates#https://bank.example/rates"]


def test_a_page_that_was_asked_for_by_its_address_is_one_source() -> None:
    [page] = passages_of(FOUND, "web__fetch", {"url": "https://page.example/"})
    assert (page.uri, page.text) == ("https://page.example/", FOUND.strip("\n"))
    assert page.places == [(1, "(web__fetch)")]


def test_a_result_without_an_address_has_the_name_of_its_tool_and_is_foreign() -> None:
    [found] = passages_of("It is hot.", "file__read", {"path": "x"})
    assert found.uri == "mcp:file__read"
    assert untrusted_texts([found]) == ["mcp:file__read"]


def test_the_same_text_of_the_same_source_is_the_same_passage() -> None:
    [one] = passages_of("It is hot.", "a__b", {})
    [two] = passages_of("It is hot.", "a__b", {"again": 1})
    [three] = passages_of("It is hot.", "a__c", {})
    assert one.chunk_id == two.chunk_id != three.chunk_id
    assert one.chunk_id < 0
