"""Ports for servers that a test stops and starts again, or never starts."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A port of loopback on which nothing listens, below those that systems give away by themselves.

    Of those another program's server, or a client's end of a connection, may take any one in between.
    """
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
