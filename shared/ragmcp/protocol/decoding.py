"""Decode JSON into typed values, and msgspec's errors into errors that name the field. Pure."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from ragmcp.errors import InvalidParams

T = TypeVar("T")

# What msgspec raises for text that is not JSON, or not of the expected type.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# A member whose name contains dots.
_DOTTED = re.compile(r"\.(io\.modelcontextprotocol/\w+)")
_FLOAT_FOR_INTEGER = re.compile(r"expected `.*\bint\b.*`, got `float`")
_ITEM = re.compile(r"\[[^]']*\]")


def decode(decoder: msgspec.json.Decoder[T], text: Raw) -> T:
    """The value of a JSON text, in the type of the decoder. Raises InvalidParams.

    For JSON Schema "any number with a zero fractional part" is an integer, and language models write 8.0;
    msgspec alone would refuse it.
    """
    tried = set[str]()
    while True:
        try:
            return decoder.decode(text)
        except DECODE_ERRORS as error:
            invalid = invalid_params(error)
        place = _ITEM.sub(".[]", invalid.path)
        if place in tried or not _FLOAT_FOR_INTEGER.fullmatch(invalid.reason):
            raise invalid
        tried.add(place)
        try:
            value = msgspec.json.decode(text)
            text = Raw(msgspec.json.encode(_with_integers(value, place.split(".")[1:])))
        except DECODE_ERRORS:
            raise invalid from None


def _with_integers(value: Any, steps: list[str]) -> Any:
    """Make whole floats at the end of `steps` integers. The step `[]` means all items, any other a member."""
    if not steps:
        return int(value) if isinstance(value, float) and value.is_integer() else value
    step, *rest = steps
    if isinstance(value, list):
        return [_with_integers(item, rest) for item in value]
    if isinstance(value, dict):
        return {
            key: _with_integers(item, rest) if step in (key, "[]") else item for key, item in value.items()
        }
    return value


def invalid_params(error: Exception) -> InvalidParams:
    """The error for an error of msgspec: the path of the field, and the reason."""
    if isinstance(error, RecursionError):
        return InvalidParams("$", "it is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return InvalidParams("$", "a string in it is not UTF-8")
    reason, _, path = str(error).partition(" - at `")
    path = path.rstrip("`") or "$"
    for start in ("Object contains unknown field `", "Object missing required field `"):
        if reason.startswith(start):
            path = f"{path}.{reason.removeprefix(start).rstrip('`')}"
            reason = "unknown field" if "unknown" in start else "required, but missing"
    path = _DOTTED.sub(r"['\1']", path)
    return InvalidParams(path, reason[:1].lower() + reason[1:])
