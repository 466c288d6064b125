"""Write a host's settings as JSON, YAML or TOML: the few forms that `hosts` needs, without a library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

Format: TypeAlias = Literal["json", "yaml", "toml"]


def write(settings: Mapping[str, Any], format: Format) -> str:
    """The settings as text, without a line end. Keys must be plain words."""
    if format == "json":
        import json

        return json.dumps(settings, indent=2, ensure_ascii=False)
    return "\n".join(_yaml(settings) if format == "yaml" else _toml(settings))


def _yaml(table: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _yaml(value, f"{indent}  ")
        elif _is_tables(value):
            yield f"{indent}{name}:"
            for item in value:
                first, *rest = _yaml(item, f"{indent}    ")
                yield f"{indent}  - {first.lstrip()}"
                yield from rest
        else:
            yield f"{indent}{name}: {_scalar(value)}"


def _toml(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    inner = {name: value for name, value in table.items() if isinstance(value, Mapping)}
    if len(inner) < len(table):
        if path:
            yield f"[{path}]"
        yield from (f"{name} = {_scalar(value)}" for name, value in table.items() if name not in inner)
    for name, value in inner.items():
        yield from _toml(value, f"{path}.{name}".lstrip("."))


def _is_tables(value: Any) -> bool:
    return isinstance(value, Sequence) and any(isinstance(item, Mapping) for item in value)


def _scalar(value: Any) -> str:
    """Text, numbers, truth values and lists of these: JSON, which YAML and TOML read alike."""
    import json

    return json.dumps(value, ensure_ascii=False)
