"""Servers that say anything at all over HTTP: always an answer or an error of ours, never a hang."""

from __future__ import annotations

import json
import random
from typing import Any

import anyio
import pytest

from ragmcp.client.features import EraName
from ragmcp.client.handlers import Handlers
from ragmcp.errors import RagMcpError
from ragmcp.http.connect import open_http
from ragmcp.legacy import session_client
from ragmcp.protocol.schema.input import Root
from tests.support.http_script import Heard, Said, Scripted, discovered, initialized, result
from tests.support.http_server import served

ROUNDS = 150


class Noise:
    """Mostly nearly right, which goes deeper than plain noise does."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, heard: Heard) -> Said:
        dice = self._random
        headers = {"mcp-session-id": "s"} if dice.random() < 0.3 else {}
        if dice.random() < 0.2:
            kind = dice.choice(["text/html", "text/event-stream", "application/json; charset=x", ""])
            headers["content-type"] = kind
        if dice.random() < 0.05:
            headers["location"] = dice.choice(["/mcp", "/else", "http://[", "http://localhost:1/", "\\", "?"])
        status = dice.choice([200] * 12 + [202, 204, 301, 307, 400, 401, 404, 405, 418, 500, 503])
        body = self._body(heard)
        if dice.random() < 0.4:
            pieces = [self._event(body) for _ in range(dice.randrange(4))]
            return Said(status, headers=headers, pieces=pieces, breaks=dice.random() < 0.1)
        return Said(status, body, headers)

    def _event(self, body: bytes) -> bytes:
        fields = self._random.choice(
            [b"", b"id: 7\n", b"retry: 1\n", b"event: x\n", b"id\nretry: -1\n", b"\xff\n"]
        )
        return fields + b"data: " + body + self._random.choice([b"\n\n", b"\r\r", b"\r\n\r\n", b"\n"])

    def _body(self, heard: Heard) -> bytes:
        dice = self._random
        answers: list[Any] = [
            {},
            [],
            None,
            5,
            "x",
            {"jsonrpc": "2.0"},
            {"jsonrpc": "2.0", "method": "ping", "id": 1},
        ]
        if heard.message and "id" in heard.message:
            answers += [
                discovered(heard),
                initialized(heard),
                result(heard, content=[], tools=[]),
                result(heard, resultType="input_required", inputRequests={"a": {"method": "roots/list"}}),
                result(heard, resultType=5, content={}),
                {
                    "jsonrpc": "2.0",
                    "id": None,
                    "error": {"code": -32022, "message": "?", "data": {"supported": 5}},
                },
                {"jsonrpc": "2.0", "id": 1, "method": "roots/list"},
                {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": 5}},
            ]
        body = json.dumps(dice.choice(answers)).encode()
        if dice.random() < 0.2:
            cut = dice.randrange(len(body) + 1)
            body = body[:cut] + dice.randbytes(dice.randrange(5)) + body[cut:]
        return body[: dice.randrange(len(body) + 1)] if dice.random() < 0.1 else body


async def roots() -> list[Root]:
    return []


@pytest.mark.parametrize("era", [None, "modern", "legacy"])
async def test_noise_ends_in_an_answer_or_an_error(
    era: EraName | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_client, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(session_client, "OPEN_SECONDS", 0.01)
    outcomes = set()
    async with served(Scripted(Noise(seed=1))) as url:
        for _ in range(ROUNDS):
            with anyio.fail_after(60):
                try:
                    async with open_http(
                        f"{url}/mcp",
                        client_name="me",
                        client_version="1",
                        message_bytes=1000,
                        era=era,
                        handlers=Handlers(list_roots=roots),
                        silence_seconds=2,
                    ) as client:
                        await client.list_tools()
                        await client.call_tool("t", timeout=0.5)
                    outcomes.add("answer")
                except RagMcpError as error:
                    outcomes.add(f"{type(error).__name__}: {error}")
    assert len(outcomes) > 10
