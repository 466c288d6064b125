"""The three standard streams of a program, there even where whoever started it has closed them."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """A closed stream becomes an empty one, in its old place: what opens a file next must not get that.

    To be called before anything else is opened.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest free descriptor: its own, since those below are open by now.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
