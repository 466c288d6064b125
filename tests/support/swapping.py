"""A process that swaps two paths some thousand times a second: `python swapping.py ONE OTHER`."""

from __future__ import annotations

import ctypes
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Seconds between two swaps. Without a pause, hardly any call would come through.
_PAUSE = 0.0005
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of Linux


@contextmanager
def swapped(one: Path, other: Path) -> Iterator[None]:
    """Two paths change their places all the time within the block."""
    command = [sys.executable, __file__, str(one), str(other)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield
        finally:
            process.stdin.close()


def _swap(one: str, other: str) -> None:
    """Until stdin ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second, spare = Path(one), Path(other), Path(f"{one}.spare")
    while not select.select([sys.stdin], [], [], _PAUSE)[0]:
        if sys.platform == "linux":
            libc.renameat2(_HERE, one.encode(), _HERE, other.encode(), _EXCHANGE)
            continue
        # There is a moment without either.
        for source, target in ((first, spare), (second, first), (spare, second)):
            with suppress(OSError):
                source.rename(target)


if __name__ == "__main__":
    sys.stdout.write("swapping\n")
    sys.stdout.flush()
    _swap(*sys.argv[1:])
