"""Change single values in the user's settings file; its comments, order and other lines stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ragcommon.errors import os_reason
from ragcommon.files.safe_open import read_regular
from ragcommon.files.writing import replace_file
from ragconfig.errors import NotWritten, UnreadableFile
from ragconfig.settings import MAX_BYTES
from ragconfig.toml_files import NotToml, decode_toml

Value: TypeAlias = str | int | float | bool | None

# A value on one line, up to a comment.
_SIMPLE = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"'\[{]+)"""


def write_settings(path: Path, changes: Mapping[str, Value]) -> dict[str, Value]:
    """Set values by dotted key in a settings file, which is made if need be; None removes a line.

    Returns what the file had for these keys, None where it had nothing. Raises SettingsError.
    """
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile("settings file", str(path), os_reason(error)) from None
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    for key in reversed([*changes]):  # Each goes to the top of its table.
        _set(lines, key, changes[key])
    changed = newline.join(lines)
    try:
        before, after = _values(text), _values(changed)
    except NotToml:
        before, after = {}, {"": None}
    # An edit by lines misreads unusual files, such as dotted keys or a table in braces.
    wanted = {key: value for key, value in {**before, **changes}.items() if value is not None}
    if after != wanted:
        raise NotWritten(str(path), "its tables are written in an unusual way", _shown(changes))
    try:
        replace_file(path, changed.encode())
    except OSError as error:
        raise NotWritten(str(path), os_reason(error), _shown(changes)) from None
    return {key: before.get(key) for key in changes}


def _set(lines: list[str], key: str, value: Value) -> None:
    table, _, name = key.partition(".")
    header = re.compile(rf"\s*\[\s*{table}\s*\]\s*(#.*)?")
    start = next((place for place, line in enumerate(lines) if header.fullmatch(line)), None)
    if start is None:
        if value is not None:
            lines[-1:] = [*([lines[-1]] if lines[-1] else []), f"[{table}]", f"{name} = {_toml(value)}", ""]
        return
    end = next((n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    for place in range(start + 1, end):
        if found := re.fullmatch(rf"(\s*{name}\s*=\s*){_SIMPLE}(\s*(?:#.*)?)", lines[place]):
            lines[place : place + 1] = [] if value is None else [found[1] + _toml(value) + found[2]]
            return
    if value is not None:
        # Below its commented default, as `ragchat config init` writes it.
        default = (n for n in range(start, end) if re.match(rf"\s*#\s*{name}\s*=", lines[n]))
        lines.insert(next(default, start) + 1, f"{name} = {_toml(value)}")


def _toml(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False)


def _values(text: str) -> dict[str, Any]:
    """By dotted keys. Raises NotToml."""
    found: dict[str, Any] = {}
    for table, values in decode_toml(text.encode()).items():
        of_table = values if isinstance(values, dict) else {"": values}
        found |= {f"{table}.{name}": value for name, value in of_table.items()}
    return found


def _shown(changes: Mapping[str, Value]) -> str:
    return ", ".join(f"{key} = {_toml(value)}" for key, value in changes.items() if value is not None)
