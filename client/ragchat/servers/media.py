"""Images and sounds from servers: saved as files for the user, and images as data URLs for a model."""

from __future__ import annotations

import binascii
import hashlib
import logging
import re
from base64 import b64decode, b64encode
from pathlib import Path

from ragcommon.files.writing import private_folder

log = logging.getLogger(__name__)

# Larger content is not saved.
MAX_BYTES = 5 * 2**20
# Only the newest files are kept.
MAX_FILES = 50
# The kinds of images that models take.
_IMAGES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}
# Their magic bytes; in WebP, the four arbitrary bytes are the size.
_BEGINNINGS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
# Only formats without active content: SVG can contain scripts.
_SUFFIXES = _IMAGES | {
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/webm": ".weba",
}


def size_of(data: str) -> int:
    """How many bytes there are in base64 `data`."""
    return len(data) * 3 // 4 - data.count("=", -2)


def image_url(kind: str, data: str) -> str:
    """The data URL of an image in base64; "" for other content, and for images that are too large."""
    return f"data:{kind};base64,{data}" if kind in _IMAGES and _content(data) else ""


def image_kind(content: bytes) -> str:
    """The MIME type of an image by its magic bytes; "" for other content."""
    return next((kind for kind, beginning in _BEGINNINGS.items() if beginning.match(content)), "")


def named(kind: str, size: int) -> str:
    """A placeholder for binary content in a text."""
    return f"[{kind}, {size:,} bytes]"


def data_url(kind: str, content: bytes) -> str:
    """The data URL of an image."""
    return f"data:{kind};base64,{b64encode(content).decode()}"


def _content(data: str) -> bytes:
    """The decoded base64 `data`; empty if malformed or too large."""
    if size_of(data) > MAX_BYTES:
        return b""
    try:
        return b64decode(data, validate=True)
    except binascii.Error:
        return b""


class MediaFiles:
    """Files in `folder`, named by the hash of their content."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, kind: str, data: str) -> Path | None:
        """Save base64 content to a file; None if it is too large, of an unknown type, or not writable."""
        suffix, content = _SUFFIXES.get(kind), _content(data)
        if suffix is None or not content:
            return None
        path = self._folder / f"{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
        try:
            private_folder(self._folder)
            path.write_bytes(content)
            self._remove_old()
        except OSError as error:
            log.info("A file of a server was not kept: %s", error)
            return None
        return path

    def _remove_old(self) -> None:
        kept = [path for path in self._folder.iterdir() if path.suffix in _SUFFIXES.values()]
        for path in sorted(kept, key=lambda path: path.stat().st_mtime)[:-MAX_FILES]:
            path.unlink(missing_ok=True)
