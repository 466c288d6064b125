"""Validate metadata, filters and texts: only values that can be stored and found are accepted. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from ragcommon.contract.documents import Metadata
from ragcommon.errors import DECODE_ERRORS
from ragmemory.errors import BadArgument, MemoryDamaged
from ragmemory.limits import MAX_DEPTH, MAX_METADATA_BYTES, MAX_URI_LENGTH

# A float16 vector of length 1 differs from it by less.
_ROUNDING = 0.02


def check_object(path: str, value: dict[str, Any]) -> None:
    """Check metadata or a filter. Raises BadArgument with the path of the invalid value.

    SQLite's JSON functions cut a text at a NUL; JSON has neither infinities nor lone surrogates.
    """
    # The size is checked first: `_check` is plain Python and takes a second for some megabytes.
    size = _size(value)
    if size > MAX_METADATA_BYTES:
        raise BadArgument(path, f"is longer than {MAX_METADATA_BYTES:,} bytes of JSON")
    _check(path, value, 0)
    if not size:
        raise BadArgument(path, "has no form in JSON")


def check_uri(path: str, uri: str) -> None:
    """Check a uri, or a glob for uris. Raises BadArgument."""
    _check_text(path, uri)
    if len(uri) > MAX_URI_LENGTH:
        raise BadArgument(path, f"is longer than {MAX_URI_LENGTH:,} characters")


def check_unicode(path: str, text: str) -> None:
    """Raises BadArgument for a text that cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        surrogate = f"U+{ord(text[error.start]):X}"
        raise BadArgument(path, f"holds half a character, the lone surrogate {surrogate}") from None


def _size(value: Any) -> int:
    """The size in bytes as JSON; 0 if the value cannot be encoded."""
    try:
        return len(msgspec.json.encode(value))
    except (ValueError, TypeError, RecursionError):
        return 0


def _check(path: str, value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        # The full path would be as long as the value is deep.
        raise BadArgument(path.partition("[")[0][:100], f"is nested more than {MAX_DEPTH} levels deep")
    match value:
        case str():
            _check_text(path, value)
        case float() if not math.isfinite(value):
            raise BadArgument(path, "is not a finite number")
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise BadArgument(path, f"has the key {key!r}, which is not a string")
                _check_text(path, key, "has a key that ")
                _check(f"{path}.{key}", item, depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                _check(f"{path}[{index}]", item, depth + 1)


def _check_text(path: str, text: str, where: str = "") -> None:
    check_unicode(path, text)
    if "\0" in text:
        raise BadArgument(path, f"{where}holds a NUL character")


def are_sound(vectors: Sequence[object], dimensions: int) -> list[bool]:
    """Which are embeddings: of these dimensions, and of unit length, or zeros for a text without words."""
    import numpy as np

    if not dimensions:
        return [False] * len(vectors)
    no_embedding = np.full(dimensions, np.nan, "<f2").tobytes()
    blobs = [
        vector if isinstance(vector, bytes) and len(vector) == len(no_embedding) else no_embedding
        for vector in vectors
    ]
    matrix = np.frombuffer(b"".join(blobs), "<f2").reshape(-1, dimensions).astype(np.float32)
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(matrix, axis=1)
        is_sound: list[bool] = ((np.abs(lengths - 1) < _ROUNDING) | (lengths == 0)).tolist()
    return is_sound


def decode_metadata(stored: str, memory: str, place: str) -> Metadata:
    """Metadata from its stored form. Raises MemoryDamaged with the place in the memory."""
    try:
        return msgspec.json.decode(stored, type=Metadata)
    except (*DECODE_ERRORS, TypeError) as error:  # TypeError: NULL
        raise MemoryDamaged(memory, str(error), place) from error
