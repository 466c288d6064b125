"""A small disk for a test, to be filled, freed and made read-only: a tmpfs, where mounting is allowed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_BALLAST = "ballast"


class SmallDisk:
    """`path` is where it is mounted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        """Leave no byte free."""
        with suppress(OSError), (self.path / _BALLAST).open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        """Give back what `fill` took."""
        (self.path / _BALLAST).unlink(missing_ok=True)

    def remount(self, options: str) -> None:
        """Such as "ro", "rw" or "size=8m"."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.path)], check=True)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """A disk of `size`, such as "4m", mounted at `folder`. Skips the test where that is not permitted."""
    if not sys.platform.startswith("linux"):
        pytest.skip("a small disk is a tmpfs, which Linux has")
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
