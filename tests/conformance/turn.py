"""Runs the client when it is its turn: `turn.py FOLDER URL`. The suite starts all clients at once.

Those that wait have loaded nothing yet, so that they do not slow down those that run.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

AT_ONCE = 2

if __name__ == "__main__":
    folder, url = sys.argv[1:]
    with (Path(folder) / f"lock{os.getpid() % AT_ONCE}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        import anyio

        from tests.conformance.client import main

        anyio.run(main, url)
