"""JSON with comments and trailing commas, as used by editors. Pure."""

from __future__ import annotations

import re

_STRING = rb'"(?:[^"\\]|\\.)*+"'
_COMMENT = re.compile(_STRING + rb"|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + rb"|,(?=\s*[}\]])", re.DOTALL)


def to_json(content: bytes) -> bytes:
    """Blank out comments and trailing commas. Offsets stay the same, so that decoder errors are correct."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    return _LAST_COMMA.sub(_blank, _COMMENT.sub(_blank, content))


def _blank(found: re.Match[bytes]) -> bytes:
    text = found[0]
    return text if text.startswith(b'"') else re.sub(rb"[^\r\n]", b" ", text)
