"""The internet of a test: what names resolve to, and which addresses the servers of the test stand in for.

It replaces the two functions of AnyIO through which all connections of our clients go. Other names and
addresses are as they are.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.certificates import certificate_of

PUBLIC, ELSEWHERE, PRIVATE = "93.184.216.34", "93.184.216.35", "192.168.1.5"


class Internet:
    """`names` has the answers of each name; each is given once, the last one from then on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self.ours: set[str] = set()
        """The addresses behind which the servers of the test are: their ports on loopback."""
        self.connected: list[str] = []
        """The addresses that were connected to."""
        self._resolve, self._connect = anyio.getaddrinfo, anyio.connect_tcp
        patch.setattr(anyio, "getaddrinfo", self._answer)
        patch.setattr(anyio, "connect_tcp", self._lead)

    async def _answer(self, host: str, port: int, **options: Any) -> list[Any]:
        if (answers := self.names.get(host)) is None:
            return await self._resolve(host, port, **options)
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    async def _lead(self, remote_host: str, remote_port: int, **options: Any) -> Any:
        if remote_host in self.names:  # a client that leaves the resolving to AnyIO, such as a browser
            remote_host = self.names[remote_host][0][0]
        self.connected.append(remote_host)
        return await self._connect(
            "127.0.0.1" if remote_host in self.ours else remote_host, remote_port, **options
        )

    def certify(self, patch: pytest.MonkeyPatch, folder: Path) -> Path:
        """A certificate for the names known so far, which our clients trust."""
        file = folder / "names.pem"
        file.write_bytes(certificate_of(*self.names))
        patch.setenv("SSL_CERT_FILE", str(file))
        return file
