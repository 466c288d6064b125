"""Requests in the plain form, at the MCP endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from ragmemory.http import plain
from tests.support.http_server import http_client


async def test_the_plain_form_is_answered_plainly_where_it_is_switched_on() -> None:
    message = {"method": "Add", "params": {"a": 1, "b": 2}}
    headers = {"accept": "application/json"}
    async with http_client(form=plain.PlainEndpoint) as client:
        added = await client.post(message, headers)
        listed = await client.post({"method": "tools/list"}, headers)
        unknown = await client.post({"method": "Nope"}, headers)
        listen = await client.post({"method": "subscriptions/listen"}, headers)
        wrong = await client.post({"method": "Add", "params": {"a": "x"}}, headers)
        failed = await client.post({"method": "Fail"}, headers)
        modern = await client.modern("tools/list")
        legacy = await client.session()
        refused = await client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, legacy | headers)
    assert added.json()["result"]["structuredContent"] == {"total": 3}
    assert added.json().keys() == {"result"}
    assert len(listed.json()["result"]["tools"]) > 5
    assert unknown.status_code == 404
    assert unknown.json()["error"]["data"]["errorCode"] == "METHOD_NOT_FOUND"
    assert unknown.json().keys() == {"error"}
    assert listen.status_code == 404
    assert wrong.json()["result"]["structuredContent"]["errorCode"] == "INVALID_PARAMS"
    assert failed.json()["result"]["isError"]
    assert modern.status_code == 200
    assert refused.status_code == 406


@pytest.mark.parametrize("given", [{}, {"id": None}, {"id": 4}, {"id": 0}, {"id": "four"}])
async def test_the_plain_form_gives_back_the_id_it_was_given_and_invents_none(given: Any) -> None:
    messages: list[Any] = [
        {"method": "Add", "params": {"a": 1, "b": 2}},
        {"method": "Fail"},
        {"method": "Surrogate"},
        {"method": "Nope"},
    ]
    async with http_client(form=plain.PlainEndpoint) as client:
        added, failed, broken, unknown = [
            (await client.post(message | given, {"accept": "application/json"})).json()
            for message in messages
        ]
    id = given.get("id")
    for answer in (added, failed, broken, unknown):
        assert answer.get("id", "none") == ("none" if id is None else id)
    assert failed["result"]["structuredContent"]["requestId"] == id
    assert [answer["error"]["data"]["requestId"] for answer in (broken, unknown)] == [id, id]


@pytest.mark.parametrize("id", [[4], 1.5, 2**63, 10**30])
async def test_an_id_that_is_none_is_refused_in_the_plain_form_too(id: Any) -> None:
    async with http_client(form=plain.PlainEndpoint) as client:
        response = await client.post({"method": "Add", "params": {"a": 1, "b": 2}, "id": id})
    assert (response.status_code, response.json()["id"]) == (400, None)
    assert response.json()["error"]["data"]["errorCode"] == "INVALID_REQUEST"
