"""Compile a query's filter to an SQL condition on `documents`. Pure; every value is a parameter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ragmemory.errors import BadArgument
from ragmemory.limits import MAX_CONDITIONS, MAX_TAGS
from ragmemory.stores.engine import Condition, Dialect
from ragmemory.stores.values import check_object, check_uri


def timestamp(text: object) -> float | None:
    """Seconds since 1970 of an ISO 8601 date or time (UTC if it names no zone); None for any other value."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def compile_filter(filter: dict[str, Any], dialect: Dialect) -> Condition:
    """The condition that every key of the filter holds, and its parameters. Raises BadArgument."""
    check_object("filter", filter)
    if len(filter) > MAX_CONDITIONS:
        raise BadArgument("filter", f"has more than {MAX_CONDITIONS} conditions")
    parts, parameters = ["TRUE"], []
    for key, value in filter.items():
        known = _KNOWN.get(key)
        sql, values = known(key, value, dialect) if known else dialect.has_value(key, value)
        parts.append(sql)
        parameters += values
    return " AND ".join(parts), parameters


def _uri(key: str, value: Any, dialect: Dialect) -> Condition:
    if not isinstance(value, str):
        raise BadArgument(f"filter.{key}", "must be a glob, such as file:///notes/*")
    check_uri(f"filter.{key}", value)
    return dialect.glob("uri", value)


def _tags(key: str, value: Any, dialect: Dialect) -> Condition:
    tags = [value] if isinstance(value, str) else value
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise BadArgument(f"filter.{key}", "must be a list of texts")
    if len(tags) > MAX_TAGS:
        raise BadArgument(f"filter.{key}", f"names more than {MAX_TAGS} tags")
    conditions = [dialect.has_tag(tag) for tag in tags]
    return (
        " AND ".join(["TRUE", *(sql for sql, _ in conditions)]),
        [parameter for _, parameters in conditions for parameter in parameters],
    )


def _time(key: str, value: Any, _: Dialect) -> Condition:
    moment = timestamp(value)
    if moment is None:
        raise BadArgument(f"filter.{key}", "must be a date or time in ISO 8601, such as 2026-01-31")
    return ("created >= ?" if key == "created_after" else "created < ?"), [moment]


_KNOWN = {"uri": _uri, "tags": _tags, "created_after": _time, "created_before": _time}
