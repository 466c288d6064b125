"""Headers that repeat what the body says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.protocol.headers import (
    HeaderParam,
    decode_value,
    encode_value,
    header_params,
    mismatch,
    param_headers,
)


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
    assert encode_value(value) == header
    assert decode_value(header) == value


@given(st.text())
def test_every_text_comes_back_and_never_breaks_the_header(value: str) -> None:
    header = encode_value(value)
    assert header.isascii()
    assert "\n" not in header
    assert decode_value(header) == value


@pytest.mark.parametrize("header", ["=?base64?%%%?=", "=?base64?/w==?=", "a\nb", "ü"])
def test_a_value_nobody_may_write_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_value(header)


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def annotated(name: Any, type: Any = "string", **more: Any) -> dict[str, Any]:
    return {"type": type, "x-mcp-header": name, **more}


def test_arguments_are_found_at_any_depth_of_properties() -> None:
    nested = schema(region=annotated("Region"), deep=schema(number=annotated("Number", ["integer", "null"])))
    found = set(header_params(nested))
    assert found == {
        HeaderParam("mcp-param-region", ("region",)),
        HeaderParam("mcp-param-number", ("deep", "number")),
    }
    arguments = {"region": "north", "deep": {"number": 42}, "other": 1}
    assert param_headers(found, arguments) == {"mcp-param-region": "north", "mcp-param-number": "42"}
    arguments["deep"] = {"number": 42.0}
    assert param_headers(found, arguments) == {"mcp-param-region": "north", "mcp-param-number": "42"}


@pytest.mark.parametrize("arguments", [{}, {"flag": None}, {"flag": {}}, {"flag": [True]}])
def test_what_is_absent_or_null_has_no_header(arguments: dict[str, Any]) -> None:
    assert param_headers(header_params(schema(flag=annotated("Flag", "boolean"))), arguments) == {}


def test_truth_is_written_in_lower_case() -> None:
    assert param_headers(header_params(schema(f=annotated("F", "boolean"))), {"f": False}) == {
        "mcp-param-f": "false"
    }


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
        header_params(bad)


def test_a_property_or_a_value_of_that_name_is_no_annotation() -> None:
    named = {"x-mcp-header": {"type": "string", "default": {"x-mcp-header": "no"}}}
    assert header_params({"type": "object", "properties": named, "required": ["x-mcp-header"]}) == ()


@given(st.text())
def test_an_encoded_header_agrees_with_its_own_value_only(value: str) -> None:
    assert mismatch(encode_value(value), value) is None
    assert mismatch(f" \t{encode_value(value)} ", value) is None
    assert mismatch(encode_value(value), value + "x")


@pytest.mark.parametrize("header", [None, "", "other", "ü", "=?base64?SGVsbG8?=", "=?base64?/w==?="])
def test_a_header_with_another_value_is_a_mismatch(header: str | None) -> None:
    assert mismatch(header, "ü")


@pytest.mark.parametrize(
    ("value", "header"),
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
def test_an_argument_and_its_header_are_the_same(value: Any, header: str) -> None:
    assert HeaderParam("mcp-param-x", ("a", "x")).mismatch(header, {"a": {"x": value}}) is None


@pytest.mark.parametrize(
    ("value", "header"),
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
def test_an_argument_and_its_header_are_not_the_same(value: Any, header: str | None) -> None:
    assert HeaderParam("mcp-param-x", ("x",)).mismatch(header, {"x": value})


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers() | st.text() | st.booleans()))
def test_no_header_breaks_the_comparison(name: str, header: str, body: Any) -> None:
    mismatch(header, name)
    HeaderParam("mcp-param-x", (name,)).mismatch(header, body)
