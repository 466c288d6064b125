"""Processes of a server outside its process group: a child that began a session of its own, and its children.

Only a living parent leads to them: what a server detached on purpose, or left behind when it crashed, is not
found. macOS and Windows do not list the children of a process as Linux does; there none is found.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Stray(NamedTuple):
    """A process; when it began tells it from a later one with its id."""

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
    parent: int
    group: int
    began: str

    @classmethod
    def of(cls, pid: int) -> _Status | None:
        """The status of a process; None if there is none. Source: proc_pid_stat(5)."""
        try:
            # Its name, in parentheses, may hold anything.
            fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            return cls(fields[0].decode(), int(fields[1]), int(fields[2]), fields[19].decode())
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
    # The list is that of a thread. It is far cheaper than the status of every process of the machine.
    children: list[int] = []
    with suppress(OSError):  # It has ended, or the kernel has no such lists.
        for thread in (_PROC / str(pid) / "task").iterdir():
            children += map(int, (thread / "children").read_bytes().split())
    return children
