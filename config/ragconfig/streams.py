"""Replace standard streams that the parent process has closed."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open the null device for each closed stream, so that the next file does not get its descriptor.

    Call it before anything else is opened.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # `open` takes the lowest free descriptor: the stream's own, as the lower ones are open by now.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
