"""Whose process is at the other end of a connection within this machine.

Browsers send the cookies of a host to all of its ports, so another user of the machine can collect ours with
a server of their own. They cannot use it: the kernel knows whose each connection is.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

# <linux/netlink.h>, <linux/sock_diag.h>, <net/tcp_states.h>
_SOCK_DIAG, _DIAG_BY_FAMILY, _REQUEST, _ESTABLISHED = 4, 20, 1, 1
_ANY = 0xFFFFFFFF


def is_of_another_user(client: tuple[str, int], server: tuple[str, int]) -> bool:
    """Whether the connection is another user's; root may do everything anyway.

    A connection that its client has closed has no user any more, so it counts as another's. False where the
    system does not tell: it is not Linux, or the answer is forbidden.
    """
    if sys.platform != "linux":
        return False
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    addresses = (socket.inet_pton(family, host) for host, _ in (client, server))
    ends = struct.pack(">HH16s16s", client[1], server[1], *addresses)
    asked = (
        struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _ANY) + ends + struct.pack("=3I", 0, _ANY, _ANY)
    )
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.send(struct.pack("=IHHII", 16 + len(asked), _DIAG_BY_FAMILY, _REQUEST, 0, 0) + asked)
            answer = kernel.recv(4096)
    except OSError:
        return False
    (kind,) = struct.unpack_from("=H", answer, 4)
    if kind != _DIAG_BY_FAMILY:  # There is no such connection any more.
        return True
    state, user = answer[17], struct.unpack_from("=I", answer, 80)[0]
    return state != _ESTABLISHED or user not in (os.geteuid(), 0)
