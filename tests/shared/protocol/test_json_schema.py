"""Schemas written out flat."""

from __future__ import annotations

import jsonschema
from msgspec import Struct

from ragmcp.protocol.json_schema import flat_schema, input_schema


class Leaf(Struct):
    """The innermost."""

    value: int


class Branch(Struct):
    left: Leaf
    right: Leaf | None = None


class Even(Struct):
    odd: Odd | None = None


class Odd(Struct):
    even: Even
    leaf: Leaf


def test_nested_types_stand_in_place() -> None:
    schema = flat_schema(Branch)
    leaf = {
        "type": "object",
        "description": "The innermost.",
        "properties": {"value": {"type": "integer"}},
        "required": ["value"],
    }
    assert schema == {
        "type": "object",
        "properties": {"left": leaf, "right": {"anyOf": [leaf, {"type": "null"}], "default": None}},
        "required": ["left"],
    }


class Arguments(Struct):
    required: int | None
    branch: Branch | None = None
    place: int | str | None = None


def test_an_argument_that_may_be_left_out_has_its_own_type() -> None:
    properties = input_schema(Arguments)["properties"]
    assert properties["branch"]["properties"]["right"] == flat_schema(Leaf)
    assert {kind["type"] for kind in properties["place"]["anyOf"]} == {"integer", "string"}
    assert {"type": "null"} in properties["required"]["anyOf"]


def test_types_that_hold_each_other_keep_their_references_and_work() -> None:
    schema = flat_schema(Even)
    assert set(schema["$defs"]) >= {"Even", "Odd"}
    assert schema["type"] == "object"
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"odd": {"even": {"odd": None}, "leaf": {"value": 1}}})
    assert not validator.is_valid({"odd": {"even": {"odd": 5}, "leaf": {"value": 1}}})
