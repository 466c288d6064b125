"""Compile a query's filter to an SQL condition on `documents`. Pure; every value is a parameter."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec

from ragmemory.errors import BadArgument
from ragmemory.limits import MAX_CONDITIONS, MAX_TAGS
from ragmemory.stores.values import check_object, check_uri

Condition = tuple[str, list[Any]]

_HAS = "EXISTS (SELECT 1 FROM json_each(metadata) AS pair WHERE pair.key = ? AND {})"


def timestamp(text: object) -> float | None:
    """Seconds since 1970 of an ISO 8601 date or time (UTC if it names no zone); None for any other value."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def compile_filter(filter: dict[str, Any]) -> Condition:
    """The condition that every key of the filter holds, and its parameters. Raises BadArgument."""
    check_object("filter", filter)
    if len(filter) > MAX_CONDITIONS:
        raise BadArgument("filter", f"has more than {MAX_CONDITIONS} conditions")
    parts, parameters = ["1"], []
    for key, value in filter.items():
        sql, values = _KNOWN.get(key, _equals)(key, value)
        parts.append(sql)
        parameters += values
    return " AND ".join(parts), parameters


def _uri(key: str, value: Any) -> Condition:
    if not isinstance(value, str):
        raise BadArgument(f"filter.{key}", "must be a glob, such as file:///notes/*")
    check_uri(f"filter.{key}", value)
    return "uri GLOB ?", [value]


def _tags(key: str, value: Any) -> Condition:
    tags = [value] if isinstance(value, str) else value
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise BadArgument(f"filter.{key}", "must be a list of texts")
    if len(tags) > MAX_TAGS:
        raise BadArgument(f"filter.{key}", f"names more than {MAX_TAGS} tags")
    has = "EXISTS (SELECT 1 FROM json_each(metadata, '$.tags') AS tag WHERE tag.value = ?)"
    return " AND ".join([has] * len(tags)) or "1", tags


def _time(key: str, value: Any) -> Condition:
    moment = timestamp(value)
    if moment is None:
        raise BadArgument(f"filter.{key}", "must be a date or time in ISO 8601, such as 2026-01-31")
    return ("created >= ?" if key == "created_after" else "created < ?"), [moment]


def _equals(key: str, value: Any) -> Condition:
    match value:
        case None:
            return "NOT " + _HAS.format("pair.type <> 'null'"), [key]
        case bool():
            return _HAS.format("pair.type = ?"), [key, "true" if value else "false"]
        case int() | float():
            return _HAS.format("pair.type IN ('integer', 'real') AND pair.value = ?"), [key, _number(value)]
        case str():
            return _HAS.format("pair.type = 'text' AND pair.value = ?"), [key, value]
    text = msgspec.json.encode(value, order="sorted").decode()
    return _HAS.format("pair.type IN ('array', 'object') AND pair.value = json(?)"), [key, text]


def _number(value: int | float) -> int | float:
    """The number as SQLite reads it from JSON: an integer beyond 64 bits becomes a float."""
    if -(2**63) <= value < 2**63:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_KNOWN = {"uri": _uri, "tags": _tags, "created_after": _time, "created_before": _time}
