"""What an HTTP message repeats of MCP's in its headers, and how it is written there. Pure.

Both halves of HTTP use it: a client writes these headers, a server compares them with the body.
Source: basic/transports/streamable-http#request-metadata, server/tools#x-mcp-header.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from ragmcp.http.errors import HeaderMismatch

PROTOCOL_VERSION = "mcp-protocol-version"
METHOD = "mcp-method"
NAME = "mcp-name"
SESSION_ID = "mcp-session-id"
LAST_EVENT_ID = "last-event-id"
PARAM_PREFIX = "mcp-param-"

# Where the value of Mcp-Name stands in the parameters of the methods that need one.
NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    # SEP-2663
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

# The same as fields of our parameter types.
NAME_FIELDS = {method: "task_id" if name == "taskId" else name for method, name in NAMED_BY.items()}

ANNOTATION = "x-mcp-header"
PRIMITIVES = frozenset({"string", "integer", "boolean"})

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)

_WHOLE_NUMBER = re.compile(r"(-?[0-9]{1,20})(?:\.0*)?")

# Keywords of JSON Schema under which keys are names of others, and those under which there is only data.
_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"const", "default", "enum", "examples"})


class Mirror(Struct, frozen=True):
    """A tool's argument that is repeated in a header; `path` leads to it within the arguments."""

    header: str
    path: tuple[str, ...]


def written(value: str) -> str:
    """The value of a header; what cannot stand there as it is, in base64. Raises UnicodeEncodeError."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def read(header: str) -> str:
    """What `written` was given. Raises ValueError for a value that is not as a client may write it."""
    if encoded := _ENCODED.fullmatch(header):
        try:
            return base64.b64decode(encoded[1], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{header!r} is not UTF-8 in base64") from error
    if not re.fullmatch(r"[\t\x20-\x7e]*", header):
        raise ValueError(f"{header!r} holds characters that no header may")
    return header


def as_text(value: Any) -> str | None:
    """An argument as the text of its header; None for one that has none."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if value.is_integer():  # Which JSON Schema calls an integer.
            return str(int(value))
    return None


def mirrored(mirrors: Iterable[Mirror], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a call; null and absent arguments have none."""
    texts = ((mirror.header, as_text(_argument(mirror, arguments))) for mirror in mirrors)
    return {header: written(text) for header, text in texts if text is not None}


def _argument(mirror: Mirror, arguments: Mapping[str, Any]) -> Any:
    value: Any = arguments
    for step in mirror.path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def mirrors(schema: Mapping[str, Any]) -> tuple[Mirror, ...]:
    """Which arguments of a tool its calls repeat in headers.

    Raises ValueError with the reason for a schema that asks for it in a way it may not: then the whole tool
    is unusable over HTTP.
    """
    found = tuple(_mirror(path, subschema) for path, subschema in _annotated(schema))
    headers = [mirror.header for mirror in found]
    if twice := {header for header in headers if headers.count(header) > 1}:
        raise ValueError(f"two of its arguments want the header {min(twice)}")
    return found


def _mirror(path: tuple[str, ...] | None, schema: Mapping[str, Any]) -> Mirror:
    name = schema[ANNOTATION]
    if not path:
        raise ValueError(f"{ANNOTATION} {name!r} does not stand at a property that every call has")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a header")
    type = schema.get("type")
    types = set(type) if isinstance(type, list) else {type}
    if not types - {"null"} or not types - {"null"} <= PRIMITIVES:
        raise ValueError(f"{'.'.join(path)} is no string, integer or boolean, and cannot stand in a header")
    return Mirror(PARAM_PREFIX + name.lower(), path)


def _annotated(
    schema: Mapping[str, Any],
) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """All annotated subschemas, each with the chain of properties that leads there (None: there is none)."""
    todo: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
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


# The server's side: what stands in a header must stand in the body as well


def check(header: str, given: str | None, expected: str) -> None:
    """Raises HeaderMismatch unless the header, as it was `given`, says what the body says."""
    if given is None:
        raise HeaderMismatch(header, f"must be {expected!r} as in the body, but is missing")
    if given == expected and given.isascii() and not given.startswith("=?"):
        return  # As it nearly always is.
    if _value(header, given) != expected:
        raise HeaderMismatch(header, f"is {given!r}, but the body says {expected!r}")


def check_mirrors(
    mirrors: Iterable[Mirror], arguments: Mapping[str, Any], given: Mapping[str, str | None]
) -> None:
    """Raises HeaderMismatch unless the headers that were `given` say what the arguments say."""
    for mirror in mirrors:
        value = _argument(mirror, arguments)
        text, header = as_text(value), given.get(mirror.header)
        if text is None:
            if header is not None:
                raise HeaderMismatch(mirror.header, "is there, but no such argument that a header can hold")
        elif header is None or not _same_number(header, value):
            check(mirror.header, header, text)


def _value(header: str, given: str) -> str:
    try:
        return read(given.strip(" \t"))  # White space around it is none of the value's. (RFC 9110, 5.5)
    except ValueError as error:
        raise HeaderMismatch(header, f"cannot be read: {error}") from None


def _same_number(given: str, value: Any) -> bool:
    """42.0 is 42. (Server Validation)"""
    found = _WHOLE_NUMBER.fullmatch(given.strip(" \t"))
    return found is not None and type(value) in (int, float) and int(found[1]) == value
