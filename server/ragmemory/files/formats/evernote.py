"""Notes that Evernote exported (.enex): each as Markdown below its title. Attached files are only named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ragmemory.files.formats.file_text import (
    Damaged,
    FileText,
    TextBuilder,
    TooMuchText,
    lowered,
    one_line,
)
from ragmemory.files.formats.html import markdown

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

DATE = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ")
TODO = re.compile(r"<en-todo\b([^<>]*)>(?:\s*</en-todo>)?")
CHECKED = re.compile(r"""checked\s*=\s*["']true""")
MEDIA = re.compile(r"<en-media\b[^<>]*>(?:\s*</en-media>)?")
ENCRYPTED = re.compile(r"<en-crypt\b(?:[^<>]*/>|.*?(?:</en-crypt>|\Z))", re.DOTALL)


def read(path: Path, data: bytes) -> FileText:
    """The notes of a file. Raises NotText."""
    builder = TextBuilder()
    files = encrypted = number = 0
    notes = []
    try:
        for number, note in enumerate(_notes(data), 1):
            content = note.findtext("content") or ""
            files += len(note.findall("resource"))
            encrypted += len(ENCRYPTED.findall(content))
            for part in _parts(note, content, f"Note {number}"):
                builder.add(part, f"note {number}")
    except TooMuchText as error:
        notes.append(f"{error}, and was read only up to note {number:,}")
    except ValueError:
        if not number:
            raise Damaged("Evernote") from None
        notes.append(f"is damaged after note {number:,}")
    if files:
        notes.append(f"has attached files, which were not read: {files:,}")
    if encrypted:
        notes.append(f"has encrypted passages, which were not read: {encrypted:,}")
    return builder.build(path.name, "; ".join(notes))


def _notes(data: bytes) -> Iterator[Element]:
    """The notes, one at a time, without the content of attached files. Raises ValueError for damage."""
    from xml.etree.ElementTree import ParseError

    from defusedxml.ElementTree import iterparse

    try:
        for _, element in iterparse(BytesIO(data), forbid_dtd=False, forbid_entities=True):
            if element.tag == "note":
                yield element
            if element.tag in ("note", "data"):
                element.clear()
    except (ParseError, LookupError):
        raise ValueError from None


def _parts(note: Element, content: str, usual: str) -> Iterator[str]:
    """The heading of a note, what is known about it, its text, and the names of attached files."""
    yield f"# {one_line(note.findtext('title') or '') or usual}"
    about = {
        "Created": DATE.sub(r"\1-\2-\3 \4:\5", note.findtext("created") or ""),
        "Tags": ", ".join(tag.text or "" for tag in note.findall("tag")),
        "Source": note.findtext("note-attributes/source-url") or "",
    }
    yield "\n".join(f"{name}: {one_line(value)}" for name, value in about.items() if value.strip())
    content = TODO.sub(lambda todo: "[x] " if CHECKED.search(todo[1]) else "[ ] ", content)
    yield lowered(markdown(ENCRYPTED.sub("", MEDIA.sub("", content)), with_links=True)[0])
    names = [one.text or "" for one in note.findall("resource/resource-attributes/file-name")]
    if names:
        yield f"Attachments: {one_line(', '.join(names))}"
