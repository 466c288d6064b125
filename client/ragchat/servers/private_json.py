"""JSON files that only the user can read: permissions and credentials."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from ragchat.errors import RagChatError
from ragchat.servers.configs import MAX_BYTES
from ragcommon.errors import DECODE_ERRORS, decode_reason, os_reason
from ragcommon.files.safe_open import read_regular
from ragcommon.files.writing import replace_file

S = TypeVar("S", bound=Struct)
# Makes the error for an unusable file from its path and the reason.
Unusable = Callable[[str, str], RagChatError]


def read_private(path: Path, type: type[S], unusable: Unusable, *, private: bool = False) -> S:
    """The content of a file; the default of `type` if it is missing. `private` as for `read_regular`.

    Raises what `unusable` makes.
    """
    try:
        content = read_regular(path, MAX_BYTES, private=private)
    except FileNotFoundError:
        return type()
    except OSError as error:
        raise unusable(str(path), os_reason(error)) from None
    try:
        return msgspec.json.decode(content, type=type)
    except DECODE_ERRORS as error:
        raise unusable(str(path), decode_reason(error, content)) from None


def write_private(path: Path, content: Struct, unusable: Unusable) -> None:
    """Replace a file, creating its folder if necessary. Raises what `unusable` makes."""
    try:
        replace_file(path, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
    except OSError as error:
        raise unusable(str(path), os_reason(error)) from None
