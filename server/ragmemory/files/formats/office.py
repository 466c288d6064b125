"""Word, PowerPoint and Excel files, which the libraries of the extra `office` open."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TypeVar

from ragmemory.files.formats.archives import open_archive
from ragmemory.files.formats.file_text import Damaged, MissingExtra

T = TypeVar("T")


def open_office(data: bytes, kind: str, load: Callable[[IO[bytes]], T]) -> T:
    """The result of `load`, which imports its library. `kind` names the format. Raises NotText."""
    file = open_archive(data, kind).fp
    assert file is not None
    try:
        return load(file)
    except ImportError:
        raise MissingExtra("office") from None
    # These libraries raise more than their own errors for unexpected content.
    except (KeyError, ValueError, TypeError, AttributeError):
        raise Damaged(kind) from None
