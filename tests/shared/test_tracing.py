"""The trace of a call stands in the log."""

from __future__ import annotations

import logging

import pytest

from ragmcp.protocol.schema.base import RequestMeta
from ragmcp.protocol.schema.tools import ToolCall, ToolCallResult
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import tool
from tests.support.in_memory import open_memory

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@tool()
async def work(_: Call) -> str:
    """Does nothing."""
    return ""


async def test_a_trace_is_logged_and_nothing_else_that_stands_in_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "ragmcp.server.core")
    async with open_memory(Server("first", "1", [work]), era="legacy") as client:
        for parent in (PARENT, "my password\n"):
            call = ToolCall(meta=RequestMeta(traceparent=parent), name="work", arguments={})
            await client.request("tools/call", call, ToolCallResult, timeout=5)
        await client.call_tool("work", timeout=5)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"tools/call, traceparent {PARENT}", "tools/call, traceparent -"]
