"""HTTP load on one server: keep-alive connections that ask one after the other, at little cost of their own.

Not an HTTP client: it reads what the measured servers send, in one piece or in chunks.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from tests.benchmarks.raw import META, MODERN

LEGACY = "2025-11-25"


class Answers(asyncio.Protocol):
    """One connection: the whole answers that come through it."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.answer is not None and not self.answer.done() and self._is_whole():
            self.answer.set_result(bytes(self.received))
            self.received.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(exc or ConnectionResetError("the server closed the connection"))

    def _is_whole(self) -> bool:
        head, found, body = bytes(self.received).partition(b"\r\n\r\n")
        if not found:
            return False
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            return body.endswith(b"0\r\n\r\n")
        _, _, length = lower.partition(b"content-length: ")
        return len(body) >= int(length.partition(b"\r\n")[0] or 0)

    async def ask(self, request: bytes) -> bytes:
        """The whole answer, headers included. Raises ConnectionError."""
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.answer


async def connect(port: int) -> Answers:
    _, protocol = await asyncio.get_running_loop().create_connection(Answers, "127.0.0.1", port)
    return protocol


def post(port: int, message: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    """A POST of one message."""
    body = json.dumps(message).encode()
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def stateless_call(port: int) -> bytes:
    """A call of the trivial tool that stands for itself, as 2026-07-28 has it."""
    params = {"name": "length", "arguments": {"text": "x"}, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "length"}
    return post(port, message, headers)


async def open_session(port: int) -> dict[str, str]:
    """The headers of a new legacy session."""
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    connection = await connect(port)
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    head = (await connection.ask(post(port, message, {}))).partition(b"\r\n\r\n")[0].decode()
    found = [line for line in head.split("\r\n") if line.lower().startswith("mcp-session-id:")]
    headers = {"Mcp-Session-Id": found[0].partition(":")[2].strip(), "MCP-Protocol-Version": LEGACY}
    await connection.ask(post(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers))
    connection.transport.close()
    return headers


def session_call(port: int, headers: Mapping[str, str]) -> bytes:
    """The same call within a legacy session."""
    params = {"name": "length", "arguments": {"text": "x"}}
    return post(port, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers)


def check(answer: bytes) -> None:
    """Raises RuntimeError unless the tool answered."""
    if b" 200 " not in answer[:20] or b'"result"' not in answer:
        raise RuntimeError(answer[:500].decode(errors="replace"))


async def rate(port: int, requests: list[bytes], calls: int) -> tuple[float, list[float]]:
    """Calls a second, and each one's seconds, sorted; one connection for each of `requests`."""
    connections = [await connect(port) for _ in requests]
    for connection, request in zip(connections, requests, strict=True):
        check(await connection.ask(request))
    spans = []

    async def work(connection: Answers, request: bytes) -> None:
        for _ in range(calls // len(requests)):
            began = time.perf_counter()
            await connection.ask(request)
            spans.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*map(work, connections, requests))
    took = time.perf_counter() - began
    for connection in connections:
        connection.transport.close()
    return len(spans) / took, sorted(spans)


async def drain(port: int, request: bytes, calls: int) -> float:
    """Seconds until `calls` calls that come all at once, each on its own connection, are answered."""
    connections = [await connect(port) for _ in range(calls)]
    began = time.perf_counter()
    for answer in await asyncio.gather(*(connection.ask(request) for connection in connections)):
        check(answer)
    took = time.perf_counter() - began
    for connection in connections:
        connection.transport.close()
    return took
