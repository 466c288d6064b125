"""JSON Schemas of types, without `$ref` unless a type contains itself. Pure.

Language models and simple hosts read nested objects better in place than through references.
"""

from __future__ import annotations

from typing import Any

import msgspec

PREFIX = "#/$defs/"

Schema = dict[str, Any]


def flat_schema(type: type) -> Schema:
    """The JSON Schema (2020-12) of a msgspec type, with an object at its root."""
    root = msgspec.json.schema(type)
    definitions: dict[str, Schema] = root.pop("$defs", {})
    if "$ref" in root:  # The root is in place even if something inside refers to it.
        root = definitions[root["$ref"].removeprefix(PREFIX)]
    recursive = {name for name in definitions if _holds(name, definitions[name], definitions, set())}
    schema: Schema = _inlined(root, definitions, recursive)
    schema.pop("title", None)
    if recursive:
        schema["$defs"] = {name: _inlined(definitions[name], definitions, recursive) for name in recursive}
    return schema


def input_schema(type: type) -> Schema:
    """The flat schema of arguments. One that may be left out has its own type, without null.

    Null is accepted all the same: it is only that forms such as the MCP Inspector's cannot fill in `anyOf`.
    """
    schema: Schema = _without_null(flat_schema(type))
    return schema


def _without_null(value: Any) -> Any:
    """`anyOf` without null wherever null is the default, which goes too."""
    if isinstance(value, list):
        return [_without_null(item) for item in value]
    if not isinstance(value, dict):
        return value
    flat = {key: _without_null(item) for key, item in value.items()}
    if {"type": "null"} not in flat.get("anyOf", ()) or flat.get("default", ...) is not None:
        return flat
    del flat["default"]
    kinds = [kind for kind in flat.pop("anyOf") if kind != {"type": "null"}]
    return (kinds[0] if len(kinds) == 1 else {"anyOf": kinds}) | flat


def _holds(name: str, value: Any, definitions: dict[str, Schema], seen: set[str]) -> bool:
    """Whether `value` refers to `name`, directly or through others."""
    if isinstance(value, list):
        return any(_holds(name, item, definitions, seen) for item in value)
    if not isinstance(value, dict):
        return False
    target = value.get("$ref", "").removeprefix(PREFIX)
    if target == name:
        return True
    if target and target not in seen:
        seen.add(target)
        return _holds(name, definitions[target], definitions, seen)
    return any(_holds(name, item, definitions, seen) for item in value.values())


def _inlined(value: Any, definitions: dict[str, Schema], keep: set[str]) -> Any:
    if isinstance(value, list):
        return [_inlined(item, definitions, keep) for item in value]
    if not isinstance(value, dict):
        return value
    target = value.get("$ref", "").removeprefix(PREFIX) if isinstance(value.get("$ref"), str) else ""
    if not target or target in keep:
        return {key: _inlined(item, definitions, keep) for key, item in value.items()}
    own = {key: item for key, item in value.items() if key != "$ref"}
    flat = _inlined(definitions[target], definitions, keep)
    flat.pop("title", None)
    return flat | own
