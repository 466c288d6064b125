"""Walk through a running deployment, with one line on stdout for each step.

    python smoke.py http://localhost:8080 --token-file token --kill "docker compose kill ragmemory-1"

The address is that of the proxy. `--server` names single servers: the first is written to, the last is asked;
without them, everything goes through the proxy. `--kill` is a command that stops one server; without it, the
last steps are left out. One document with the URI "smoke-test" stays in the memory.

The exit code is 1, with a sentence on stderr, at the first step that fails.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from time import monotonic, sleep
from typing import Any

import httpx2

from ragconfig.errors import SettingsError
from ragconfig.keys import find_token
from ragmcp.protocol.eras import LATEST_MODERN, LEGACY_REVISIONS
from ragmcp.protocol.framing import EventDecoder
from ragmemory import __version__

# For each answer: a proxy may try a server that has just ended first.
SECONDS = 15.0
MESSAGE_BYTES = 1 << 24
# Requests in a row that the proxy must answer, so that each server has its turn.
TURNS = 10
RETRY_SECONDS = 0.2
CLIENT = {"name": "smoke", "version": __version__}
SSE_REVISION = LEGACY_REVISIONS[-1]


class StepFailed(Exception):
    """What was wrong, as a sentence; `status` is that of the response."""

    def __init__(self, sentence: str, status: int = 200) -> None:
        super().__init__(sentence)
        self.status = status


class Connection:
    """Sends requests of one revision to the server or proxy at `root`."""

    def __init__(self, http: httpx2.Client, root: str, revision: str = LATEST_MODERN) -> None:
        self.root, self.revision = root, revision
        self._http = http
        self._session: dict[str, str] = {}
        self._last_id = 0

    def begin(self) -> Any:
        """The discovery of the modern revision, the handshake of the others. Returns the result."""
        if self.revision == LATEST_MODERN:
            return self.request("server/discover")
        response = self._post(self._message("initialize", handshake(self.revision)), {})
        result = answer_of(response)
        self._session = {"mcp-session-id": response.headers.get("mcp-session-id", "")}
        self._session["mcp-protocol-version"] = self.revision
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self._session)
        return result

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured result of a tool."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise StepFailed(f"{tool} at {self.root} failed: {result['content'][0]['text']}")
        return result["structuredContent"]

    def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """The result of a request."""
        message = self._message(method, dict(params or {}))
        headers = self._session
        if self.revision == LATEST_MODERN:
            message["params"]["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": LATEST_MODERN,
                "io.modelcontextprotocol/clientInfo": CLIENT,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers = {"mcp-protocol-version": LATEST_MODERN, "mcp-method": method}
            if method == "tools/call":
                headers["mcp-name"] = message["params"]["name"]
        return answer_of(self._post(message, headers))

    def _message(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        return {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}

    def _post(self, message: dict[str, Any], headers: dict[str, str]) -> httpx2.Response:
        accept = {"accept": "application/json, text/event-stream"}
        return checked(self._http.post(f"{self.root}/mcp", json=message, headers=accept | headers))


def handshake(revision: str) -> dict[str, Any]:
    """The parameters of `initialize`."""
    return {"protocolVersion": revision, "clientInfo": CLIENT, "capabilities": {}}


def checked(response: httpx2.Response) -> httpx2.Response:
    """The response, if its status is no error."""
    if response.status_code >= 400:
        response.read()
        asked, status = f"{response.request.method} {response.request.url}", response.status_code
        raise StepFailed(f"{asked} was answered with {status}: {response.text[:300]}", status)
    return response


def answer_of(response: httpx2.Response) -> Any:
    """The result in a response, which is JSON or a stream of events."""
    messages: list[dict[str, Any]]
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        messages = [json.loads(event.data) for event in EventDecoder(MESSAGE_BYTES).feed(response.content)]
    else:
        messages = [response.json()]
    answer = next((one for one in messages if "method" not in one), {})
    return result_of(answer, str(response.request.url))


def result_of(message: dict[str, Any], url: str) -> Any:
    """The result of a JSON-RPC message."""
    if "result" not in message:
        raise StepFailed(f"{url} answered with no result: {json.dumps(message)[:300]}")
    return message["result"]


def walk(http: httpx2.Client, proxy: str, servers: Sequence[str], kill: Sequence[str]) -> Iterator[str]:
    """Every step; yields what was done. Raises StepFailed, httpx2.HTTPError, OSError."""
    for root in (proxy, *servers):
        for path in ("/health/live", "/health/ready"):
            yield f"{root}{path}: {health(http, f'{root}{path}')}"
    described = checked(http.get(f"{proxy}/.well-known/mcp")).json()
    if httpx2.URL(url := described["endpoints"]["mcp"]) != httpx2.URL(f"{proxy}/mcp"):
        raise StepFailed(f"{proxy} calls itself {url}: Host or X-Forwarded-Proto is not passed on.")
    yield f"discovery: {described['name']} {described['version']}, {url}"

    for revision in (LATEST_MODERN, *LEGACY_REVISIONS):
        tools = tools_by_sse(http, proxy) if revision == SSE_REVISION else tools_of(http, proxy, revision)
        yield f"revision {revision}: {', '.join(tools)}"

    first, last = (servers[0], servers[-1]) if servers else (proxy, proxy)
    yield written_and_found(Connection(http, first), Connection(http, last))

    if not kill:
        return
    session = Connection(http, proxy, LEGACY_REVISIONS[0])
    session.begin()
    subprocess.run(kill, check=True, stdout=sys.stderr)
    yield f"one server was stopped: {shlex.join(kill)}"
    through_proxy = Connection(http, proxy)
    failed = until_answered(through_proxy)
    yield f"{TURNS} queries in a row were answered, after {failed} that failed"
    yield written_and_found(through_proxy, through_proxy)
    yield resumed(session)


def health(http: httpx2.Client, url: str) -> str:
    """The status of a server, which may have just been started."""
    deadline = monotonic() + SECONDS
    while (response := http.get(url)).status_code in (502, 503) and monotonic() < deadline:
        sleep(RETRY_SECONDS)
    return str(checked(response).json()["status"])


def tools_of(http: httpx2.Client, root: str, revision: str) -> list[str]:
    """The tools, after the handshake of a revision with Streamable HTTP."""
    connection = Connection(http, root, revision)
    begun = connection.begin()
    spoken = begun.get("supportedVersions", [begun.get("protocolVersion")])
    if revision not in spoken:
        raise StepFailed(f"{root} speaks {', '.join(map(str, spoken))} instead of {revision}.")
    return [tool["name"] for tool in connection.request("tools/list")["tools"]]


def tools_by_sse(http: httpx2.Client, root: str) -> list[str]:
    """The tools, over HTTP+SSE: messages are posted to the address that a stream of events begins with."""
    url = httpx2.URL(f"{root}/sse")
    with http.stream("GET", url, headers={"accept": "text/event-stream"}) as response:
        checked(response)
        decoder = EventDecoder(MESSAGE_BYTES)
        events = (event.data for part in response.iter_bytes() for event in decoder.feed(part))
        url = url.join(next(events, bytearray()).decode())

        def post(message: dict[str, Any]) -> None:
            checked(http.post(url, json={"jsonrpc": "2.0", **message}))

        def result(id: int) -> Any:
            messages = (json.loads(data) for data in events)
            return result_of(next((one for one in messages if one.get("id") == id), {}), str(url))

        post({"id": 1, "method": "initialize", "params": handshake(SSE_REVISION)})
        result(1)
        post({"method": "notifications/initialized"})
        post({"id": 2, "method": "tools/list", "params": {}})
        return [tool["name"] for tool in result(2)["tools"]]


def written_and_found(writer: Connection, reader: Connection) -> str:
    """Inject a document with a word that no other has, and find it."""
    word = f"smoke{secrets.token_hex(8)}"
    writer.call("Inject", text=f"The smoke test wrote {word}.", metadata={"uri": "smoke-test"})
    hits = reader.call("Query", query=word, top_k=1)["hits"]
    if not hits or word not in hits[0]["text"]:
        raise StepFailed(f"{reader.root} does not find what was written at {writer.root}.")
    return f"written at {writer.root}, found at {reader.root}"


def until_answered(connection: Connection) -> int:
    """Ask until TURNS queries in a row are answered; returns how many failed."""
    failed = in_a_row = 0  # What was sent to a dying server is lost.
    deadline = monotonic() + SECONDS
    while in_a_row < TURNS:
        try:
            connection.call("Query", query="smoke test", top_k=1)
            in_a_row += 1
        except (StepFailed, httpx2.TransportError):
            if monotonic() > deadline:
                raise
            failed, in_a_row = failed + 1, 0
            sleep(RETRY_SECONDS)
    return failed


def resumed(session: Connection) -> str:
    """Use a session from before a server was stopped; if it ended with the server, begin another."""
    try:
        session.request("tools/list")
        return f"the session of {session.revision} goes on"
    except StepFailed as error:
        if error.status != 404:
            raise
    session.begin()
    session.request("tools/list")
    return f"the session of {session.revision} had ended (404); another began"


def main() -> int:
    """Run the steps of the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Walk through a running deployment.")
    parser.add_argument("proxy", metavar="URL", help="such as http://localhost:8080")
    parser.add_argument("--server", metavar="URL", action="append", default=[], help="(repeatable)")
    parser.add_argument("--token-file", metavar="FILE", default="", help="default: RAGMEMORY_TOKEN")
    parser.add_argument(
        "--kill", metavar="COMMAND", type=shlex.split, default=[], help="such as 'kill -9 123'"
    )
    arguments = parser.parse_args()
    try:
        token = find_token(arguments.token_file)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        servers = [root.rstrip("/") for root in arguments.server]
        with httpx2.Client(timeout=SECONDS, headers=headers, trust_env=False) as http:
            for step in walk(http, arguments.proxy.rstrip("/"), servers, arguments.kill):
                sys.stdout.write(f"ok  {step}\n")
                sys.stdout.flush()
    except (StepFailed, SettingsError, OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{error}\n")
    except httpx2.HTTPError as error:
        sys.stderr.write(f"{error.request.method} {error.request.url} failed: {error}\n")
    except (ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"An answer is not what a memory server sends: {error!r}\n")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
