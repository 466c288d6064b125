"""Which way a client takes to a server it does not know, the old HTTP+SSE among them.

Covers `modern_client` and `ragmcp.legacy.sse_client`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from ragmcp.client import core
from ragmcp.client.features import EraName
from ragmcp.errors import ConnectionClosed, ServerUnreachable, UnsupportedRevision, WireError
from ragmcp.http.connect import open_http
from ragmcp.http.errors import HttpRefused
from tests.support.http_script import (
    Heard,
    Said,
    Scripted,
    discovered,
    error,
    event,
    initialized,
    result,
    scripted,
)
from tests.support.http_server import served

BEFORE_INITIALIZE = "server/discover"


def legacy(refusal: Callable[[Heard], Said]) -> Callable[[Heard], Said]:
    def script(heard: Heard) -> Said:
        match heard.method:
            case "server/discover":
                return refusal(heard)
            case "initialize":
                return Said(body=initialized(heard))
            case "tools/list":
                return Said(body=result(heard, tools=[]))
        return Said(405 if heard.verb == "GET" else 202)

    return script


@pytest.mark.parametrize(
    "refusal",
    [
        lambda heard: Said(400, error(heard, -32000, "Bad Request: Server not initialized")),
        lambda heard: Said(400, error(heard, -32000, "Unsupported protocol version")),
        lambda heard: Said(404, error(heard, -32601)),
        lambda heard: Said(200, error(heard, -32601)),
        lambda heard: Said(200, result(heard)),
        lambda _: Said(400),
        lambda _: Said(404, b"<h1>Not Found</h1>"),
        lambda _: Said(406, b"no"),
        lambda _: Said(500, b"Traceback"),
    ],
)
async def test_a_server_that_does_not_discover_gets_the_handshake(
    refusal: Callable[[Heard], Said],
) -> None:
    async with scripted(legacy(refusal), None) as (client, server):
        assert (client.revision, client.server.name) == ("2025-11-25", "old")
        assert await client.list_tools() == []
        asked = [method for method in server.methods() if method != "GET"]
        assert asked == ["server/discover", "initialize", "notifications/initialized", "tools/list"]


async def test_a_server_that_is_silent_before_the_handshake_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "PROBE_SECONDS", 0.2)
    never = anyio.Event()
    silent = legacy(lambda _: Said(pieces=[never]))
    async with scripted(silent, None) as (client, _):
        assert client.revision == "2025-11-25"


async def test_a_modern_server_is_asked_nothing_else() -> None:
    async with scripted(lambda heard: Said(body=discovered(heard)), None) as (client, server):
        assert client.modern
        assert server.methods() == ["server/discover"]


async def test_a_modern_server_of_another_revision_is_asked_again_in_the_one_we_share() -> None:
    def script(heard: Heard) -> Said:
        if len(server.heard) == 1:
            return Said(400, error(heard, -32022, data={"supported": ["2026-07-28", "2099-01-01"]}))
        return Said(body=discovered(heard))

    server: Any
    async with served(holder := Scripted(lambda heard: script(heard))) as url:
        server = holder
        async with open_http(url, client_name="me", client_version="1", message_bytes=1000) as client:
            assert client.modern
            assert client.capabilities.tools == {}
    assert server.methods() == ["server/discover", "server/discover"]


async def test_a_modern_server_without_a_common_revision_is_an_error() -> None:
    refuse = lambda heard: Said(400, error(heard, -32022, data={"supported": ["2099-01-01"]}))  # noqa: E731
    with pytest.raises(UnsupportedRevision, match="2099-01-01"):
        async with scripted(refuse, None):
            pass


@pytest.mark.parametrize("status", [401, 403, 429, 502, 503])
async def test_a_server_that_lets_nobody_in_is_not_asked_in_other_ways(status: int) -> None:
    holder = Scripted(lambda _: Said(status))
    async with served(holder) as url:
        with pytest.raises(HttpRefused) as raised:
            async with open_http(url, client_name="me", client_version="1", message_bytes=1000):
                pass
    assert raised.value.status == status
    assert holder.methods() == ["server/discover"]


@pytest.mark.parametrize("token", ["secret\n", "secret\r\nx: y", "sécret", "secret ", ""])
async def test_a_token_that_no_header_can_hold_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ServerUnreachable, match="the value for its header authorization is") as raised:
        async with open_http("http://127.0.0.1:1/mcp", token=token):
            pass
    assert "cret" not in str(raised.value)


async def test_what_is_no_mcp_server_at_all_is_said_so() -> None:
    with pytest.raises(HttpRefused, match="404") as raised:
        async with scripted(lambda _: Said(404, b"<h1>Not Found</h1>"), None):
            pass
    assert "/mcp" in raised.value.hint


# HTTP+SSE


class Old:
    """A server of 2024-11-05."""

    def __init__(self, endpoint: str = "/messages?session=1", revision: str = "2024-11-05") -> None:
        self.over = anyio.Event()
        self._endpoint = endpoint
        self._revision = revision
        self._news = anyio.Event()
        self._events: list[bytes] = [f"event: endpoint\ndata: {endpoint}\n\n".encode()]

    def pieces(self) -> Any:
        while True:
            yield from self._events
            self._events.clear()
            self._news = anyio.Event()
            yield self._news
            if self.over.is_set():
                return

    def say(self, message: Any) -> None:
        self._events.append(event(message))
        self._news.set()

    def end(self) -> None:
        self.over.set()
        self._news.set()

    def __call__(self, heard: Heard) -> Said:
        if heard.path == "/sse":
            return Said(pieces=self.pieces()) if heard.verb == "GET" else Said(405, b"Method Not Allowed")
        match heard.method:
            case "initialize":
                self.say(initialized(heard, self._revision))
            case "tools/list":
                self.say(result(heard, tools=[]))
            case "tools/call":
                self.end()
        return Said(202, b"Accepted")


async def test_the_old_transport_is_the_last_that_is_tried_and_the_first_next_time() -> None:
    holder = Scripted(lambda heard: servers[-1](heard))
    servers = [Old()]
    with anyio.fail_after(20):
        async with served(holder) as url:
            for known in (False, True):
                servers.append(Old())
                async with open_http(
                    f"{url}/sse", client_name="me", client_version="1", message_bytes=10_000
                ) as client:
                    assert client.revision == "2024-11-05"
                    assert await client.list_tools() == []
                asked = [heard.method for heard in holder.heard]
                probes = [] if known else ["server/discover", "initialize"]
                assert asked == [*probes, "GET", "initialize", "notifications/initialized", "tools/list"]
                assert {heard.path for heard in holder.heard[len(probes) + 1 :]} == {"/messages"}
                holder.heard.clear()
                servers[-1].end()


async def test_what_we_say_goes_nowhere_else() -> None:
    with pytest.raises(HttpRefused, match="405"):
        async with scripted(Old("http://localhost:1/messages"), None, path="/sse"):
            pass


async def test_the_end_of_the_old_stream_is_the_end_of_the_connection() -> None:
    async with scripted(Old(), "legacy", path="/sse") as (client, _):
        with pytest.raises(ConnectionClosed):
            await client.call_tool("t", timeout=5)
        assert client.is_closed


async def test_another_connections_end_keeps_its_own_reason_beside_the_old_stream() -> None:
    with pytest.raises(ConnectionClosed, match="its disk is full"):
        async with scripted(Old(), "legacy", path="/sse"):
            raise ConnectionClosed("tools/call", "its disk is full")


async def test_a_verdict_that_no_longer_holds_is_found_anew() -> None:
    scripts: list[Any] = [legacy(lambda heard: Said(404, error(heard, -32601)))]
    holder = Scripted(lambda heard: scripts[-1](heard))
    async with served(holder) as url:
        async with open_http(url, client_name="me", client_version="1", message_bytes=10_000) as client:
            assert not client.modern
        holder.heard.clear()
        async with open_http(url, client_name="me", client_version="1", message_bytes=10_000) as client:
            assert holder.methods()[0] == "initialize"
        scripts.append(
            lambda heard: (
                Said(body=discovered(heard))
                if heard.method == "server/discover"
                else Said(400, error(heard, -32022, data={"supported": ["2026-07-28"]}))
            )
        )
        async with open_http(url, client_name="me", client_version="1", message_bytes=10_000) as client:
            assert client.modern


async def test_who_wanted_the_handshake_says_nothing_about_the_server() -> None:
    def script(heard: Heard) -> Said:
        return Said(body=discovered(heard)) if heard.method == "server/discover" else inner(heard)

    inner = legacy(lambda _: Said(404))
    async with served(Scripted(script)) as url:
        eras: list[EraName | None] = ["legacy", None]
        for era in eras:
            async with open_http(
                url, client_name="me", client_version="1", message_bytes=10_000, era=era
            ) as client:
                assert client.modern is (era is None)


async def test_a_handshake_only_client_does_not_discover() -> None:
    with pytest.raises(WireError):
        async with scripted(lambda heard: Said(400, error(heard, -32022)), "legacy"):
            pass


async def test_a_line_the_old_server_refuses_ends_the_connection_with_the_reason() -> None:
    old = Old()

    def script(heard: Heard) -> Said:
        return Said(500, b"out of order") if heard.method == "tools/list" else old(heard)

    with pytest.raises(ConnectionClosed, match="status 500: out of order"):
        async with scripted(script, "legacy", path="/sse") as (client, _):
            await client.list_tools()
