"""Decode JSON into typed values, and msgspec's errors into errors that name the field. Pure."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from msgspec import Raw

from ragcommon.errors import DECODE_ERRORS as DECODE_ERRORS
from ragcommon.errors import is_not_utf8 as is_not_utf8
from ragmcp.errors import InvalidParams

T = TypeVar("T")

# A member whose name contains dots.
_DOTTED = re.compile(r"\.(io\.modelcontextprotocol/\w+)")
_FLOAT_FOR_INTEGER = re.compile(r"expected `.*\bint\b.*`, got `float`")


def decode(decoder: msgspec.json.Decoder[T], text: Raw) -> T:
    """The value of a JSON text, in the type of the decoder. Raises InvalidParams.

    For JSON Schema "any number with a zero fractional part" is an integer, and language models write 8.0.
    """
    try:
        return decoder.decode(text)
    except DECODE_ERRORS as error:
        invalid = invalid_params(error)
    if not _FLOAT_FOR_INTEGER.fullmatch(invalid.reason):
        raise invalid
    try:
        # The lax mode accepts 8.0. It is the second choice because it accepts "8" as well.
        return msgspec.json.decode(text, type=decoder.type, strict=False)
    except DECODE_ERRORS as error:
        raise invalid_params(error) from None


def invalid_params(error: Exception) -> InvalidParams:
    """The error for an error of msgspec: the path of the field, and the reason."""
    if isinstance(error, RecursionError):
        return InvalidParams("$", "it is nested too deeply")
    if is_not_utf8(error):
        return InvalidParams("$", "a string in it is not UTF-8")
    reason, _, path = str(error).partition(" - at `")
    path = path.rstrip("`") or "$"
    for start in ("Object contains unknown field `", "Object missing required field `"):
        if reason.startswith(start):
            path = f"{path}.{reason.removeprefix(start).rstrip('`')}"
            reason = "unknown field" if "unknown" in start else "required, but missing"
    return InvalidParams(_DOTTED.sub(r"['\1']", path), reason[:1].lower() + reason[1:])
