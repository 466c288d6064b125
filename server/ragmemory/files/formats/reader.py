"""Which module reads which file: what its first bytes say, and its name where they allow several formats."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from msgspec import Struct
from msgspec.structs import replace

from ragcommon.files.decoding import NoText, NotText, decode
from ragmemory.files.formats import chats, minified, signal
from ragmemory.files.formats.archives import OLE
from ragmemory.files.formats.read import Read

# Extensions by module. All other files are text.
_MODULES = {
    extension: module
    for module, extensions in {
        "bundles": "zip tar tgz tbz2 txz gz bz2 xz",
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
TEXT = "text"
# Modules whose files are no text: by their first bytes they are told from all others.
KINDS = {
    **{"bundles": "an archive", "docx": "a Word file", "epub": "an EPUB file"},
    **{"odt": "an OpenDocument file", "pdf": "a PDF file", "pptx": "a PowerPoint file"},
    **{"rtf": "an RTF file", "xlsx": "an Excel file"},
}
# Modules for text that a plain text file may hold, too.
MARKUP = {"html": "a web page", "mail": "an e-mail"}
PLAIN = frozenset(("", ".txt", ".text"))
# The members by which the formats that are ZIP archives are told apart.
MEMBERS = {
    **{"word/document.xml": "docx", "xl/workbook.xml": "xlsx", "ppt/presentation.xml": "pptx"},
    **{"META-INF/container.xml": "epub", "content.xml": "odt"},
}
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
COMPRESSED = re.compile(rb"\x1f\x8b\x08|BZh[1-9](?:1AY&SY|\x17rE8P\x90)|\xfd7zXZ\0")
TAR, TAR_AT = b"ustar", 257
# A text about PDF may begin with the same word: then its line goes on, or no object follows.
PDF = re.compile(rb"\s*%PDF-\d\.\d[ \t]*[\r\n](?:.*?[\s\0])?\d+ \d+ obj\b", re.DOTALL)
PDF_MARK, PDF_WITHIN = b"%PDF", 1_024
RTF = re.compile(rb"\s*\{\\rtf1?\\")
HTML = re.compile(rb"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
# The headers of a message, also in a mailbox; one that a person typed has no MIME version.
MAIL = re.compile(rb"(?:From [^\n]*\n)?(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*)*?MIME-Version:", re.IGNORECASE)
MAIL_WITHIN = 16_384
BEGINNING = 2_048

JSON = frozenset((".json", ".jsonl", ".ndjson"))


class Parser(Struct, frozen=True):
    """Reads files with a module of this folder, which is imported when it is first called."""

    module: str

    def __call__(self, path: Path, data: bytes) -> Read:
        """Raises NotText; any other exception is a parser's bug."""
        # It may have been chosen by the name alone.
        return read(path, data)


def parser_for(path: Path) -> Parser | None:
    """The parser of a file by its extension, as long as its content is not known; None for text."""
    module = _module_for(path)
    return Parser(module) if module != TEXT else None


def read(path: Path, data: bytes) -> Read:
    """Read a file with the module for it. Raises NotText; any other exception is a parser's bug."""
    module, named = module_of(path, data), _module_for(path)
    note = ""
    kinds = KINDS | MARKUP
    if module != named and (module in kinds or named in KINDS):
        note = f"is {kinds.get(module, 'text')}, not what its name says"
    try:
        found: Read = import_module(f"ragmemory.files.formats.{module}").read(path, data)
    except NotText as error:
        if not note:
            raise
        kind = NoText if isinstance(error, NoText) else NotText
        raise kind(f"{note}, and {error}") from None
    return replace(found, note="; ".join(filter(None, (note, found.note))))


def module_of(path: Path, data: bytes) -> str:
    """The module for a file with this name and content."""
    named = _module_for(path)
    beginning = data[:BEGINNING]
    if data.startswith(ZIP):
        return _module_of_zip(data, named)
    if COMPRESSED.match(data) or data[TAR_AT : TAR_AT + len(TAR)] == TAR:
        return "bundles"
    if data.startswith(OLE):
        return named if named in MEMBERS.values() else "bundles"
    if PDF.match(beginning) or (named == "pdf" and PDF_MARK in beginning[:PDF_WITHIN]):
        return "pdf"
    if RTF.match(beginning):
        return "rtf"
    if named in KINDS:
        return _module_of_other(beginning, named)
    if path.suffix.lower() in PLAIN:
        return _module_of_plain(data)
    return _module_of_json(path, data) if path.suffix.lower() in JSON else named


def _module_for(path: Path) -> str:
    """The module by the name of a file alone."""
    return _MODULES.get(path.suffix.lower(), TEXT)


def _module_of_zip(data: bytes, named: str) -> str:
    with suppress(BadZipFile, ValueError, NotImplementedError), ZipFile(BytesIO(data)) as archive:
        for name, module in MEMBERS.items():
            if name in archive.NameToInfo:
                return module
    return named if named in MEMBERS.values() else "bundles"


def _module_of_other(beginning: bytes, named: str) -> str:
    """The module for a file that is not of the format that its name says: mostly a page of an error."""
    if HTML.match(beginning):
        return "html"
    with suppress(NotText):
        decode(beginning)
        return TEXT
    return named if beginning.strip() else TEXT


def _module_of_plain(data: bytes) -> str:
    if HTML.match(data[:BEGINNING]):
        return "html"
    return "mail" if MAIL.match(data[:MAIL_WITHIN]) else TEXT


def _module_of_json(path: Path, data: bytes) -> str:
    """The module for a text in JSON, some of which are recognised by their content."""
    beginning = data[: chats.BEGINNING].decode("utf-8-sig", errors="replace")
    if chats.is_export(beginning):
        return "chats"
    if signal.is_export(beginning):
        return "signal"
    is_minified = path.suffix.lower() == minified.SUFFIX and minified.is_minified(beginning)
    return "minified" if is_minified else TEXT
