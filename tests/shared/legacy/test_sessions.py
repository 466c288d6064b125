"""Legacy sessions over HTTP, over real sockets.

Covers `http_session`, `replay` and `server`.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from ragmcp.legacy import sessions
from ragmcp.legacy.http_session import SessionChannel
from ragmcp.protocol.schema.input import Elicit
from ragmcp.protocol.schema.subscriptions import list_changed, resource_updated
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import tool
from tests.shared.raw_asgi import asgi_scope, body_then_silence
from tests.support.http_server import (
    ACCEPT,
    HttpClient,
    http_client,
    limits,
    modern_request,
    request,
)
from tests.support.mcp_server import TOOLS, make_whole_server

# More than a session remembers streams.
CALLS = 120
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]


def call(name: str, arguments: Any = None, *, id: int | str = 1, token: str | None = None) -> Any:
    params = {"name": name, "arguments": arguments or {}}
    if token:
        params["_meta"] = {"progressToken": token}
    return request("tools/call", params, id=id)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_session_begins_with_initialize_and_ends_with_delete(revision: str) -> None:
    async with http_client() as client:
        headers = await client.session(revision)
        assert client.endpoint.session_count == 1
        answer = await client.post(call("Echo", {"text": "hello"}), headers)
        assert answer.status_code == 200
        assert answer.json()["result"]["content"][0]["text"] == "hello"
        ended = await client.http.delete(client.url, headers=headers)
        assert ended.status_code == 204
        assert client.endpoint.session_count == 0
        gone = await client.post(call("Echo", {"text": "hello"}), headers)
    assert gone.status_code == 404
    assert gone.json()["error"]["data"]["errorCode"] == "SESSION_NOT_FOUND"


async def test_the_ids_of_sessions_are_secrets() -> None:
    async with http_client() as client:
        ids = [(await client.session())["mcp-session-id"] for _ in range(3)]
    assert len({*ids}) == 3
    assert all(len(id) >= 32 and id.isascii() and id.isprintable() for id in ids)


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (request("tools/list"), "SESSION_REQUIRED"),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, "SESSION_REQUIRED"),
        ([request("tools/list")], "SESSION_REQUIRED"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, "SESSION_REQUIRED"),
        (b"{", "PARSE_ERROR"),
        (b"7", "INVALID_REQUEST"),
        (b"[]", "INVALID_REQUEST"),
        (b"[[[[]]]]", "INVALID_REQUEST"),
        (b"[1", "PARSE_ERROR"),
        (b"[" * 1_000_000, "PARSE_ERROR"),
        (b"[" * 500_000 + b"]" * 500_000, "PARSE_ERROR"),
    ],
)
async def test_what_belongs_to_no_session_is_refused(message: Any, word: str) -> None:
    async with http_client() as client:
        response = await client.post(message)
    assert response.status_code == 400
    assert response.json()["error"]["data"]["errorCode"] == word


async def test_what_a_session_refuses_bears_the_id_it_was_asked_with() -> None:
    ask = request("tools/list", id="abc")
    async with http_client(limits=limits(sessions=1)) as client:
        headers = await client.session()
        async with client.stream(None, headers, "GET"):  # The only session there may be is in use.
            refused = [
                await client.post(ask),
                await client.post(ask, {"mcp-session-id": "gone"}),
                await client.post(ask, {"mcp-protocol-version": "2025-06-18"}),
                await client.post(modern_request("tools/list", id="abc")),
                await client.post(request("initialize", id="abc")),
            ]
    assert [response.status_code for response in refused] == [400, 404, 400, 400, 503]
    for response in refused:
        assert response.json()["id"] == response.json()["error"]["data"]["requestId"] == "abc"


async def test_what_a_session_refuses_and_nobody_asked_bears_no_id() -> None:
    async with http_client() as client:
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 7, "result": {}},
            {"jsonrpc": "2.0", "id": 7, "error": {}},
            [request("tools/list", id=7)],
        ):
            response = await client.post(message)
            assert response.status_code == 400
            assert response.json()["id"] is None


async def test_a_refused_initialize_opens_no_session() -> None:
    async with http_client() as client:
        response = await client.post(request("initialize", {"protocolVersion": 1}))
        assert response.json()["error"]["code"] == -32602
        assert "mcp-session-id" not in response.headers
        assert client.endpoint.session_count == 0


async def test_a_modern_body_without_its_headers_is_a_mismatch_within_and_without_a_session() -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with http_client() as client:
        without = await client.post(request("tools/list", {"_meta": meta}))
        within = await client.post(request("tools/list", {"_meta": meta}), await client.session())
    for response in (without, within):
        assert response.status_code == 400
        assert response.json()["error"]["code"] == -32020


@pytest.mark.parametrize(
    ("revision", "status"), [("2025-06-18", 200), ("1999-01-01", 400), ("nonsense", 400)]
)
async def test_the_revision_in_the_header_must_be_one_that_is_spoken(revision: str, status: int) -> None:
    async with http_client() as client:
        headers = await client.session()
        response = await client.post(request("ping"), headers | {"mcp-protocol-version": revision})
    assert response.status_code == status


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_revision_that_is_not_spoken_is_told_that_of_its_session(method: str) -> None:
    async with http_client() as client:
        headers = await client.session("2025-06-18")
        wrong = headers | {"mcp-protocol-version": "2099-01-01", "accept": ACCEPT}
        if method == "POST":
            response = await client.post(request("ping", id="abc"), wrong)
            assert response.json()["id"] == "abc"
        else:
            response = await client.http.request(method, client.url, headers=wrong)
        assert (await client.post(request("ping"), headers)).status_code == 200  # It goes on.
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["data"]["supported"]) == (-32022, ["2025-06-18"])
    assert error["data"]["requested"] == "2099-01-01"


async def test_errors_within_a_session_are_ordinary_answers() -> None:
    async with http_client() as client:
        response = await client.post(request("tools/fly", id=7), await client.session())
    assert response.status_code == 200
    assert response.json()["error"]["code"] == -32601
    assert response.json()["id"] == 7


async def test_progress_makes_a_stream_whose_events_have_ids() -> None:
    @tool()
    async def step(call: Call) -> str:
        """Says how far it is."""
        await call.progress(1, 2)
        return "done"

    async with http_client(Server("s", "1", [step])) as client:
        headers = await client.session("2025-06-18")
        async with client.stream(call("step", token="t"), headers) as events:
            assert events.response.headers["content-type"] == "text/event-stream"
            assert events.response.headers["x-accel-buffering"] == "no"
            first, second, end = await events.next(), await events.next(), await events.next()
    assert first
    assert second
    assert '"progress":1' in first["data"]
    assert '"done"' in second["data"]
    assert first["id"] != second["id"]
    assert end is None


async def test_clients_that_know_it_get_an_event_first_that_only_has_an_id() -> None:
    @tool()
    async def step(call: Call) -> str:
        """Says how far it is."""
        await call.progress(1)
        return "done"

    async with (
        http_client(Server("s", "1", [step])) as client,
        client.stream(call("step", token="t"), await client.session()) as events,
    ):
        first = await events.next()
        assert first
        assert first == {"id": first["id"], "retry": "500", "data": ""}
        assert (await events.message())["method"] == "notifications/progress"


async def test_a_call_may_send_its_client_away_and_be_answered_when_it_comes_back() -> None:
    paused, go_on = anyio.Event(), anyio.Event()

    @tool()
    async def reconnect(call: Call) -> str:
        """Ends the response before the answer."""
        assert isinstance(call.channel, SessionChannel)
        await call.channel.pause()
        paused.set()
        await go_on.wait()
        return "done"

    async with http_client(Server("s", "1", [reconnect])) as client:
        headers = await client.session()
        async with client.stream(call("reconnect"), headers) as events:
            first = await events.next()
            assert first
            assert first["data"] == ""
            assert await events.next() is None
        back = headers | {"last-event-id": first["id"], "accept": "text/event-stream"}
        async with client.stream(None, back, "GET") as events:
            go_on.set()
            assert (await events.message())["result"]["content"][0]["text"] == "done"
            assert await events.next() is None
        async with client.stream(None, back, "GET") as events:  # Once more: it is still known.
            assert (await events.message())["result"]["content"][0]["text"] == "done"
            assert await events.next() is None


async def test_a_lost_response_is_no_cancellation_and_its_rest_is_replayed() -> None:
    go_on = anyio.Event()

    @tool()
    async def count(call: Call) -> str:
        """Says how far it is, three times."""
        await call.progress(1)
        await go_on.wait()
        await call.progress(2)
        await call.progress(3)
        return "done"

    async with http_client(Server("s", "1", [count])) as client:
        headers = await client.session()
        async with client.stream(call("count", token="t"), headers) as events:
            await events.next()
            seen = await events.next()
            assert seen
        go_on.set()
        back = headers | {"last-event-id": seen["id"]}
        async with client.stream(None, back, "GET") as events:
            assert (await events.message())["params"]["progress"] == 2
            assert (await events.message())["params"]["progress"] == 3
            assert (await events.message())["result"]["content"][0]["text"] == "done"
            assert await events.next() is None


@pytest.mark.parametrize("id", [b"nonsense", b"1", b"99-1", b"-", b"1-x", b"\xb2-\xb2", b"9" * 5000, b""])
async def test_an_event_nobody_knows_is_refused(id: bytes) -> None:
    async with http_client() as client:
        headers = {name.encode(): value.encode() for name, value in (await client.session()).items()}
        headers |= {b"last-event-id": id, b"accept": b"text/event-stream"}
        response = await client.http.get(client.url, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["data"]["errorCode"] == "INVALID_REQUEST"


async def test_a_tool_asks_its_user_on_its_own_stream() -> None:
    @tool()
    async def greet(call: Call) -> str:
        """Asks for a name."""
        answer = await call.ask(name=Elicit(message="Who are you?", requested_schema={}))
        return str(answer["name"].content["name"])

    async with http_client(Server("s", "1", [greet])) as client:
        headers = await client.session(capabilities={"elicitation": {}})
        async with client.stream(call("greet"), headers) as events:
            asked = await events.message()
            assert asked["method"] == "elicitation/create"
            result = {"action": "accept", "content": {"name": "Ada"}}
            told = await client.post({"jsonrpc": "2.0", "id": asked["id"], "result": result}, headers)
            assert told.status_code == 202
            assert (await events.message())["result"]["content"][0]["text"] == "Ada"


def a_hanging_server() -> tuple[Server, anyio.Event, anyio.Event]:
    """With the tool `hang`, which never ends; the events that a call of it began, and was cancelled."""
    began, cancelled = anyio.Event(), anyio.Event()

    @tool()
    async def hang(_: Call) -> str:
        """Never ends."""
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return ""

    return Server("s", "1", [hang]), began, cancelled


async def test_a_cancelled_call_ends_without_an_answer() -> None:
    server, began, cancelled = a_hanging_server()
    async with http_client(server) as client:
        headers = await client.session()
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                response = await client.post(call("hang", id="h"), headers)
                assert response.status_code == 200
                assert response.text == ""

            tasks.start_soon(ask)
            await began.wait()
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "h"}}
            assert (await client.post(cancel, headers)).status_code == 202
            await cancelled.wait()


async def test_an_id_still_in_use_is_refused() -> None:
    began, go_on = anyio.Event(), anyio.Event()

    @tool()
    async def hang(_: Call) -> str:
        """Waits."""
        began.set()
        await go_on.wait()
        return ""

    async with http_client(Server("s", "1", [hang])) as client:
        headers = await client.session()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post, call("hang", id=1), headers)
            await began.wait()
            response = await client.post(request("ping", id=1), headers)
            assert response.status_code == 400
            assert "still in progress" in response.json()["error"]["message"]
            go_on.set()


async def test_batches_are_answered_together_in_the_one_revision_that_has_them() -> None:
    batch = [request("ping", id=1), call("Echo", {"text": "x"}, id=2), {"jsonrpc": "2.0", "method": "x"}, 7]
    async with http_client() as client:
        answer = await client.post(batch, await client.session("2025-03-26"))
        assert answer.status_code == 200
        assert {item["id"] for item in answer.json()} == {1, 2, None}
        only_notifications = [{"jsonrpc": "2.0", "method": "x"}] * 2
        headers = await client.session("2025-03-26")
        assert (await client.post(only_notifications, headers)).status_code == 202
        assert (await client.post([], headers)).status_code == 400
        assert (await client.post([request("ping", id=i) for i in range(101)], headers)).status_code == 400
        assert (await client.post(batch, await client.session("2025-06-18"))).status_code == 400


async def test_a_call_is_cancelled_by_the_batch_that_makes_it() -> None:
    @tool()
    async def hang(_: Call) -> str:
        """Never ends."""
        await anyio.sleep_forever()
        return ""

    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with http_client(Server("s", "1", [hang])) as client:
        headers = await client.session("2025-03-26")
        both = await client.post([call("hang", id=1), request("ping", id=2), cancel], headers)
        assert [answer["id"] for answer in both.json()] == [2]
        nothing = await client.post([call("hang", id=1), cancel], headers)
        assert (nothing.status_code, nothing.content) == (200, b"")
        assert (await client.post(request("ping", id=1), headers)).status_code == 200


async def listen(client: HttpClient, headers: dict[str, str]) -> Any:
    return client.stream(None, headers | {"accept": "text/event-stream"}, "GET")


async def test_news_go_to_one_of_the_streams_the_client_has_opened() -> None:
    server = Server("s", "1", TOOLS)
    async with http_client(server) as client:
        headers = await client.session()
        async with await listen(client, headers) as first, await listen(client, headers) as second:
            assert (await first.next())["data"] == ""
            assert (await second.next())["data"] == ""
            server.announce(list_changed("tools"))
            assert (await second.message())["method"] == "notifications/tools/list_changed"
            await second.response.aclose()
            await client.until(lambda: client.endpoint.stream_count == 1)
            server.announce(list_changed("tools"))
            assert (await first.message())["method"] == "notifications/tools/list_changed"


async def test_news_that_came_while_nobody_listened_are_replayed() -> None:
    server = Server("s", "1", TOOLS)
    async with http_client(server) as client:
        headers = await client.session()
        async with await listen(client, headers) as events:
            seen = await events.next()
        server.announce(list_changed("tools"))
        async with await listen(client, headers | {"last-event-id": seen["id"]}) as events:
            assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_a_get_or_delete_without_a_session_finds_nothing() -> None:
    async with http_client() as client:
        for method, allowed in (("GET", "POST"), ("DELETE", "POST"), ("PUT", "POST, GET, DELETE")):
            response = await client.http.request(method, client.url, headers={"accept": "*/*"})
            assert response.status_code == 405
            assert response.headers["allow"] == allowed
            assert response.json()["error"]["data"]["errorCode"] == "HTTP_METHOD_NOT_ALLOWED"


async def test_the_session_used_least_recently_goes_when_there_are_too_many() -> None:
    async with http_client(limits=limits(sessions=2)) as client:
        first, second = await client.session(), await client.session()
        await client.post(request("ping"), first)
        await client.session()
        assert client.endpoint.session_count == 2
        assert (await client.post(request("ping"), first)).status_code == 200
        assert (await client.post(request("ping"), second)).status_code == 404


async def test_a_flood_of_handshakes_ends_no_session_that_was_used() -> None:
    async with http_client(limits=limits(sessions=5)) as client:
        asking, listening = await client.session(), await client.session()
        assert (await client.post(request("tools/list"), asking)).status_code == 200
        async with await listen(client, listening) as events:
            await events.next()
        for _ in range(20):
            await client.session()
        for headers in (asking, listening):
            assert (await client.post(request("ping"), headers)).status_code == 200
        assert client.endpoint.session_count == 5


async def test_a_new_session_is_refused_when_all_others_were_used() -> None:
    async with http_client(limits=limits(sessions=2)) as client:
        used = [await client.session() for _ in range(2)]
        for headers in used:
            assert (await client.post(request("ping"), headers)).status_code == 200
        params = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "n", "version": "0"}}
        response = await client.post(request("initialize", params | {"capabilities": {}}))
        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert "sessions is reached" in response.json()["error"]["message"]
        for headers in used:
            assert (await client.post(request("ping"), headers)).status_code == 200


async def test_many_sessions_share_what_is_kept_for_clients_that_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "ALL_REPLAY_BYTES", 500)
    server = Server("s", "1", TOOLS)
    async with http_client(server) as client:
        headers = await client.session()
        missed: list[bool] = []
        for others in range(2):
            for _ in range(10 * others):
                await client.session()
            async with await listen(client, headers) as events:
                last_id = ((await events.next()) or {})["id"]
            await client.until(lambda: client.endpoint.stream_count == 0)
            server.announce(list_changed("tools"))
            resumed = headers | {"last-event-id": last_id}
            async with await listen(client, resumed) as events:
                await events.next()  # The sign that it is heard.
                server.announce(list_changed("prompts"))
                message = await events.message()
                missed.append(message["method"] == list_changed("prompts").method)
    assert missed == [False, True]


async def test_a_uri_without_end_cannot_be_watched() -> None:
    async with http_client(make_whole_server()) as client:
        headers = await client.session()
        response = await client.post(request("resources/subscribe", {"uri": "x" * 8_193}), headers)
    assert response.json()["error"]["code"] == -32602
    assert "longer than 8,192 characters" in response.json()["error"]["message"]


async def test_a_new_session_is_refused_when_all_are_in_use() -> None:
    async with http_client(limits=limits(sessions=1)) as client:
        headers = await client.session()
        async with await listen(client, headers) as events:
            await events.next()
            params = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "n", "version": "0"}}
            response = await client.post(request("initialize", params | {"capabilities": {}}))
    assert response.status_code == 503
    assert response.headers["retry-after"]
    assert response.json()["error"]["data"]["errorCode"] == "TOO_MANY_OPEN"


async def test_an_idle_session_expires_and_one_that_listens_does_not() -> None:
    chosen = limits(session_idle_seconds=0.2, keep_alive_seconds=0.05)
    async with http_client(limits=chosen) as client:
        idle, listening = await client.session(), await client.session()
        async with await listen(client, listening) as events:
            await events.next()
            await client.until(lambda: client.endpoint.session_count == 1)
            assert (await client.post(request("ping"), listening)).status_code == 200
        assert (await client.post(request("ping"), idle)).status_code == 404


async def test_the_end_of_a_session_ends_its_calls_and_streams() -> None:
    server, began, cancelled = a_hanging_server()
    async with http_client(server) as client:
        headers = await client.session()
        async with await listen(client, headers) as events, anyio.create_task_group() as tasks:

            async def ask() -> None:
                response = await client.post(call("hang"), headers)
                assert (response.status_code, response.content) == (200, b"")

            await events.next()
            tasks.start_soon(ask)
            await began.wait()
            assert (await client.http.delete(client.url, headers=headers)).status_code == 204
            await cancelled.wait()
            assert await events.next() is None


async def test_a_call_whose_client_is_gone_does_not_keep_its_session_alive() -> None:
    began, cancelled = anyio.Event(), anyio.Event()

    @tool()
    async def hang(_: Call) -> str:
        """Never ends."""
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return ""

    async with http_client(Server("s", "1", [hang]), limits=limits(session_idle_seconds=1)) as client:
        headers = await client.session()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post, call("hang"), headers)
            await began.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await cancelled.wait()
        assert client.endpoint.session_count == 0


async def test_a_call_under_way_is_answered_before_the_server_leaves() -> None:
    began, go_on = anyio.Event(), anyio.Event()

    @tool()
    async def wait(_: Call) -> str:
        """Takes its time."""
        began.set()
        await go_on.wait()
        return "done"

    async with http_client(Server("s", "1", [wait])) as client:
        headers = await client.session()
        async with await listen(client, headers) as events, anyio.create_task_group() as tasks:

            async def ask() -> None:
                response = await client.post(call("wait"), headers)
                assert response.json()["result"]["content"][0]["text"] == "done"

            await events.next()
            tasks.start_soon(ask)
            await began.wait()
            client.endpoint.leave()
            assert await events.next() is None
            go_on.set()


async def test_a_session_has_room_for_more_calls_than_streams_to_come_back_to() -> None:
    waiting, go_on = 0, anyio.Event()

    @tool()
    async def wait(call: Call) -> str:
        """Waits for the others."""
        nonlocal waiting
        waiting += 1
        if waiting == CALLS:
            go_on.set()
        await go_on.wait()
        await call.progress(1)
        return "done"

    async with http_client(Server("s", "1", [wait])) as client:
        headers = await client.session()
        async with anyio.create_task_group() as tasks:

            async def ask(id: int) -> None:
                async with client.stream(call("wait", id=id, token=f"t{id}"), headers) as events:
                    assert (await events.message())["params"]["progressToken"] == f"t{id}"
                    assert (await events.message())["id"] == id

            for id in range(CALLS):
                tasks.start_soon(ask, id)


async def test_there_are_not_more_streams_than_there_may_be() -> None:
    async with http_client(limits=limits(streams=1)) as client:
        headers = await client.session()
        async with await listen(client, headers) as events:
            await events.next()
            refused = await client.http.get(client.url, headers=headers | {"accept": "text/event-stream"})
    assert refused.status_code == 503
    assert refused.json()["error"]["data"]["errorCode"] == "TOO_MANY_OPEN"


async def test_updates_of_resources_come_to_those_who_subscribed() -> None:
    server = Server("s", "1", TOOLS)
    async with http_client(server) as client:
        headers = await client.session()
        async with await listen(client, headers) as events:
            await events.next()
            server.announce(resource_updated("memory://x"))
            server.announce(list_changed("tools"))
            assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_silence_is_filled_with_comments_after_the_client_knows_where_to_come_back_to() -> None:
    @tool()
    async def hang(_: Call) -> str:
        """Never ends."""
        await anyio.sleep_forever()
        return ""

    async with (
        http_client(Server("s", "1", [hang]), limits=limits(keep_alive_seconds=0.05)) as client,
        client.stream(call("hang"), await client.session()) as events,
    ):
        first = await events.next()
        assert first
        assert first["data"] == ""
        assert await events.next() == {"": ""}


async def test_a_stream_that_is_catching_up_ends_with_its_session() -> None:
    writing, ended = anyio.Event(), anyio.Event()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and message.get("more_body"):
            writing.set()
            await anyio.sleep_forever()

    async with http_client() as client, anyio.create_task_group() as tasks:
        headers = await client.session()
        async with client.stream(None, headers, "GET") as events:
            first = await events.next()
        assert first is not None
        scope = asgi_scope("GET", headers | {"last-event-id": first["id"]})

        async def get() -> None:
            await client.endpoint(scope, body_then_silence(), send)
            ended.set()

        tasks.start_soon(get)
        await writing.wait()
        assert (await client.http.delete(client.url, headers=headers)).status_code == 204
        with anyio.fail_after(5):
            await ended.wait()


async def test_a_response_whose_stream_a_get_has_taken_over_ends_in_order() -> None:
    may_finish = anyio.Event()

    @tool()
    async def work(call: Call) -> str:
        """Tells how far it is, and waits."""
        await call.progress(1)
        await may_finish.wait()
        return "done"

    async with http_client(Server("s", "1", [work])) as client:
        headers = await client.session()
        async with client.stream(call("work", token="p"), headers) as events:
            first = await events.next()
            assert first is not None
            again = headers | {"last-event-id": first["id"]}
            async with client.stream(None, again, "GET") as rest:
                await rest.next()
                may_finish.set()
                while "result" not in (await rest.message()):
                    pass
            while await events.message():  # httpx2 raises where a response is cut off.
                pass
