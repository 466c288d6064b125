"""What may be typed into the fields of a server's form."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import UNSET

from ragchat.servers.forms import asks_for_secret, read_form
from ragmcp.errors import InvalidParams

COLOURS = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}


def value(schema: dict[str, Any], typed: str) -> Any:
    return read_form({"type": "object", "properties": {"it": schema}}).properties["it"].value(typed)


@pytest.mark.parametrize(
    ("schema", "typed", "meant"),
    [
        ({"type": "string"}, "Ada", "Ada"),
        ({"type": "string", "format": "email"}, "ada@example.com", "ada@example.com"),
        ({"type": "string", "format": "date"}, "2026-07-28", "2026-07-28"),
        ({"type": "string", "format": "date-time"}, "2026-07-28T12:00:00Z", "2026-07-28T12:00:00Z"),
        ({"type": "string", "format": "uri"}, "https://example.com", "https://example.com"),
        ({"type": "integer", "minimum": 1, "maximum": 3}, "3", 3),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "string", "enum": ["a", "b"]}, "b", "b"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["Anna", "Bob"]}, "bob", "b"),
        (COLOURS, "Green", "g"),
        (COLOURS, "1", "r"),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, "b, 1, b", ["b", "a"]),
        ({"type": "array", "items": {"anyOf": COLOURS["oneOf"]}}, "red,green", ["r", "g"]),
        ({"type": "array", "items": {"enum": ["a"]}}, "", []),
    ],
)
def test_what_is_typed_becomes_a_value_of_the_fields_type(
    schema: dict[str, Any], typed: str, meant: object
) -> None:
    found = value(schema, typed)
    assert (found, type(found)) == (meant, type(meant))


@pytest.mark.parametrize(
    ("schema", "typed", "sentence"),
    [
        ({"type": "string", "minLength": 3}, "ab", "It must have at least 3 characters."),
        ({"type": "string", "maxLength": 3}, "abcd", "It must have at most 3 characters."),
        ({"type": "string", "format": "email"}, "ada", "Type an e-mail address."),
        ({"type": "string", "format": "date"}, "tomorrow", "Type a date such as 2026-07-28."),
        ({"type": "string", "format": "uri"}, "here", "Type an address such as https://example.com."),
        ({"type": "integer"}, "1.5", "Type a whole number."),
        ({"type": "number"}, "nan", "Type a number."),
        ({"type": "number", "minimum": 0.5}, "0.2", "It must be at least 0.5."),
        ({"type": "integer", "maximum": 1000}, "1001", "It must be at most 1,000."),
        ({"type": "boolean"}, "perhaps", "Type y or n."),
        (COLOURS, "3", "3 is not one of them."),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2},
            "a",
            "Choose at least 2.",
        ),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, "a,b", "Choose at most 1."),
    ],
)
def test_what_is_not_allowed_is_refused_with_a_sentence(
    schema: dict[str, Any], typed: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        value(schema, typed)


def test_a_field_says_what_is_allowed() -> None:
    form = read_form(
        {
            "properties": {
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
                "plate": {"type": "string", "pattern": "^[A-Z]+$", "minLength": 2},
                "colour": COLOURS,
                "days": {"type": "array", "items": {"enum": ["1", "2"]}, "minItems": 1},
                "born": {"type": "string", "format": "date"},
                "site": {"type": "string", "format": "uri"},
            }
        }
    )
    assert [[*one.constraints] for one in form.properties.values()] == [
        ["whole number", "at least 0", "at most 150"],
        ["text", "in the form ^[A-Z]+$", "at least 2 characters"],
        ["one of these"],
        ["several, with commas between them", "at least 1"],
        ["date"],
        ["web address"],
    ]


@pytest.mark.parametrize(
    "schema", [{"properties": {"address": {"type": "object", "properties": {}}}}, {"type": "array"}]
)
def test_a_form_that_is_not_flat_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match="requestedSchema"):
        read_form(schema)
    assert read_form(UNSET).properties == {}


@pytest.mark.parametrize(
    ("name", "is_secret"), [("password", True), ("api_key", True), ("name", False), ("shopping", False)]
)
def test_a_field_for_a_password_is_recognized(name: str, is_secret: bool) -> None:
    [form_field] = read_form({"properties": {name: {"type": "string"}}}).properties.values()
    assert asks_for_secret(name, form_field) is is_secret
