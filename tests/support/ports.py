"""Ports for servers that a test stops and starts again, or never starts."""

from __future__ import annotations

import os
import random
import socket

# Below the ports that systems assign by themselves: those can be taken between two starts of a server, as the
# client's end of any connection. Each worker of pytest-xdist has a range of its own.
_FIRST, _COUNT, _WORKERS = 20_000, 1_000, 10


def free_port() -> int:
    """A port of loopback on which nothing listens."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = _FIRST + worker % _WORKERS * _COUNT
    while True:
        port = random.randrange(first, first + _COUNT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
