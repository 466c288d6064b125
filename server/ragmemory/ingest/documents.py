"""Validate the text and metadata from a client, and make a Document. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from ragcommon.contract.documents import Metadata
from ragcommon.text.rules import MAX_HEADING
from ragmemory.errors import BadArgument
from ragmemory.ingest.blocks import markdown_blocks
from ragmemory.stores.filters import timestamp
from ragmemory.stores.values import check_object, check_unicode, check_uri
from ragmemory.text.languages import EXTENSIONS
from ragmemory.types.writes import Document

# Characters searched for a title: a later heading is that of a section, not of the document.
_BEGINNING = 100_000

# File types in which "#" at the start of a line is not a heading. All others are read as Markdown: plain
# prose is valid Markdown.
# fmt: off
_SETTINGS = frozenset((
    "cfg", "cnf", "conf", "hcl", "ini", "json", "properties", "service", "tf", "tfvars", "timer", "toml",
    "yaml", "yml",
))
_PLAIN = EXTENSIONS | _SETTINGS | frozenset((
    "txt", "text", "log", "csv", "tsv", "jsonl", "xml", "html", "htm", "tex", "sql", "css", "pl", "r",
))
# fmt: on
_COMPRESSED = frozenset(("gz", "bz2", "xz"))
# Logs that logrotate and others keep: app.log.3, app.log-20260131, app.log.2026-01-31.
_ROTATED = re.compile(r".+\.log[.-][\d.-]+")
# Python's `mimetypes` depends on the machine, and maps .ts to a video type.
MARKDOWN = "text/markdown"
_MEDIA_TYPES = {
    **dict.fromkeys(("", "md", "markdown"), MARKDOWN),
    **dict.fromkeys(("html", "htm"), "text/html"),
    **dict.fromkeys(("js", "mjs"), "text/javascript"),
    **dict.fromkeys(("yaml", "yml"), "application/yaml"),
    **{extension: f"application/{extension}" for extension in ("json", "xml", "toml")},
    **{extension: f"text/{extension}" for extension in ("csv", "css")},
    "tsv": "text/tab-separated-values",
    "py": "text/x-python",
}


def make_document(text: str, metadata: Metadata) -> Document:
    """Validate a document and complete it. Raises BadArgument."""
    for key, (is_valid, reason) in _KNOWN_KEYS.items():
        if key in metadata and not is_valid(metadata[key]):
            raise BadArgument(f"metadata.{key}", reason)
    check_object("metadata", metadata)
    check_uri("metadata.uri", metadata.get("uri", ""))
    if not text or text.isspace():
        raise BadArgument("text", "is empty")
    check_unicode("text", text)
    return complete(text, metadata)


def complete(text: str, metadata: Metadata) -> Document:
    """Complete a document without validation: an earlier release may have stored what is refused now.

    `metadata.uri` is the document's identity, else the hash of the text. The title is `metadata.title`, else
    the first Markdown heading, else "". It is cut to a heading's length: every chunk is embedded with it.
    """
    # PostgreSQL stores no U+0000. It is replaced as CommonMark does, in both engines alike.
    text = text.replace("\0", "\ufffd")
    digest = hashlib.sha256(text.encode())
    uri = metadata.get("uri") or f"sha256:{digest.hexdigest()}"
    markdown = is_markdown(uri, metadata.get("media_type"))
    title = metadata.get("title") or (first_heading(text) if markdown else "")
    return Document(
        document_id=document_id(uri),
        uri=uri,
        title=title[:MAX_HEADING],
        text=text,
        digest=digest.digest(),
        metadata=msgspec.json.encode(metadata, order="sorted").decode(),
        created=timestamp(metadata.get("created_at")),
        is_markdown=markdown,
    )


def document_id(uri: str) -> str:
    """16 hexadecimal digits, derived from the uri alone."""
    return hashlib.sha256(uri.encode()).hexdigest()[:16]


def is_markdown(uri: str, stated: object = None) -> bool:
    """Whether a document is Markdown: by its stated media type, else by its extension."""
    return media_type(uri, stated) == MARKDOWN if stated else _extension(uri) not in _PLAIN


def is_prose(uri: str) -> bool:
    """Whether a document may be prose, by its extension; code, data and logs are not."""
    return is_markdown(uri) or _extension(uri) in ("txt", "text")


def has_headings(uri: str) -> bool:
    """Whether to recognise headings in a plain text: it is prose or settings, by its extension."""
    return is_prose(uri) or _extension(uri) in _SETTINGS


def is_csv(uri: str) -> bool:
    """Whether a document is a table of comma- or tab-separated values."""
    return _extension(uri) in ("csv", "tsv")


def is_bibtex(uri: str) -> bool:
    """Whether a document is a bibliography in BibTeX."""
    return _extension(uri) == "bib"


def is_known_text(uri: str) -> bool:
    """Whether the extension is known as that of texts."""
    return _extension(uri) in _PLAIN or _extension(uri) in _MEDIA_TYPES


def media_type(uri: str, stated: object = None) -> str:
    """The media type of a document's text: as stated in its metadata, else by its extension.

    Markdown without an extension, plain text with an unknown one.
    """
    if isinstance(stated, str) and stated.startswith("text/"):
        return stated
    return _MEDIA_TYPES.get(_extension(uri), "text/plain")


@lru_cache(1_000)
def _extension(uri: str) -> str:
    """The extension of a file, without the dot, or of the file that is compressed in it, or was rotated."""
    # Not with pathlib: it took 5 % of the time of a load of small files.
    stem, _, extension = uri.lower().rstrip("/").rpartition("/")[2].rpartition(".")
    if extension in _COMPRESSED:
        stem, _, extension = stem.rpartition(".")
    if extension[-1:].isdecimal() and _ROTATED.fullmatch(f"{stem}.{extension}"):
        return "log"
    return extension if stem else ""


def first_heading(text: str) -> str:
    """The first non-empty Markdown heading near the beginning, or ""."""
    return next((block.heading for block in markdown_blocks(text[:_BEGINNING]) if block.heading), "")


def leading_heading(text: str) -> str:
    """The first heading if it may be that of the document: of the first level, or above all text; else ""."""
    for block in markdown_blocks(text[:_BEGINNING].lstrip()):
        if block.heading:
            return block.heading if block.level == 1 or not block.start else ""
    return ""


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_KNOWN_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "uri": (
        lambda value: isinstance(value, str) and bool(value.strip()),
        "must be a string that is not empty",
    ),
    "title": (lambda value: isinstance(value, str), "must be a string"),
    "tags": (_is_texts, "must be a list of strings"),
    "created_at": (
        lambda value: timestamp(value) is not None,
        "must be a date or time in ISO 8601, such as 2026-01-31",
    ),
}
