"""A note of Google Keep as Takeout exports it (JSON): its title, text or list, and links; labels are tags."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.decoding import EmptyText, decode
from ragmemory.files.formats import records
from ragmemory.files.formats.file_text import FileText, TextBuilder, not_a_heading, one_line

# A key that no other program writes.
MARK = b'"userEditedTimestampUsec"'


class Item(Struct, rename="camel"):
    text: str = ""
    is_checked: bool = False


class Label(Struct):
    name: str


class Link(Struct):
    title: str = ""
    url: str = ""


class Note(Struct, rename="camel"):
    is_trashed: bool
    title: str = ""
    text_content: str | None = ""
    list_content: list[Item] = []
    annotations: list[Link] = []
    labels: list[Label] = []


def read(path: Path, data: bytes) -> FileText:
    """The note; the records of a file that has others. Raises NotText, also for a note in the trash."""
    decoded = decode(data)
    try:
        note = msgspec.json.decode(decoded.text, type=Note)
    except DECODE_ERRORS:
        return records.read(path, data)
    if note.is_trashed:
        raise EmptyText("is in the trash of Google Keep")
    title = one_line(note.title)
    items = (f"- [{'x' if item.is_checked else ' '}] {one_line(item.text)}" for item in note.list_content)
    builder = TextBuilder(by_paragraph=True)
    builder.add(f"# {title}" if title else "")
    builder.add("\n".join(map(not_a_heading, (note.text_content or "").split("\n"))))
    builder.add("\n".join(items))
    builder.add("\n".join(one_line(f"- {link.title} {link.url}") for link in note.annotations))
    return replace(builder.build(title or path.name, decoded.note), tags=[one.name for one in note.labels])
