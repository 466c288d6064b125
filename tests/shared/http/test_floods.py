"""Remote servers that send notifications without end, in both eras."""

from __future__ import annotations

import anyio.lowlevel
import pytest

from ragmcp.client.features import EraName
from ragmcp.client.handlers import Handlers
from ragmcp.concurrency import background_task
from ragmcp.peer import NOTIFICATIONS_AT_ONCE
from ragmcp.protocol.schema.logging import LogMessage
from tests.support.http_script import Heard, Said, event, initialized, result, scripted

FLOOD = 500
LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "again"}}


def flood_before_answer(heard: Heard) -> Said:
    match heard.method:
        case "initialize":
            return Said(body=initialized(heard))
        case "tools/call":
            answer = result(heard, resultType="complete", content=[])
            return Said(pieces=[event(LOG) * FLOOD + event(answer)])
        case "GET":
            return Said(405)
    return Said(202)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_flood_of_notifications_lets_others_have_their_turn(era: EraName) -> None:
    heard: list[int] = []

    async def take_turns() -> None:
        while True:
            heard.append(0)
            await anyio.lowlevel.checkpoint()

    def note(_: LogMessage) -> None:
        heard[-1] += 1

    async with (
        background_task(take_turns),
        scripted(flood_before_answer, era, handlers=Handlers(on_log=note)) as (client, _),
    ):
        await client.call_tool("t", timeout=30)
    assert sum(heard) == FLOOD
    assert max(heard) <= NOTIFICATIONS_AT_ONCE + 1
