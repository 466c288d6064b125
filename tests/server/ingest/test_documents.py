from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcommon.text.rules import MAX_HEADING
from ragmemory.errors import BadArgument
from ragmemory.ingest.documents import document_id, first_heading, is_markdown, is_prose, make_document


def test_without_a_uri_the_hash_of_the_text_is_the_identity() -> None:
    document = make_document("Hällo", {})
    digest = hashlib.sha256("Hällo".encode())
    assert document.uri == f"sha256:{digest.hexdigest()}"
    assert document.digest == digest.digest()


def test_the_document_id_is_sixteen_digits_of_the_hash_of_the_uri() -> None:
    assert make_document("a", {"uri": "file:///x"}).document_id == document_id("file:///x")
    assert document_id("file:///x") == hashlib.sha256(b"file:///x").hexdigest()[:16]


def test_metadata_is_kept_as_given_whatever_the_order_of_its_keys() -> None:
    one = make_document("a", {"uri": "x", "b": [1, {"d": None, "c": 2.5}]})
    two = make_document("a", {"b": [1, {"c": 2.5, "d": None}], "uri": "x"})
    assert one.metadata == two.metadata == '{"b":[1,{"c":2.5,"d":null}],"uri":"x"}'


@pytest.mark.parametrize(
    ("text", "metadata", "title"),
    [
        ("# From the text", {"title": "Given"}, "Given"),
        ("intro\n\n## From the text ##\n\n# Later", {}, "From the text"),
        ("# From the text", {"title": ""}, "From the text"),
        ("# no heading", {"uri": "file:///x.txt"}, ""),
        ("# no heading", {"uri": "file:///x.PY"}, ""),
        ("# A heading", {"uri": "https://example.org/page"}, "A heading"),
        ("no heading at all", {}, ""),
    ],
)
def test_the_title_is_the_given_one_else_the_first_heading(
    text: str, metadata: dict[str, Any], title: str
) -> None:
    assert make_document(text, metadata).title == title


def test_a_heading_inside_fenced_code_is_ignored() -> None:
    assert first_heading("```\n# a comment\n~~~\n# another\n```\n# Real") == "Real"
    assert first_heading("~~~sh\n# a comment") == ""


def test_a_title_is_no_longer_than_a_heading_and_kept_whole_in_the_metadata() -> None:
    document = make_document("text", {"title": "word " * 10_000})
    assert len(document.title) == MAX_HEADING
    assert len(document.metadata) > 50_000


def test_an_underlined_line_is_a_heading_too() -> None:
    assert first_heading("Soup\n====\n\n# Salt\n") == "Soup"


def test_the_first_heading_is_looked_for_in_linear_time() -> None:
    # With the cube of it this would never end.
    assert first_heading("# a" + " " * 50_000 + "b\n" + "# a" + " " * 200 + "b\n") == "a" + " " * 200 + "b"


@pytest.mark.parametrize(
    ("uri", "answer"),
    [("a.md", True), ("a.MARKDOWN", True), ("a", True), ("a.v2", True), ("a.txt", False), ("a.csv", False)],
)
def test_markdown_is_what_has_no_extension_that_says_otherwise(uri: str, answer: bool) -> None:
    assert is_markdown(uri) is answer


@pytest.mark.parametrize("text", ["", " \n\t", "\u00a0\u2003"])
def test_a_blank_text_is_refused(text: str) -> None:
    with pytest.raises(BadArgument, match=r"^text is empty\.$"):
        make_document(text, {})


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_what_lies_at_the_limits_is_taken() -> None:
    metadata = {"uri": "u" * 4096, "deep": nested(63), "n": 10**4000, "note": "x" * 50_000}
    assert make_document("text", metadata).uri == "u" * 4096


def test_a_text_without_a_utf_8_form_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"^text holds half a character, the lone surrogate U\+DC80\.$"):
        make_document("caf\udc80", {})


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        ({"uri": " "}, "metadata.uri must be a string that is not empty."),
        ({"uri": 3}, "metadata.uri must be a string that is not empty."),
        ({"title": None}, "metadata.title must be a string."),
        ({"tags": "red"}, "metadata.tags must be a list of strings."),
        ({"tags": ["red", 1]}, "metadata.tags must be a list of strings."),
        (
            {"created_at": "last week"},
            "metadata.created_at must be a date or time in ISO 8601, such as 2026-01-31.",
        ),
        ({"uri": "a\0b"}, "metadata.uri holds a NUL character."),
        ({"uri": "u" * 4097}, "metadata.uri is longer than 4,096 characters."),
        ({"title": "half \ud83d"}, "metadata.title holds half a character, the lone surrogate U+D83D."),
        ({"tags": ["red", "a\0b"]}, "metadata.tags[1] holds a NUL character."),
        ({"from": {"a\0b": 1}}, "metadata.from has a key that holds a NUL character."),
        ({"n": [1, float("inf")]}, "metadata.n[1] is not a finite number."),
        ({"n": 10**5000}, "metadata has no form in JSON."),
        ({"n": object()}, "metadata has no form in JSON."),
        ({"deep": nested(64)}, "metadata.deep is nested more than 64 levels deep."),
        ({"deep": nested(5000)}, "metadata.deep is nested more than 64 levels deep."),
        ({"note": "x" * 65_536}, "metadata is longer than 65,536 bytes of JSON."),
        ({"n": list(range(1_000_000))}, "metadata is longer than 65,536 bytes of JSON."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_metadata_that_could_not_be_stored_or_found_again_is_refused(
    metadata: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadArgument) as caught:
        make_document("text", metadata)
    assert str(caught.value) == sentence


def test_a_nul_character_which_postgresql_cannot_store_is_replaced() -> None:
    document = make_document("a\0b", {"uri": "doc"})
    assert document.text == "a\ufffdb"
    assert document.digest == make_document("a\ufffdb", {"uri": "doc"}).digest


storable = st.characters(codec="utf-8", exclude_characters="\0")
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(storable),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(storable), inner),
    max_leaves=5,
)


@given(st.text(storable, min_size=1), st.dictionaries(st.text("abc"), json_values))
def test_any_text_with_any_unknown_metadata_is_a_valid_document(text: str, metadata: dict[str, Any]) -> None:
    if not text.isspace():
        assert make_document(text, metadata).text == text


def test_a_heading_ends_before_the_carriage_return() -> None:
    assert make_document("# Top\r\n\r\nHello.\r\n", {}).title == "Top"


def test_a_heading_far_from_the_beginning_is_not_the_title() -> None:
    assert make_document("Text.\n" * 100 + "# Top\n", {}).title == "Top"
    assert make_document("Text.\n" * 100_000 + "# Top\n", {}).title == ""


@pytest.mark.parametrize("rotated", ["", ".1", ".2.gz", "-20260131", ".2026-01-31", ".2026-01-31.1.xz"])
def test_a_rotated_log_is_no_conversation(rotated: str) -> None:
    assert not is_prose(f"file:///var/log/app.log{rotated}")
    assert is_prose(f"file:///notes/catalog{rotated}.txt")
    assert is_prose("file:///notes/1.2")
