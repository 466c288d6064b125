"""Log messages for the client: who hears which."""

from __future__ import annotations

import pytest

from ragmcp.protocol.eras import LEGACY_REVISIONS
from ragmcp.protocol.schema.logging import LEVELS
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import tool
from tests.support.raw_mcp import RawClient, raw_client
from tests.support.schemas import MODERN, REVISIONS

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


@tool()
async def speak(call: Call) -> str:
    """Says something at each level."""
    for level in LEVELS:
        await call.log(level, {"said": level}, "speaker")
    return "done"


@tool()
async def whisper(call: Call) -> str:
    """Logs without a name."""
    await call.log("error", "text")
    return "done"


def server() -> Server:
    return Server("logger", "1", [speak, whisper], logs=True)


async def heard(client: RawClient, name: str = "speak", **meta: str) -> list[str]:
    """The levels that came before the result."""
    levels: list[str] = []
    message = await client.request("tools/call", {"name": name, "_meta": meta})
    while "method" in message:
        assert message["method"] == "notifications/message"
        levels.append(message["params"]["level"])
        message = await client.receive()
    return levels


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_legacy_client_sets_the_level_for_its_connection(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        assert await heard(client) == list(LEVELS[LEVELS.index("info") :])
        for level in ("debug", "error", "emergency"):
            assert (await client.request("logging/setLevel", {"level": level}))["result"] == {}
            assert await heard(client) == list(LEVELS[LEVELS.index(level) :])


async def test_a_modern_client_asks_with_each_request() -> None:
    async with raw_client(server(), MODERN) as client:
        assert await heard(client) == []
        assert await heard(client, **{LOG_LEVEL: "critical"}) == ["critical", "alert", "emergency"]
        assert await heard(client) == []


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_message_is_data_with_or_without_a_logger(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        meta = {LOG_LEVEL: "error"}
        message = await client.request("tools/call", {"name": "whisper", "_meta": meta})
        assert message["params"] == {"level": "error", "data": "text"}


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("level", ["loud", 5, None])
async def test_there_are_eight_levels_and_no_others(revision: str, level: object) -> None:
    async with raw_client(server(), revision) as client:
        error = (await client.request("logging/setLevel", {"level": level}))["error"]
        assert (error["code"], error["data"]["details"]["path"]) == (-32602, "$.level")


async def test_one_clients_level_is_not_anothers() -> None:
    shared = server()
    async with raw_client(shared, "2025-11-25") as one, raw_client(shared, "2025-11-25") as other:
        await one.request("logging/setLevel", {"level": "emergency"})
        assert await heard(one) == ["emergency"]
        assert len(await heard(other)) == 7


async def test_the_modern_era_has_no_set_level() -> None:
    async with raw_client(server(), MODERN) as client:
        assert (await client.request("logging/setLevel", {"level": "info"}))["error"]["code"] == -32601


async def test_a_server_that_does_not_log_has_no_levels() -> None:
    async with raw_client(Server("mute", "1", []), "2025-11-25") as client:
        assert (await client.request("logging/setLevel", {"level": "info"}))["error"]["code"] == -32601
