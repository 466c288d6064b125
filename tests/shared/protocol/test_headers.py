"""Headers that repeat what the body says."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.http.errors import HeaderMismatch
from ragmcp.protocol.headers import Mirror, check, check_mirrors, mirrored, mirrors, read, written


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("", ""),
        ("us west 1", "us west 1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ],
)
def test_a_value_is_written_as_the_specification_shows(value: str, header: str) -> None:
    assert written(value) == header
    assert read(header) == value


@given(st.text())
def test_every_text_comes_back_and_never_breaks_the_header(value: str) -> None:
    header = written(value)
    assert header.isascii()
    assert "\n" not in header
    assert read(header) == value


@pytest.mark.parametrize("header", ["=?base64?%%%?=", "=?base64?/w==?=", "a\nb", "ü"])
def test_a_value_nobody_may_write_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(header)


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def annotated(name: Any, type: Any = "string", **more: Any) -> dict[str, Any]:
    return {"type": type, "x-mcp-header": name, **more}


def test_arguments_are_found_at_any_depth_of_properties() -> None:
    nested = schema(region=annotated("Region"), deep=schema(number=annotated("Number", ["integer", "null"])))
    found = set(mirrors(nested))
    assert found == {Mirror("mcp-param-region", ("region",)), Mirror("mcp-param-number", ("deep", "number"))}
    arguments = {"region": "north", "deep": {"number": 42}, "other": 1}
    assert mirrored(found, arguments) == {"mcp-param-region": "north", "mcp-param-number": "42"}
    arguments["deep"] = {"number": 42.0}
    assert mirrored(found, arguments) == {"mcp-param-region": "north", "mcp-param-number": "42"}


@pytest.mark.parametrize("arguments", [{}, {"flag": None}, {"flag": {}}, {"flag": [True]}])
def test_what_is_absent_or_null_has_no_header(arguments: dict[str, Any]) -> None:
    assert mirrored(mirrors(schema(flag=annotated("Flag", "boolean"))), arguments) == {}


def test_truth_is_written_in_lower_case() -> None:
    assert mirrored(mirrors(schema(f=annotated("F", "boolean"))), {"f": False}) == {"mcp-param-f": "false"}


@pytest.mark.parametrize(
    "bad",
    [
        schema(a=annotated("")),
        schema(a=annotated("My Region")),
        schema(a=annotated("Region:Primary")),
        schema(a=annotated("Région")),
        schema(a=annotated("Region\t1")),
        schema(a=annotated("A\r\nSet-Cookie")),
        schema(a=annotated(5)),
        schema(a=annotated("A", "object")),
        schema(a=annotated("A", "array")),
        schema(a=annotated("A", "null")),
        schema(a=annotated("A", "number")),
        schema(a=annotated("A", None)),
        schema(a=annotated("Same"), b=annotated("Same")),
        schema(a=annotated("Same"), b=annotated("same")),
        schema(a={"type": "array", "items": annotated("A")}),
        schema(a={"anyOf": [annotated("A")]}),
        schema(a={"items": schema(b=annotated("A"))}),
        {"type": "object", "$defs": {"a": annotated("A")}},
        {"type": "object", "if": schema(a=annotated("A"))},
        annotated("Root", "object"),
    ],
)
def test_a_schema_that_asks_for_headers_in_a_wrong_way_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        mirrors(bad)


def test_a_property_or_a_value_of_that_name_is_no_annotation() -> None:
    named = {"x-mcp-header": {"type": "string", "default": {"x-mcp-header": "no"}}}
    assert mirrors({"type": "object", "properties": named, "required": ["x-mcp-header"]}) == ()


@given(st.text())
def test_a_header_says_what_the_body_says_however_it_is_written(value: str) -> None:
    check("mcp-name", written(value), value)
    check("mcp-name", f" \t{written(value)} ", value)
    with pytest.raises(HeaderMismatch):
        check("mcp-name", written(value), value + "x")


@pytest.mark.parametrize("given", [None, "", "other", "ü", "=?base64?SGVsbG8?=", "=?base64?/w==?="])
def test_a_header_that_says_something_else_is_refused(given: str | None) -> None:
    with pytest.raises(HeaderMismatch):
        check("mcp-name", given, "ü")


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (42, "42"),
        (42, "42.0"),
        (-7, "-7.00"),
        (42.0, "42"),
        (42.0, "42.0"),
        (0, "-0"),
        (True, "true"),
        ("42.0", "42.0"),
        (2**60, str(2**60)),
    ],
)
def test_an_argument_and_its_header_are_the_same(value: Any, given: str) -> None:
    check_mirrors([Mirror("mcp-param-x", ("a", "x"))], {"a": {"x": value}}, {"mcp-param-x": given})


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (42, "43"),
        (42, "42.5"),
        (42.0, "43"),
        (42.5, "42.5"),
        (42, "4_2"),
        (42, "٤٢"),
        (42, None),
        (1, "true"),
        (True, "1"),
        ("42", "42.0"),
        (None, "null"),
        ([1], "[1]"),
        (1, "9" * 5000),
    ],
)
def test_an_argument_and_its_header_are_not_the_same(value: Any, given: str | None) -> None:
    with pytest.raises(HeaderMismatch):
        check_mirrors([Mirror("mcp-param-x", ("x",))], {"x": value}, {"mcp-param-x": given})


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers() | st.text() | st.booleans()))
def test_whatever_a_header_holds_there_is_nothing_but_a_mismatch(name: str, header: str, body: Any) -> None:
    with contextlib.suppress(HeaderMismatch):
        check("mcp-name", header, name)
    with contextlib.suppress(HeaderMismatch):
        check_mirrors([Mirror("mcp-param-x", (name,))], body, {"mcp-param-x": header})
