"""The standard streams and the text of the process: closed streams are replaced, ASCII locales avoided."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def open_closed_streams() -> None:
    """Open the null device for each closed stream, so that the next file does not get its descriptor.

    Call it before anything else is opened.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # `open` takes the lowest free descriptor: the stream's own, as the lower ones are open by now.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def leave_ascii() -> None:
    """Restart Python in UTF-8 mode if its locale is ASCII and its coercion is off.

    Otherwise arguments and file names could not be decoded.
    """
    # The variable is set but ignored (-E): restarting would never end.
    if sys.getfilesystemencoding() != "ascii" or os.environ.get("PYTHONUTF8") == "1":
        return
    os.environ["PYTHONUTF8"] = "1"
    with suppress(OSError):
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
