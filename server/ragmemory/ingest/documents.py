"""Make a validated Document of the text and metadata from a client. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import PurePosixPath
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

# Characters that are searched for a title: a later heading belongs to a section, not to the document.
_BEGINNING = 100_000

# File types in which "#" at the start of a line is not a heading. All others are read as Markdown: plain
# prose is valid Markdown.
# fmt: off
_PLAIN = EXTENSIONS | frozenset((
    "txt", "text", "log", "csv", "tsv", "json", "jsonl", "xml", "html", "htm", "yaml", "yml", "toml",
    "ini", "cfg", "conf", "tex", "sql", "css", "kt", "kts", "pl", "swift", "r",
))
# fmt: on
_SETTINGS = frozenset(("conf", "cfg", "ini", "toml", "yaml", "yml"))
# Python's `mimetypes` reads the machine's own tables, which differ, and takes .ts for a film.
MARKDOWN = "text/markdown"
_MEDIA_TYPES = {
    "": MARKDOWN,
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "xml": "application/xml",
    "html": "text/html",
    "htm": "text/html",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "css": "text/css",
    "js": "text/javascript",
    "mjs": "text/javascript",
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
    """Complete a document without validating it: an earlier release may have stored what is refused now.

    `metadata.uri` is the document's identity, else the hash of the text. The title is `metadata.title`, else
    the first Markdown heading, else "". It is cut to a heading's length: every chunk is embedded with it.
    """
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
    """Whether a document is Markdown: as its metadata say, else unless its extension names a format."""
    return media_type(uri, stated) == MARKDOWN if stated else _extension(uri) not in _PLAIN


def is_prose(uri: str) -> bool:
    """Whether a document may be written for people, by its extension; code, data and logs are not."""
    return is_markdown(uri) or _extension(uri) in ("txt", "text")


def has_headings(uri: str) -> bool:
    """Whether the headings of a plain text are recognised, by its extension: it is prose or settings."""
    return is_prose(uri) or _extension(uri) in _SETTINGS


def is_csv(uri: str) -> bool:
    """Whether a document is a table of comma- or tab-separated values."""
    return _extension(uri) in ("csv", "tsv")


def media_type(uri: str, stated: object = None) -> str:
    """The MIME type of a document's text: as its metadata say, else by its extension.

    It is Markdown without an extension, and plain text with an unknown one.
    """
    if isinstance(stated, str) and stated.startswith("text/"):
        return stated
    return _MEDIA_TYPES.get(_extension(uri), "text/plain")


def _extension(uri: str) -> str:
    return PurePosixPath(uri).suffix[1:].lower()


def first_heading(text: str) -> str:
    """The first non-empty Markdown heading near the beginning, or ""."""
    return next((block.heading for block in markdown_blocks(text[:_BEGINNING]) if block.heading), "")


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_KNOWN_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "uri": (lambda value: isinstance(value, str) and bool(value.strip()), "must be a text that is not empty"),
    "title": (lambda value: isinstance(value, str), "must be a text"),
    "tags": (_is_texts, "must be a list of texts"),
    "created_at": (
        lambda value: timestamp(value) is not None,
        "must be a date or time in ISO 8601, such as 2026-01-31",
    ),
}
