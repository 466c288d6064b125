"""The checking of recorded conversations: what does not fit is found, on every way that messages take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import schemas
from tests.support.mcp_process import SERVER, spawned
from tests.support.wire import Recording

MODERN: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


@pytest.fixture(autouse=True)
def _schemas() -> None:
    schemas.need()


def ask(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def answer(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def error(code: int, **data: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", "data": data}}


HELLO = ask(
    "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "c", "version": "1"}
)
WELCOME = answer(protocolVersion="2024-11-05", capabilities={}, serverInfo={"name": "s", "version": "1"})
CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def converse(*messages: Any) -> schemas.Conversation:
    """The client begins, and they take turns."""
    conversation = schemas.Conversation()
    for place, message in enumerate(messages):
        conversation.check("server" if place % 2 else "client", message)
    return conversation


def test_what_fits_is_counted_to_its_revision() -> None:
    assert converse(HELLO, WELCOME, ask("tools/list"), answer(tools=[TOOL])).revisions == {
        "2025-11-25",
        "2024-11-05",
    }
    modern = converse(ask("tools/list", _meta=MODERN), answer(tools=[TOOL], **CACHED))
    assert modern.revisions == {"2026-07-28"}
    assert modern.methods == {"tools/list"}


@pytest.mark.parametrize(
    "messages",
    [
        (ask("tools/call"), answer(content=[])),
        (ask("tools/list"), answer(content=[])),
        (ask("tools/list"), answer(tools=[{"name": "t"}])),
        (ask("tools/list", _meta=MODERN), answer(tools=[])),
        (ask("tools/list", _meta=MODERN), answer(tools=[], ttlMs=0, cacheScope="private")),
        (ask("tools/call", name="t", _meta=MODERN), error(-32022, supported=[])),
        (HELLO, answer(protocolVersion="2024-11-05", capabilities={})),
        (HELLO, WELCOME, ask("prompts/get", name="p", arguments={"a": 1}), answer(messages=[])),
        (HELLO, WELCOME, ask("tools/list"), [answer(tools=[{}])]),
        (ask("ping"), {"jsonrpc": "1.0", "id": 1, "result": {}}),
        (ask("ping"), {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}),
    ],
)
def test_what_does_not_fit_is_found(messages: Any) -> None:
    with pytest.raises(AssertionError, match=r"no \w+ of 20"):
        converse(*messages)


def test_a_question_of_the_server_is_answered_by_the_client() -> None:
    both = [HELLO, WELCOME, {"jsonrpc": "2.0", "method": "notifications/initialized"}, ask("roots/list")]
    converse(*both, answer(roots=[{"uri": "file:///x"}]))
    with pytest.raises(AssertionError, match="no ListRootsResult"):
        converse(*both, answer(tools=[]))


async def test_a_relay_on_stdio_writes_down_both_sides(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "record")
    async with spawned(recording.command(SERVER), stderr=tmp_path / "log") as client:
        assert (await client.call_tool("Echo", {"text": "Grüße"}, timeout=20)).text == "Grüße"
    lines = recording.path.read_text(encoding="utf-8").splitlines()
    assert [line.split()[0] for line in lines] == ["client", "server"] * (len(lines) // 2)
    assert json.loads(lines[-1].partition(" ")[2])["result"]["content"][0]["text"] == "Grüße"
    assert recording.check().revisions == {"2026-07-28"}
