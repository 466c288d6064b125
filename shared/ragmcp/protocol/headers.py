"""The HTTP headers that repeat parts of an MCP message, and their encoding. Pure.

A client writes these headers; a server compares them with the body.
Source: basic/transports/streamable-http#request-metadata, server/tools#x-mcp-header.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

PROTOCOL_VERSION = "mcp-protocol-version"
METHOD = "mcp-method"
NAME = "mcp-name"
SESSION_ID = "mcp-session-id"
LAST_EVENT_ID = "last-event-id"
PARAM_PREFIX = "mcp-param-"

# The member of the parameters that Mcp-Name repeats, by method.
NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    # SEP-2663
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

# The same members as fields of our parameter types.
NAME_FIELDS = {method: "task_id" if name == "taskId" else name for method, name in NAMED_BY.items()}

ANNOTATION = "x-mcp-header"
PRIMITIVES = frozenset({"string", "integer", "boolean"})

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)

_WHOLE_NUMBER = re.compile(r"(-?[0-9]{1,20})(?:\.0*)?")

# The names of properties that lead to an argument.
Path: TypeAlias = tuple[str, ...]

# Keywords of JSON Schema whose keys are names, and those that hold data.
_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"const", "default", "enum", "examples"})


def encode_value(value: str) -> str:
    """The value of a header, in base64 if a header cannot hold it literally. Raises UnicodeEncodeError."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def decode_value(header: str) -> str:
    """The inverse of `encode_value`. Raises ValueError for a header that no client may send."""
    if encoded := _ENCODED.fullmatch(header):
        try:
            return base64.b64decode(encoded[1], validate=True).decode()
        except ValueError as error:
            raise ValueError(f"{header!r} is not UTF-8 in base64") from error
    if not re.fullmatch(r"[\t\x20-\x7e]*", header):
        raise ValueError(f"{header!r} holds characters that headers do not allow")
    return header


def mismatch(header: str | None, expected: str) -> str | None:
    """Why a header contradicts the body, which says `expected`; None if they agree."""
    if header is None:
        return f"must be {expected!r} as in the body, but is missing"
    if header == expected and header.isascii() and not header.startswith("=?"):
        return None  # The usual case.
    try:
        value = decode_value(header.strip(" \t"))  # RFC 9110, 5.5: white space around it is not part of it.
    except ValueError as error:
        return f"cannot be read: {error}"
    return None if value == expected else f"is {header!r}, but the body says {expected!r}"


class HeaderParam(Struct, frozen=True):
    """An argument of a tool that calls repeat in a header."""

    header: str
    path: Path

    def value(self, arguments: Mapping[str, Any]) -> Any:
        """The argument; None if it is absent."""
        value: Any = arguments
        for name in self.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def mismatch(self, header: str | None, arguments: Mapping[str, Any]) -> str | None:
        """Why the header contradicts the arguments; None if they agree."""
        value = self.value(arguments)
        text = _as_text(value)
        if text is None:
            return None if header is None else "is present, but the body has no argument to match it"
        if header is not None and _same_number(header, value):
            return None
        return mismatch(header, text)


def param_headers(params: Iterable[HeaderParam], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a call; null and absent arguments have none."""
    texts = ((param.header, _as_text(param.value(arguments))) for param in params)
    return {header: encode_value(text) for header, text in texts if text is not None}


def _as_text(value: Any) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if value.is_integer():  # JSON Schema calls it an integer.
            return str(int(value))
    return None


def _same_number(header: str, value: Any) -> bool:
    """42.0 is 42. (Server Validation)"""
    number = _WHOLE_NUMBER.fullmatch(header.strip(" \t"))
    return number is not None and type(value) in (int, float) and int(number[1]) == value


# Which arguments a tool's schema requires in headers


def header_params(schema: Mapping[str, Any]) -> tuple[HeaderParam, ...]:
    """The arguments that calls of a tool repeat in headers.

    Raises ValueError with the reason for a schema that breaks the rules: that tool is unusable over HTTP.
    """
    params = tuple(_header_param(path, subschema) for path, subschema in _annotated(schema))
    headers = [param.header for param in params]
    if duplicates := {header for header in headers if headers.count(header) > 1}:
        raise ValueError(f"two of its arguments want the header {min(duplicates)}")
    return params


def _header_param(path: Path | None, schema: Mapping[str, Any]) -> HeaderParam:
    name = schema[ANNOTATION]
    if not path:
        raise ValueError(f"{ANNOTATION} {name!r} is not at a property that every call has")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid header name")
    type = schema.get("type")
    types = set(type) if isinstance(type, list) else {type}
    if not types - {"null"} or not types - {"null"} <= PRIMITIVES:
        raise ValueError(f"{'.'.join(path)} is not a string, integer or boolean, so no header can hold it")
    return HeaderParam(PARAM_PREFIX + name.lower(), path)


def _annotated(schema: Mapping[str, Any]) -> Iterator[tuple[Path | None, Mapping[str, Any]]]:
    """All annotated subschemas with their paths of properties; None if other keywords lead to one."""
    todo: list[tuple[Path | None, Any]] = [((), schema)]
    while todo:
        path, here = todo.pop()
        if isinstance(here, list):
            todo += [(None, item) for item in here]
        if not isinstance(here, Mapping):
            continue
        if ANNOTATION in here:
            yield path, here
        for keyword, value in here.items():
            if keyword == "properties" and isinstance(value, Mapping):
                todo += [(None if path is None else (*path, name), item) for name, item in value.items()]
            elif keyword in _NAMES and isinstance(value, Mapping):
                todo += [(None, item) for item in value.values()]
            elif keyword not in _DATA:
                todo.append((None, value))
