"""Modern requests over HTTP, over real sockets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http_server import http_client


async def test_a_tool_call_is_answered_as_json_in_one_piece() -> None:
    async with http_client() as client:
        response = await client.modern("tools/call", {"name": "Echo", "arguments": {"text": "hello"}})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert "mcp-session-id" not in response.headers
    assert response.json()["result"]["content"] == [{"type": "text", "text": "hello"}]


@pytest.mark.parametrize(
    ("method", "params", "headers", "status", "code", "word"),
    [
        ("tools/list", {}, {"mcp-method": "prompts/list"}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/list", {}, {"mcp-method": "TOOLS/LIST"}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/list", {}, {"mcp-method": None}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/call", {"name": "Echo"}, {"mcp-name": "Add"}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/call", {"name": "Echo"}, {"mcp-name": None}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/call", {"name": "Echo"}, {"mcp-name": "=?base64?!?="}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/list", {}, {"mcp-protocol-version": "1.0"}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/call", {"name": "Nope"}, {}, 400, -32602, "TOOL_NOT_FOUND"),
        ("tools/call", {"name": "Echo", "arguments": {"txt": ""}}, {}, 400, -32602, "INVALID_PARAMS"),
        ("tools/call", {"name": "NeedsElicitation"}, {}, 400, -32021, "MISSING_CLIENT_CAPABILITY"),
        ("tools/call", {"name": "Surrogate"}, {}, 200, -32603, "INTERNAL_ERROR"),
        ("nope", {}, {}, 404, -32601, "METHOD_NOT_FOUND"),
        ("initialize", {}, {}, 404, -32601, "METHOD_NOT_FOUND"),
        ("ping", {}, {}, 404, -32601, "METHOD_NOT_FOUND"),
        ("resources/list", {}, {}, 404, -32601, "METHOD_NOT_FOUND"),
    ],
)
async def test_a_refused_call_has_its_status_and_a_json_rpc_error(
    method: str, params: Any, headers: Any, status: int, code: int, word: str
) -> None:
    async with http_client() as client:
        response = await client.modern(method, params, id="x", headers=headers)
    assert response.status_code == status
    answer = response.json()
    assert answer["id"] == "x"
    assert answer["error"]["code"] == code
    assert answer["error"]["data"]["errorCode"] == word
    assert answer["error"]["data"]["requestId"] == "x"
