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
    [root], definitions = msgspec.json.schema_components([type], ref_template=PREFIX + "{name}")
    recursive = set[str]()

    def inlined(value: Any, outer: tuple[str, ...]) -> Any:
        """Definitions in place of references, but for those to an `outer` type: these become `recursive`."""
        if isinstance(value, list):
            return [inlined(item, outer) for item in value]
        if not isinstance(value, dict):
            return value
        if not isinstance(value.get("$ref"), str):
            return {key: inlined(item, outer) for key, item in value.items()}
        name = value["$ref"].removeprefix(PREFIX)
        if name in outer:
            recursive.add(name)
            return value
        flat = inlined(definitions[name], (*outer, name))
        flat.pop("title", None)
        return flat | {key: item for key, item in value.items() if key != "$ref"}

    schema: Schema = inlined(root, ())
    schema.pop("title", None)
    if recursive:
        schema["$defs"] = definitions
    return schema


def input_schema(type: type) -> Schema:
    """The flat schema of arguments. One that may be left out has its own type, without null.

    Null is still accepted; it is left out because forms such as the MCP Inspector's cannot render `anyOf`.
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
