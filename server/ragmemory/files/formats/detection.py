"""Choose the module for a file, by its first bytes, and by its name where they are ambiguous."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from msgspec.structs import replace

from ragcommon.files.decoding import NoText, NotText, decode
from ragmemory.files.formats import chats, csv_table, keep, minified, records, signal
from ragmemory.files.formats.agenda import AGENDA
from ragmemory.files.formats.archives import OLE
from ragmemory.files.formats.bookmarks import BOOKMARKS
from ragmemory.files.formats.clippings import CLIPPINGS
from ragmemory.files.formats.file_text import FileText
from ragmemory.ingest.documents import is_known_text

# Extensions by module. All other files are text.
_MODULES = {
    extension: module
    for module, extensions in {
        "asciidoc": "adoc asciidoc",
        "bibtex": "bib",
        "bundles": "zip tar tgz tbz2 txz gz bz2 xz jex bear2bk textpack",
        "docx": "docx docm",
        "epub": "epub",
        "evernote": "enex",
        "html": "html htm xhtml",
        "image": "png jpg jpeg tif tiff webp",
        "latex": "tex latex",
        "mail": "eml emlx mbox mhtml mht",
        "notebook": "ipynb",
        "odf": "odt ods odp",
        "org": "org",
        "pdf": "pdf",
        "pptx": "pptx pptm",
        "rst": "rst rest",
        "rtf": "rtf",
        "subtitles": "srt vtt",
        "xls": "xls xlt",
        "xlsx": "xlsx xlsm",
    }.items()
    for extension in (f".{name}" for name in extensions.split())
}
TEXT, IMAGE = "text", "image"
# How the names of files begin that folders and archives hide; the last are those that Office has open.
HIDDEN = (".", "~$")
# What Logseq keeps in its own folder: earlier versions of pages, which it does not read itself, and settings.
_OWN = ("bak", "version-files", "config.edn", "custom.css", "custom.js", "export.css", "metadata.edn")
OF_LOGSEQ = frozenset(("logseq", name) for name in _OWN)
# Files in which programs keep keys and passwords. They are read only if the user names them.
SECRETS = re.compile(
    r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|ssh_host_\w+_key|g?shadow-?|htpasswd|.+\.tfstate(?:\.backup)?"
    r"|.+\.(?:env|pem|key|ppk|pfx|p12|jks|keystore|keytab|kdbx?)",
    re.IGNORECASE,
)
# Files that programs make from others: for a web browser, and lists of packages, pages or highlights.
# They have no prose, and many chunks.
GENERATED = re.compile(
    r".+[.-]min\.(?:[cm]?js|css)|.+\.(?:js|css)\.map"
    r"|.+\.lock|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum"
    r"|(?:pages-metadata|graphs-txid|srs-of-matrix|.+_\d{13}_\d+)\.edn",
    re.IGNORECASE,
)
# Binary formats, which are recognised by their first bytes.
KINDS = {
    **{"bundles": "an archive", "docx": "a Word file", "epub": "an EPUB file"},
    **{"image": "an image"},
    **{"odf": "an OpenDocument file", "pdf": "a PDF file", "pptx": "a PowerPoint file"},
    **{"rtf": "an RTF file", "xls": "an older Excel file", "xlsx": "an Excel file"},
}
# Text formats that also occur in files named .txt.
MARKUP = {"html": "a web page", "mail": "an e-mail"}
PLAIN = frozenset(("", ".txt", ".text"))
# The folders of a Maildir, whose files are messages: 1713340900.M22P99.host,S=900:2,S
MAILDIR = frozenset(("cur", "new"))
# Members that identify formats based on ZIP.
MEMBERS = {
    **{"word/document.xml": "docx", "xl/workbook.xml": "xlsx", "ppt/presentation.xml": "pptx"},
    **{"META-INF/container.xml": "epub", "content.xml": "odf"},
}
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
COMPRESSED = re.compile(rb"\x1f\x8b\x08|BZh[1-9](?:1AY&SY|\x17rE8P\x90)|\xfd7zXZ\0")
TAR, TAR_AT = b"ustar", 257
# A text about PDF may begin with the same word, but not be followed by a line end and an object.
PDF = re.compile(rb"\s*%PDF-\d\.\d[ \t]*[\r\n](?:.*?[\s\0])?\d+ \d+ obj\b", re.DOTALL)
PDF_MARK, PDF_WITHIN = b"%PDF", 1_024
RTF = re.compile(rb"\s*\{\\rtf1?\\")
# What identifies a format at the beginning of a file, whatever its name is.
PATTERNS = {"pdf": PDF, "rtf": RTF, "bookmarks": BOOKMARKS, "agenda": AGENDA}
HTML = re.compile(rb"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
# The headers of a message or mailbox. Hand-typed headers have no MIME version.
MAIL = re.compile(rb"(?:From [^\n]*\n)?(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*)*?MIME-Version:", re.IGNORECASE)
MAIL_WITHIN = 16_384
BEGINNING = 2_048

JSON = frozenset((".json", records.CANVAS, *records.LINES))


def read(path: Path, data: bytes) -> FileText:
    """Detect the format of a file and read it. Raises NotText; any other exception is a parser's bug."""
    module, named = module_of(path, data), module_for(path)
    note = ""
    kinds = KINDS | MARKUP
    says_kind = path.suffix and path.parent.name not in MAILDIR
    if says_kind and data.strip() and module != named and (module in kinds or named in KINDS):
        note = f"is {kinds.get(module, 'text')}"
        if path.suffix.lower() in _MODULES or is_known_text(path.name):
            note += ", not what its name says"
    try:
        found: FileText = import_module(f"ragmemory.files.formats.{module}").read(path, data)
    except NotText as error:
        if not note:
            raise
        kind = NoText if isinstance(error, NoText) else NotText
        raise kind(f"{note}, and {error}") from None
    return replace(found, note="; ".join(filter(None, (note, found.note))))


def module_of(path: Path, data: bytes) -> str:
    """The module for a file with this name and content."""
    named = module_for(path)
    beginning = data[:BEGINNING]
    if data.startswith(ZIP):
        return _module_of_zip(data, named)
    if COMPRESSED.match(data) or data[TAR_AT : TAR_AT + len(TAR)] == TAR:
        return "bundles"
    if data.startswith(OLE):
        return named if named == "xls" or named in MEMBERS.values() else "bundles"
    if named == "pdf" and PDF_MARK in beginning[:PDF_WITHIN]:
        return "pdf"
    for module, pattern in PATTERNS.items():
        if pattern.match(beginning):
            return module
    if named in KINDS:
        return _module_of_other(beginning, named)
    suffix = path.suffix.lower()
    if suffix in PLAIN:
        return _module_of_plain(data)
    if path.parent.name in MAILDIR and MAIL.match(data[:MAIL_WITHIN]):
        return "mail"
    if suffix in csv_table.DELIMITERS and csv_table.has_line_breaks(suffix, data):
        return "csv_table"
    return _module_of_json(path, data) if suffix in JSON else named


def module_for(path: Path) -> str:
    """The module for a file extension, before the content is read."""
    return _MODULES.get(path.suffix.lower(), TEXT)


def _module_of_zip(data: bytes, named: str) -> str:
    with suppress(BadZipFile, ValueError, NotImplementedError), ZipFile(BytesIO(data)) as archive:
        for name, module in MEMBERS.items():
            if name in archive.NameToInfo:
                return module
    return named if named in MEMBERS.values() else "bundles"


def _module_of_other(beginning: bytes, named: str) -> str:
    """The module for a file whose content contradicts its name: mostly an HTML error page."""
    if HTML.match(beginning):
        return "html"
    with suppress(NotText):
        decode(beginning)
        return TEXT
    return named if beginning.strip() else TEXT


def _module_of_plain(data: bytes) -> str:
    if HTML.match(data[:BEGINNING]):
        return "html"
    if CLIPPINGS.match(data[:MAIL_WITHIN]):
        return "clippings"
    return "mail" if MAIL.match(data[:MAIL_WITHIN]) else TEXT


def _module_of_json(path: Path, data: bytes) -> str:
    """The module for JSON: chat exports, prose and minified files are recognised by their content."""
    beginning = data[: chats.BEGINNING].decode("utf-8-sig", errors="replace")
    if path.suffix.lower() not in records.LINES and chats.is_export(beginning):
        return "chats"
    if signal.is_export(beginning):
        return "signal"
    if keep.MARK in data:
        return "keep"
    if path.suffix.lower() == records.CANVAS or records.has_escapes(data):
        return "records"
    is_minified = path.suffix.lower() == minified.SUFFIX and minified.is_minified(beginning)
    return "minified" if is_minified else TEXT
