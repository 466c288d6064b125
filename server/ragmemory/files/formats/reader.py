"""Which module reads which format."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from msgspec import Struct

from ragmemory.files.formats import chats, minified, signal
from ragmemory.files.formats.read import Read

# Extensions by module.
_MODULES = {
    extension: module
    for module, extensions in {
        "docx": "docx docm",
        "epub": "epub",
        "html": "html htm xhtml",
        "mail": "eml mbox",
        "notebook": "ipynb",
        "odt": "odt",
        "pdf": "pdf",
        "pptx": "pptx pptm",
        "rst": "rst rest",
        "rtf": "rtf",
        "subtitles": "srt vtt",
        "xlsx": "xlsx xlsm",
    }.items()
    for extension in (f".{name}" for name in extensions.split())
}


JSON = frozenset((".json", ".jsonl", ".ndjson"))


class Parser(Struct, frozen=True):
    """Reads files with a module of this folder, which is imported when it is first called."""

    module: str

    def __call__(self, path: Path, data: bytes) -> Read:
        """Raises NotText; any other exception is a parser's bug."""
        read: Read = import_module(f"ragmemory.files.formats.{self.module}").read(path, data)
        return read


def parser_of_text(path: Path, text: str) -> Parser | None:
    """The parser of a text that is recognised by its content; None for plain text."""
    if path.suffix.lower() not in JSON:
        return None
    beginning = text[: chats.BEGINNING]
    if chats.is_export(beginning):
        return Parser("chats")
    if signal.is_export(beginning):
        return Parser("signal")
    is_minified = path.suffix.lower() == minified.SUFFIX and minified.is_minified(beginning)
    return Parser("minified") if is_minified else None


def parser_for(path: Path) -> Parser | None:
    """The parser of a file by its extension; None for text."""
    module = _MODULES.get(path.suffix.lower())
    return Parser(module) if module else None
