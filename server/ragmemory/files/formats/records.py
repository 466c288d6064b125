r"""JSON with prose: its strings have line breaks or other characters as escapes, such as \n and \u00e4.

Each object of the main list, or each line, is a section: lines "key: value", and longer texts below their
keys. JSON without such escapes is read as it is.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.decoding import decode
from ragmemory.files.formats.chats import repaired
from ragmemory.files.formats.file_text import (
    MARKUP,
    MAX_CHARACTERS,
    OWN_EXPORT,
    FileText,
    TextBuilder,
    TooMuchText,
    clean,
    fenced,
    lowered,
    one_line,
)
from ragmemory.ingest.headings import has_markdown


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError if it has a key twice, of which one value would be lost."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError
    return found


# Numbers stay as they are written.
JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_int=str, parse_float=str)
# One value a line.
LINES = frozenset((".jsonl", ".ndjson"))
# The keys of a conversation that ragchat exported, besides its turns.
SESSION_KEYS = {"session_id", "title", "created_at", "notebook"}
# Notes of Obsidian, which are prose with or without escapes.
CANVAS = ".canvas"
# Where a note is on the canvas, how it looks, and what joins it.
LOOKS = frozenset(
    (
        *("id", "type", "x", "y", "width", "height", "color", "background", "backgroundStyle"),
        *("fromNode", "fromSide", "fromEnd", "toNode", "toSide", "toEnd"),
    )
)
ESCAPE = re.compile(rb"\\(?:[nr]|u[0-9a-fA-F]{4})")
# A pair of escapes that is one character; or half of one, where a program cut the text.
PAIR = re.compile(r"(\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..")
# Keys that name a record, the best first.
NAMES = ("title", "name", "subject")
MAX_NAME = 200
DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d)?")
# A longer text is a paragraph below its key.
MAX_LINE = 200
# Characters of a path of keys, of which the end is shown: lines do not grow with their depth.
MAX_KEY = 100
# A record of many short values with long keys stays as it is.
MAX_GROWTH = 10
# Levels of a whole object that have paragraphs of their own.
SPACED = 3
# Levels of objects that are searched for the main list.
MAX_LEVELS = 4
OBJECTS = re.compile(rb"\[\s*\{|\{")


def has_escapes(data: bytes) -> bool:
    """Whether JSON has such escapes in its strings, and not only those of quotation marks and the like."""
    return ESCAPE.search(data.replace(rb"\\", b"")) is not None


def read(path: Path, data: bytes) -> FileText:
    """The records of a file; the file as it is if it is not JSON, or too long. Raises NotText."""
    decoded = decode(data)
    try:
        if len(decoded.text) > MAX_CHARACTERS:
            raise TooMuchText
        text = PAIR.sub(lambda pair: pair[1] or r"\ufffd", decoded.text)
        about, records = _split(text.encode(), is_lines=path.suffix.lower() in LINES)
        builder = TextBuilder(by_paragraph=not records)
        outer = {key: JSON.decode(bytes(raw).decode()) for key, raw in about.items()}
        is_canvas = path.suffix.lower() == CANVAS
        if is_canvas:
            outer = {key: kept for key, value in outer.items() if (kept := _without_looks(value))}
        builder.add(_section(outer, "", 0 if records else SPACED))
        for number, raw in enumerate(records, 1):
            value = JSON.decode(bytes(raw).decode())
            if is_canvas and not (value := _without_looks(value)):
                continue
            section = _section(value, f"Record {number}")
            if len(section) > MAX_GROWTH * max(len(raw), MAX_LINE):
                section = bytes(raw).decode()
            builder.add(section, f"record {number}")
        built = builder.build(_name(outer)[1] or path.name, decoded.note)
        return replace(built, left_out=OWN_EXPORT if outer.keys() >= SESSION_KEYS else "")
    except (*DECODE_ERRORS, ValueError, TooMuchText):
        return FileText(decoded.text, path.name, decoded.note)


def _split(text: bytes, *, is_lines: bool) -> tuple[dict[str, Raw], list[Raw]]:
    """The elements of the main list, and all other values by their paths of keys.

    Raises ValueError if an object has a key twice.
    """
    if not is_lines:
        with suppress(*DECODE_ERRORS):
            found = _split_value(text, 0)
            # It keeps no object.
            json.loads(text, object_pairs_hook=lambda pairs: bool(_unique(pairs)), parse_int=str)
            return found
    return {}, msgspec.json.Decoder(Raw).decode_lines(text)


def _split_value(text: bytes, level: int) -> tuple[dict[str, Raw], list[Raw]]:
    """The main list is the value itself, or the list of objects that makes up most of it, perhaps deeper."""
    if text.lstrip().startswith(b"["):
        return {}, msgspec.json.decode(text, type=list[Raw])
    members = msgspec.json.decode(text, type=dict[str, Raw])
    name, longest = max(members.items(), key=lambda one: len(one[1]), default=("", Raw(b"")))
    if level < MAX_LEVELS and 2 * len(longest) > len(text) and OBJECTS.match(bytes(longest)):
        about, records = _split_value(bytes(longest), level + 1)
        if records:
            others = {key: raw for key, raw in members.items() if key != name}
            return others | {f"{name}.{key}": raw for key, raw in about.items()}, records
    return members, []


def _without_looks(value: Any) -> Any:
    """What is said on a canvas: the text of a note, its file or address, the labels of groups and arrows."""
    if isinstance(value, list):
        return [kept for one in value if (kept := _without_looks(one))]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if key not in LOOKS}
    return kept["text"] if list(kept) == ["text"] else kept


def _section(value: Any, usual: str, spaced: int = 0) -> str:
    """A record below its heading: its name, else its first date, else `usual`."""
    key, name = _name(value)
    heading = name or _date(value) or usual
    lines = [f"# {heading}", ""] if heading else []
    if name:
        value = {other: inner for other, inner in value.items() if other != key}
    _write(lines, "", value, spaced)
    return "\n".join(lines)


def _name(record: Any) -> tuple[str, str]:
    """The name of a record and its key."""
    texts = _texts(record)
    for name in NAMES:
        for key, text in texts.items():
            if key.lower() == name and len(text) <= MAX_NAME and (shown := one_line(repaired(text))):
                return key, shown
    return "", ""


def _date(record: Any) -> str:
    dates = map(DATE.match, _texts(record).values())
    return next((date[0].replace("T", " ") for date in dates if date), "")


def _texts(record: Any) -> dict[str, str]:
    values = record.items() if isinstance(record, dict) else ()
    return {key: value for key, value in values if isinstance(value, str)}


def _write(lines: list[str], key: str, value: Any, spaced: int) -> None:
    """Append the lines of a value at a path of keys; empty ones around the values of `spaced` levels."""
    if isinstance(value, str) and value[:1] in ("{", "[") and has_escapes(value.encode(errors="replace")):
        with suppress(ValueError, RecursionError):
            value = JSON.decode(value)  # JSON in a string.
    if members := _members(value):
        if spaced > 0:
            _end_paragraph(lines)
        for name, one in members:
            _write(lines, f"{key}.{name}".removeprefix(".")[-MAX_KEY:], one, spaced - 1)
        if spaced > 0:
            _end_paragraph(lines)
        return
    label = f"{one_line(key)}: " if key else ""
    text = ", ".join(map(_shown, value or ())) if isinstance(value, dict | list) else _shown(value)
    if not _is_long(text):
        lines.append(f"{label}{text}".rstrip())
        return
    _end_paragraph(lines)
    if isinstance(value, list) and any(isinstance(one, str) for one in value):
        text = "\n".join(f"- {_shown(one)}" for one in value)
    lines += [*([label.rstrip(), ""] if label else []), _as_markdown(text), ""]


def _members(value: Any) -> list[tuple[str, Any]]:
    """The keys and values of what does not fit in one line; of a list, the keys are numbers."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list) and any(isinstance(one, dict | list) or _is_long(one) for one in value):
        return [(f"{number}", one) for number, one in enumerate(value, 1)]
    return []


def _end_paragraph(lines: list[str]) -> None:
    if lines and lines[-1]:
        lines.append("")


def _shown(value: Any) -> str:
    return clean(repaired(value)).strip("\n") if isinstance(value, str) else json.dumps(value)


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and (len(value) > MAX_LINE or "\n" in value.strip("\n"))


def _as_markdown(text: str) -> str:
    """A text with its headings one level lower; in a code block if "#" seems to begin no headings in it."""
    marks = list(MARKUP.finditer(text))
    headings = [mark for mark in marks if mark[3]]
    is_code = headings and headings[0].start() > 0 and not has_markdown(text)
    if is_code or any(mark[2] is not None for mark in marks):
        return fenced(text)
    return lowered(text)
