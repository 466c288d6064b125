"""JSON with comments and trailing commas, as the editors that host MCP servers write it. Pure."""

from __future__ import annotations

import re

_STRING = rb'"(?:[^"\\]|\\.)*+"'
_COMMENT = re.compile(_STRING + rb"|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + rb"|,(?=\s*[}\]])", re.DOTALL)


def to_json(content: bytes) -> bytes:
    """The same as JSON: spaces take the places of comments and of the commas before `}` and `]`.

    What is wrong otherwise stays, at its place, for the decoder to name.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    return _LAST_COMMA.sub(_blank, _COMMENT.sub(_blank, content))


def _blank(found: re.Match[bytes]) -> bytes:
    text = found[0]
    return text if text.startswith(b'"') else re.sub(rb"[^\r\n]", b" ", text)
