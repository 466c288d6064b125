"""Read TOML files of settings and scripts safely, whatever they contain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from ragcommon.files.safe_open import read_regular

# Parts of a dotted key. The parser stores every prefix of a key: one of 200,000 bytes would take 40 GB.
MAX_PARTS = 16
_BASIC = r'"(?:[^"\\\n]|\\.)*+"'
_LITERAL = r"'[^'\n]*+'"
_DOT = r"[ \t]*+\.[ \t]*+"
_HEADER = re.compile(r"""\s*\[\s*["']?([\w-]+)["']?\s*\]""")
_ASSIGNED = re.compile(r"""\s*["']?([\w.-]+)["']?\s*=""")
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|{_BASIC}|{_LITERAL}){_DOT}){{{MAX_PARTS}}}""", re.ASCII)


class NotToml(Exception):
    """The message is the end of a sentence; lines and columns count from 1."""


def read_toml(path: Path, most: int) -> dict[str, Any]:
    """The tables of a file of at most `most` bytes. Raises NotToml, and OSError as `read_regular` does."""
    return decode_toml(read_regular(path, most))


def decode_toml(content: bytes) -> dict[str, Any]:
    """The tables of a file's content. Raises NotToml."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotToml(f"it is not text in UTF-8 (byte {error.start})") from None
    if long := _LONG_KEY.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise NotToml(f"a key has more than {MAX_PARTS} parts (at line {line})")
    try:
        return msgspec.toml.decode(text, type=dict)
    except RecursionError:
        raise NotToml("it is nested too deeply") from None
    # ValueError: an integer of more digits than Python converts.
    except (msgspec.DecodeError, ValueError) as error:
        raise NotToml(str(error)) from None


def at_line(path: str, content: bytes, key: str) -> str:
    """The path of a file, and the line that sets the dotted `key` there if it is written in the usual way."""
    table = ""
    for number, line in enumerate(content.decode("utf-8-sig").split("\n"), 1):
        if header := _HEADER.match(line):
            table = f"{header[1]}."
        elif (assigned := _ASSIGNED.match(line)) and table + assigned[1] == key:
            return f"{path}, line {number:,}"
    return path
