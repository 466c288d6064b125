"""Files of Word, PowerPoint and Excel: archives that libraries of the extra `office` open."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TypeVar

from ragmemory.files.formats.archives import open_archive
from ragmemory.files.formats.read import Damaged, MissingExtra

T = TypeVar("T")


def open_office(data: bytes, kind: str, load: Callable[[IO[bytes]], T]) -> T:
    """What `load` returns, which imports its library. `kind` is the format. Raises NotText."""
    file = open_archive(data, kind).fp
    assert file is not None  # It is open.
    try:
        return load(file)
    except ImportError:
        raise MissingExtra("office") from None
    # What these libraries raise for files that they do not expect, beside their own errors.
    except (KeyError, ValueError, TypeError, AttributeError):
        raise Damaged(kind) from None
