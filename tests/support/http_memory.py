"""`ragmemory http` as a real process, and what a host says to it, as it stands on the wire."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from ragmcp.protocol.framing import EventDecoder
from tests.support.forking import python_for
from tests.support.processes import LONGEST_SECONDS, Held, memory_command, memory_environment

MESSAGE_BYTES = 2**24
MODERN = "2026-07-28"
# For httpx2. Reading the certificates, which plain HTTP does not need, takes longer than most requests.
PLAIN_HTTP: dict[str, Any] = {"verify": False, "trust_env": False, "timeout": LONGEST_SECONDS}


@dataclass(frozen=True)
class HttpMemory:
    """A running server: what it said of itself, and its process."""

    told: dict[str, Any]
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        return str(self.told["url"])

    @property
    def root(self) -> str:
        return self.url.removesuffix("/mcp")


@contextmanager
def http_memory(
    folder: Path, *arguments: str, command: Sequence[str] | None = None, **variables: str
) -> Iterator[HttpMemory]:
    """A server of `folder`/memory.db on a free port; terminated at the end. Its log is `folder`/http.log."""
    environ = memory_environment(folder, **variables)
    command = command or memory_command(folder, "http", python=python_for(environ))
    log = folder / "http.log"
    with log.open("ab") as stderr:
        process = Held(
            [*command, "--port", "0", "--json", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environ,
        )
    with process:
        try:
            line = process.line()
            assert line, log.read_text(encoding="utf-8")
            yield HttpMemory(json.loads(line), process, log)
        finally:
            process.terminate()
            process.wait(LONGEST_SECONDS)


@dataclass
class Host:
    """Speaks one revision to `url`, over Streamable HTTP."""

    client: httpx2.Client
    url: str
    revision: str
    heads: dict[str, str] = field(default_factory=dict)
    last_id: int = 0

    def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """The answer to a request, as a whole message."""
        self.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": dict(params or {})}
        return self._answer(self.post(message))

    def result(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """The result of a request that must not be refused."""
        answer = self.request(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a tool."""
        return self.result("tools/call", {"name": tool, "arguments": arguments})

    def post(self, message: dict[str, Any]) -> httpx2.Response:
        """The response to one message, with the headers that its revision wants."""
        heads = {"accept": "application/json, text/event-stream", **self.heads}
        if self.revision == MODERN:
            params = message["params"]
            params["_meta"] = modern_meta() | params.get("_meta", {})
            heads |= {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
            if name := params.get("name") or params.get("uri") or params.get("taskId"):
                heads["mcp-name"] = name
        return self.client.post(self.url, json=message, headers=heads)

    def begin(self) -> Any:
        """Find out who is there: a modern discovery, or the handshake. Returns its result."""
        if self.revision == MODERN:
            return self.result("server/discover")
        client = {"name": "host", "version": "1"}
        params = {"protocolVersion": self.revision, "clientInfo": client, "capabilities": {}}
        response = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.heads = {
            "mcp-session-id": response.headers["mcp-session-id"],
            "mcp-protocol-version": self.revision,
        }
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
        return self._answer(response)["result"]

    def _answer(self, response: httpx2.Response) -> Any:
        if not response.headers["content-type"].startswith("text/event-stream"):
            return response.json()
        events = EventDecoder(MESSAGE_BYTES).feed(response.content)
        messages = [json.loads(event.data) for event in events]
        [answer] = [message for message in messages if "method" not in message]
        return answer


def modern_meta() -> dict[str, Any]:
    """What every modern request says of itself."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }


@contextmanager
def host(url: str, revision: str = MODERN, token: str = "") -> Iterator[Host]:
    """A host that has not said anything yet."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with httpx2.Client(headers=headers, **PLAIN_HTTP) as client:
        yield Host(client, url, revision)
