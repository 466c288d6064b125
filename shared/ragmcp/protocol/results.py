"""Answers as a client reads them: the typed result, or what the server requires first. Pure."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw

from ragmcp.errors import UnreadableAnswer
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.schema.base import SERVER_INFO, UNKNOWN, Implementation, Result

R = TypeVar("R", bound=Result)

INPUT_REQUIRED = "input_required"
# "Clients MUST treat an absent resultType as complete": legacy servers send none.
COMPLETE = (UNSET, "complete")


def complete(method: str, answer: Raw, type: type[R]) -> R | None:
    """The result; None if the server needs input first. Raises UnreadableAnswer."""
    try:
        result = msgspec.json.decode(answer, type=type)
    except DECODE_ERRORS as error:
        kind = decode_answer(method, answer, Result).result_type
        if kind in COMPLETE:
            raise UnreadableAnswer(method, str(error)) from None
    else:
        kind = result.result_type
        if kind in COMPLETE:
            return result
    if kind == INPUT_REQUIRED:
        return None
    raise UnreadableAnswer(method, f"its resultType is {kind!r}, which is unknown")


def decode_answer(method: str, answer: Raw, type: type[R]) -> R:
    """An answer of that type. Raises UnreadableAnswer."""
    try:
        return msgspec.json.decode(answer, type=type)
    except DECODE_ERRORS as error:
        raise UnreadableAnswer(method, str(error)) from None


def server_info(result: Result) -> Implementation:
    """The server that answered, if the result names it."""
    if result.meta is UNSET:
        return UNKNOWN
    try:
        return msgspec.convert(msgspec.json.decode(result.meta)[SERVER_INFO], Implementation)
    except (KeyError, TypeError, *DECODE_ERRORS):
        return UNKNOWN


def or_none(value: Any) -> Any:
    """The value; None for UNSET."""
    return None if value is UNSET else value
