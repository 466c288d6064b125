"""Processes of a server outside its process group: children that called setsid, and theirs (Linux).

They are found through their living parents, so daemons and orphans are not. macOS and Windows have no list of
a process's children; none is found there.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Stray(NamedTuple):
    """A process; its start time tells it from a later one with the same id."""

    pid: int
    began: str

    def signal(self, name: str) -> bool:
        """Signal it, with "" no signal. Returns whether it runs."""
        with suppress(OSError):
            status = _Status.of(self.pid)
            if status is not None and status.began == self.began and status.state not in "ZX":
                os.kill(self.pid, signal.Signals[name] if name else 0)
                return True
        return False


class _Status(NamedTuple):
    state: str
    group: int
    began: str

    @classmethod
    def of(cls, pid: int) -> _Status | None:
        """The status of a process; None if there is none. Source: proc_pid_stat(5)."""
        try:
            # Its name, in parentheses, may hold anything.
            fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            return cls(fields[0].decode(), int(fields[2]), fields[19].decode())
        except (OSError, IndexError):
            return None


def strays(server: int) -> set[Stray]:
    """The descendants of a server that are not in its process group, which is named after it."""
    found, parents = set(), [server]
    while parents:
        for pid in _children(parents.pop()):
            parents.append(pid)
            status = _Status.of(pid)
            if status is not None and status.group != server:
                found.add(Stray(pid, status.began))
    return found


def _children(pid: int) -> list[int]:
    # Each thread has a list. Reading them is far cheaper than the status of all processes.
    children: list[int] = []
    with suppress(OSError):  # It has ended, or the kernel has no such lists.
        for thread in (_PROC / str(pid) / "task").iterdir():
            children += map(int, (thread / "children").read_bytes().split())
    return children
