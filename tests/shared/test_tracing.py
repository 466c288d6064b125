"""A trace that a call carries goes on with what the tool asks of others."""

from __future__ import annotations

import logging

import pytest

from ragmcp import tracing
from ragmcp.client.client import Client, EraName
from ragmcp.protocol.schema.base import RequestMeta
from ragmcp.server.call import Call
from ragmcp.server.server import Server
from ragmcp.server.tools import tool
from tests.support.in_memory import open_memory

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@tool()
async def trace(call: Call) -> str:
    """The trace that came."""
    return f"{call.params.meta.traceparent} {call.params.meta.tracestate}"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_trace_is_handed_on(era: EraName) -> None:
    async with open_memory(Server("last", "1", [trace]), era=era) as last:

        @tool()
        async def relay(_: Call) -> str:
            """Asks another server."""
            return (await last.call_tool("trace", timeout=5)).text

        async with open_memory(Server("first", "1", [relay]), era=era) as first:

            async def ask(client: Client) -> str:
                return (await client.call_tool("relay", timeout=5)).text

            assert await ask(first) == "UNSET UNSET"
            meta = RequestMeta(traceparent=PARENT, tracestate="a=b")
            assert await tracing.traced(meta, ask(first)) == f"{PARENT} a=b"
            assert await ask(first) == "UNSET UNSET"


async def test_a_trace_is_logged_and_nothing_else_that_stands_in_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "ragmcp.server.server")
    async with open_memory(Server("first", "1", [trace]), era="modern") as client:
        for parent in (PARENT, "my password\n"):
            meta = RequestMeta(traceparent=parent)
            await tracing.traced(meta, client.call_tool("trace", timeout=5))
        await client.call_tool("trace", timeout=5)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"tools/call, traceparent {PARENT}", "tools/call, traceparent -"]
