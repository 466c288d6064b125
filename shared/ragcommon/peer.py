"""Whose process is at the other end of a connection within this machine.

Browsers send the cookies of a host to all of its ports, so another user of the machine can collect ours with
a server of their own. They cannot use it: the kernel knows whose each connection is.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from functools import cache

# <linux/netlink.h>, <linux/sock_diag.h>, <net/tcp_states.h>
_SOCK_DIAG, _DIAG_BY_FAMILY, _REQUEST, _ESTABLISHED = 4, 20, 1, 1
_ANY = 0xFFFFFFFF
# The kernel answers at once.
_ANSWER_SECONDS = 1.0


def is_of_another_user(client: tuple[str, int], server: tuple[str, int]) -> bool:
    """Whether the connection is another user's; root may do everything anyway.

    A connection that its client has closed has no user any more, so it counts as another's. False where the
    system does not tell: it is not Linux, or the answer is forbidden or not built in.
    """
    if sys.platform != "linux":
        return False
    try:
        end = _end(client, server)
        if end is None:
            return _kernel_tells()
    except OSError:
        return False
    state, user = end
    return state != _ESTABLISHED or user not in (os.geteuid(), 0)


@cache
def _kernel_tells() -> bool:
    """Whether it knows the ends of open connections: that is a module, which it may lack. Raises OSError."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = listening.getsockname()
        with socket.create_connection(place) as connected:
            return _end(connected.getsockname(), place) is not None


def _end(local: tuple[str, int], remote: tuple[str, int]) -> tuple[int, int] | None:
    """The state and user of one end of a connection; None if the kernel knows none. Raises OSError."""
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    addresses = (socket.inet_pton(family, host) for host, _ in (local, remote))
    ends = struct.pack(">HH16s16s", local[1], remote[1], *addresses)
    asked = (
        struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _ANY) + ends + struct.pack("=3I", 0, _ANY, _ANY)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_ANSWER_SECONDS)
        kernel.send(struct.pack("=IHHII", 16 + len(asked), _DIAG_BY_FAMILY, _REQUEST, 0, 0) + asked)
        answer = kernel.recv(4096)
    (kind,) = struct.unpack_from("=H", answer, 4)
    return (answer[17], struct.unpack_from("=I", answer, 80)[0]) if kind == _DIAG_BY_FAMILY else None
