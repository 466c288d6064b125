"""Whose process is at the other end of a connection; other users try in the tests of the two servers."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import pytest

from ragcommon import peer
from ragcommon.peer import is_of_another_user

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a connection is")


@pytest.fixture(autouse=True)
def _asks_again() -> Iterator[None]:
    yield
    peer._kernel_tells.cache_clear()


def test_a_connection_that_its_client_has_closed_counts_as_another_users() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server, _ = listening.accept()
        with server:
            ends = server.getpeername(), server.getsockname()
            assert not is_of_another_user(*ends)
            client.close()
            assert is_of_another_user(*ends)
    assert is_of_another_user(*ends)


def test_a_kernel_that_knows_no_connections_refuses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    # It answers like this for a protocol whose module it lacks.
    monkeypatch.setattr(socket, "IPPROTO_TCP", 33)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server, _ = listening.accept()
        with client, server:
            assert not is_of_another_user(server.getpeername(), server.getsockname())
