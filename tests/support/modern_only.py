"""A modern client and server, over stdio and HTTP: `python -m tests.support.modern_only FOLDER`.

For a copy of ragmcp in FOLDER that has no `legacy/`.
"""

from __future__ import annotations

import sys

import anyio
import pytest

import ragmcp
from ragmcp.client.features import Client
from ragmcp.errors import UnsupportedRevision, WireError
from ragmcp.http.connect import open_http
from ragmcp.protocol.schema.subscriptions import Filter
from ragmcp.stdio.connect import open_stdio
from tests.support.http_server import http_client, request
from tests.support.mcp_server import MESSAGE_BYTES, make_whole_server

NAME, VERSION = "modern", "1"


async def use(client: Client) -> None:
    """Discover, list, call, subscribe."""
    assert client.revision == "2026-07-28"
    assert "Add" in [tool.name for tool in await client.list_tools()]
    added = await client.call_tool("Add", {"a": 1, "b": 2}, timeout=10)
    assert added.structured(dict) == {"total": 3}
    async with client.subscribe(Filter(tools_list_changed=True)) as changes:
        await client.call_tool("Grow", timeout=10)
        assert (await anext(changes)).method == "notifications/tools/list_changed"


async def stdio() -> None:
    """The server as a process; it refuses the handshake."""
    command = [sys.executable, "-m", "tests.support.mcp_server"]
    async with open_stdio(
        command, client_name=NAME, client_version=VERSION, message_bytes=MESSAGE_BYTES
    ) as client:
        await use(client)
        with pytest.raises(WireError, match="initialize"):
            await client.channel.request("initialize", {})


async def http() -> None:
    """The server on a socket; it refuses the handshake, and the client offers none."""
    async with http_client(make_whole_server()) as raw:
        async with open_http(
            raw.url, client_name=NAME, client_version=VERSION, message_bytes=MESSAGE_BYTES
        ) as client:
            await use(client)
        old = await raw.post(request("initialize", {"protocolVersion": "2025-11-25"}))
        assert (old.status_code, old.json()["error"]["code"]) == (400, -32022), old.text
        assert (await raw.http.get(raw.url)).status_code == 405
        with pytest.raises(UnsupportedRevision):
            async with open_http(
                raw.url, client_name=NAME, client_version=VERSION, message_bytes=MESSAGE_BYTES, era="legacy"
            ):
                pass


if __name__ == "__main__":
    assert str(ragmcp.__file__).startswith(sys.argv[1]), ragmcp.__file__
    anyio.run(stdio)
    anyio.run(http)
    assert not any(name.startswith("ragmcp.legacy.") for name in sys.modules)
