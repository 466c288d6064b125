"""Calls that go on as tasks: their states, their questions, their end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ragmcp.errors import InvalidRequest, ToolError
from ragmcp.protocol.schema.base import TASKS_EXTENSION
from ragmcp.protocol.schema.input import Elicit
from ragmcp.server import tasks as tasks_module
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import Tool, tool
from tests.shared.test_concurrency import awaits_what_is_cancelled
from tests.support.raw_mcp import RawClient, raw_client

CAPABILITIES: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}, "elicitation": {}}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}

may_finish = anyio.Event()
forever = anyio.Event()


@tool(background=True)
async def bake(call: Call, mood: str = "good") -> str:
    """Takes its time."""
    await call.background()
    await call.progress(1, 2, "in the oven")
    await may_finish.wait()
    if mood == "bad":
        raise ToolError("BURNT", "It burnt.")
    if mood == "worse":
        raise InvalidRequest("there is no flour")
    return "bread"


@tool(background=True)
async def greet(call: Call) -> str:
    """Asks the same thing twice, as a task."""
    await call.background()
    first = (await call.ask(name=Elicit(message="Who?", requested_schema=FORM)))["name"]
    second = (await call.ask(name=Elicit(message="And who?", requested_schema=FORM)))["name"]
    return f"Hello {first.content['name']} and {second.content['name']}"


@tool(background=True)
async def ask_first(call: Call) -> str:
    """Asks before it becomes a task, which it must become."""
    answer = (await call.ask(name=Elicit(message="Who?", requested_schema=FORM)))["name"]
    call.require_extension(TASKS_EXTENSION)
    await call.background()
    return f"Hello {answer.content['name']}"


@tool(background=True)
async def greet_both(call: Call) -> str:
    """Asks two people at the same time, one question each."""
    await call.background()
    names: dict[str, str] = {}

    async def one(key: str) -> None:
        answer = (await call.ask(**{key: Elicit(message="Who?", requested_schema=FORM)}))[key]
        names[key] = answer.content["name"]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, "left")
        tasks.start_soon(one, "right")
    return f"Hello {names['left']} and {names['right']}"


@tool(background=True)
async def ask_in_vain(call: Call) -> str:
    """Tells its progress while it asks, and then does without the answer."""
    await call.background()

    async def one() -> None:
        await call.ask(name=Elicit(message="Who?", requested_schema=FORM))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        await anyio.lowlevel.checkpoint()
        await call.progress(1)
        await may_finish.wait()
        tasks.cancel_scope.cancel()
    await forever.wait()
    return ""


@tool(background=True)
async def instant(_: Call) -> str:
    """Is done before it would be worth a task."""
    return "done"


@asynccontextmanager
async def a_server(tools: list[Tool]) -> AsyncIterator[Server]:
    server = Server("baker", "1", tools)
    async with anyio.create_task_group() as tasks:
        server.allow_tasks(tasks)
        yield server
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def a_client() -> AsyncIterator[RawClient]:
    global may_finish
    may_finish = anyio.Event()
    async with (
        a_server([bake, greet, greet_both, ask_first, ask_in_vain, instant]) as server,
        raw_client(server) as client,
    ):
        yield client


async def ask(client: RawClient, method: str, declared: Any = CAPABILITIES, **params: Any) -> Any:
    meta = {"io.modelcontextprotocol/clientCapabilities": declared}
    return await client.request(method, params | {"_meta": meta}, modern=True)


async def start(client: RawClient, name: str, **arguments: Any) -> Any:
    return (await ask(client, "tools/call", name=name, arguments=arguments))["result"]


async def ended(client: RawClient, task_id: str) -> Any:
    with anyio.fail_after(60):
        while True:
            task = (await ask(client, "tasks/get", taskId=task_id))["result"]
            if task["status"] not in ("working", "input_required"):
                return task
            await anyio.lowlevel.checkpoint()


async def waiting(client: RawClient, task_id: str) -> Any:
    with anyio.fail_after(60):
        while True:
            task = (await ask(client, "tasks/get", taskId=task_id))["result"]
            if task["status"] == "input_required":
                return task
            await anyio.lowlevel.checkpoint()


async def test_a_call_becomes_a_task_and_its_result_is_fetched_later() -> None:
    async with a_client() as client:
        created = await start(client, "bake")
        assert (created["resultType"], created["status"]) == ("task", "working")
        assert created["ttlMs"] > 0
        assert created["pollIntervalMs"] > 0
        may_finish.set()
        task = await ended(client, created["taskId"])
        assert (task["resultType"], task["status"]) == ("complete", "completed")
        assert task["result"]["content"][0]["text"] == "bread"


async def test_a_call_that_is_done_at_once_is_no_task() -> None:
    async with a_client() as client:
        result = await start(client, "instant")
        assert result["resultType"] == "complete"
        assert result["content"][0]["text"] == "done"


async def test_a_client_without_the_extension_waits_for_the_result() -> None:
    async with a_client() as client:
        may_finish.set()
        result = (await ask(client, "tools/call", {}, name="bake", arguments={}))["result"]
        assert result["resultType"] == "complete"
        assert result["content"][0]["text"] == "bread"


async def test_a_tool_that_must_be_a_task_refuses_a_client_without_the_extension() -> None:
    async with a_client() as client:
        given = {"name": {"action": "accept", "content": {"name": "Ada"}}}
        params = {"name": "ask_first", "arguments": {}, "inputResponses": given}
        error = (await ask(client, "tools/call", {"elicitation": {}}, **params))["error"]
        assert error["code"] == -32021
        assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS_EXTENSION: {}}}


async def test_a_failed_tool_is_a_completed_task_and_a_protocol_error_a_failed_one() -> None:
    async with a_client() as client:
        burnt = await start(client, "bake", mood="bad")
        refused = await start(client, "bake", mood="worse")
        may_finish.set()
        task = await ended(client, burnt["taskId"])
        assert (task["status"], task["result"]["isError"]) == ("completed", True)
        task = await ended(client, refused["taskId"])
        assert (task["status"], task["error"]["code"]) == ("failed", -32600)
        assert "no flour" in task["statusMessage"]


async def test_a_cancelled_task_says_so_and_stays_so() -> None:
    async with a_client() as client:
        created = await start(client, "bake")
        for _ in range(2):
            answer = await ask(client, "tasks/cancel", taskId=created["taskId"])
            assert answer["result"]["resultType"] == "complete"
        assert (await ended(client, created["taskId"]))["status"] == "cancelled"


async def test_a_task_asks_and_never_uses_a_key_twice() -> None:
    async with a_client() as client:
        created = await start(client, "greet")
        keys = []
        for name in ("Ada", "Bo"):
            task = await waiting(client, created["taskId"])
            (key,) = task["inputRequests"]
            keys.append(key)
            answer = {"action": "accept", "content": {"name": name}}
            responses = {key: answer, "unknown": answer}
            await ask(client, "tasks/update", taskId=created["taskId"], inputResponses=responses)
        assert len(set(keys)) == 2
        task = await ended(client, created["taskId"])
        assert task["result"]["content"][0]["text"] == "Hello Ada and Bo"


async def test_questions_come_before_the_task_where_the_tool_asks_first() -> None:
    async with a_client() as client:
        asked = await start(client, "ask_first")
        assert asked["resultType"] == "input_required"
        answers = {"name": {"action": "accept", "content": {"name": "Ada"}}}
        params = {"name": "ask_first", "arguments": {}, "inputResponses": answers}
        params["requestState"] = asked["requestState"]
        created = (await ask(client, "tools/call", **params))["result"]
        assert created["resultType"] == "task"
        task = await ended(client, created["taskId"])
        assert task["result"]["content"][0]["text"] == "Hello Ada"


async def test_what_a_listener_hears_of_a_task_is_its_whole_state() -> None:
    async with a_client() as client:
        created = await start(client, "bake")
        params = {"notifications": {"taskIds": [created["taskId"], "unknown"]}}
        meta = {"io.modelcontextprotocol/clientCapabilities": CAPABILITIES}
        heard = await client.request("subscriptions/listen", params | {"_meta": meta}, id="l", modern=True)
        assert heard["params"]["notifications"] == {"taskIds": [created["taskId"]]}
        may_finish.set()
        heard = await client.receive()
        assert heard["method"] == "notifications/tasks"
        assert heard["params"]["status"] == "completed"
        assert heard["params"]["result"]["content"][0]["text"] == "bread"


async def test_tasks_are_for_clients_that_declare_the_extension() -> None:
    async with a_client() as client:
        for method in ("tasks/get", "tasks/cancel"):
            assert (await ask(client, method, {}, taskId="x"))["error"]["code"] == -32021
            assert (await ask(client, method, taskId="x"))["error"]["code"] == -32602
        listen = {"notifications": {"taskIds": ["x"]}}
        assert (await ask(client, "subscriptions/listen", {}, **listen))["error"]["code"] == -32021
        assert (await ask(client, "tasks/result", taskId="x"))["error"]["code"] == -32601


async def test_questions_of_one_task_are_answered_one_by_one() -> None:
    async with a_client() as client:
        task_id = (await start(client, "greet_both"))["taskId"]
        while len((await waiting(client, task_id))["inputRequests"]) < 2:
            await anyio.lowlevel.checkpoint()
        for key, name, status in (("left-1", "Ada", "input_required"), ("right-2", "Bo", "working")):
            answers = {key: {"action": "accept", "content": {"name": name}}}
            await ask(client, "tasks/update", taskId=task_id, inputResponses=answers)
            task = (await ask(client, "tasks/get", taskId=task_id))["result"]
            assert task["status"] in (status, "completed")
        done = await ended(client, task_id)
        assert done["result"]["content"][0]["text"] == "Hello Ada and Bo"


async def test_a_question_is_open_until_it_is_answered_or_taken_back() -> None:
    async with a_client() as client:
        meta = {"progressToken": 1, "io.modelcontextprotocol/clientCapabilities": CAPABILITIES}
        params = {"name": "ask_in_vain", "arguments": {}, "_meta": meta}
        task_id = (await client.request("tools/call", params, modern=True))["result"]["taskId"]
        with anyio.fail_after(60):
            while "statusMessage" not in (task := await waiting(client, task_id)):
                await anyio.lowlevel.checkpoint()
        assert task["inputRequests"].keys() == {"name-1"}
        may_finish.set()
        with anyio.fail_after(60):
            while task["status"] != "working":
                task = (await ask(client, "tasks/get", taskId=task_id))["result"]
        assert "inputRequests" not in task


async def test_a_task_asks_only_what_the_client_can_give() -> None:
    async with a_client() as client:
        only_tasks: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}}
        created = await ask(client, "tools/call", only_tasks, name="greet", arguments={})
        failed = await ended(client, created["result"]["taskId"])
        assert (failed["status"], failed["error"]["code"]) == ("failed", -32021)


async def test_a_server_without_tasks_has_no_such_methods() -> None:
    async with raw_client(Server("plain", "1", [instant])) as client:
        assert (await ask(client, "tasks/get", taskId="x"))["error"]["code"] == -32601
        assert (await start(client, "instant"))["content"][0]["text"] == "done"


async def test_a_call_that_goes_to_the_background_twice_is_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "MAX_TASKS", 2)

    @tool(background=True)
    async def twice(call: Call) -> str:
        """Says it twice, and what has become of it."""
        await call.background()
        await call.background()
        return type(call.channel).__name__

    async with anyio.create_task_group() as group:
        server = Server("s", "1", [twice])
        server.allow_tasks(group)
        async with raw_client(server) as client:
            for _ in range(2):
                done = await ended(client, (await start(client, "twice"))["taskId"])
                assert done["result"]["content"][0]["text"] == "Task"


async def test_a_task_that_awaits_what_is_cancelled_fails_alone() -> None:
    @tool(background=True)
    async def stray(call: Call) -> str:
        """Meets a cancellation that is not its own."""
        await call.background()
        await awaits_what_is_cancelled()
        return ""

    failed = 0
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            server = Server("s", "1", [stray])
            server.allow_tasks(group)
            async with raw_client(server) as client:
                for _ in range(2):
                    task = await ended(client, (await start(client, "stray"))["taskId"])
                    assert task["error"]["message"].startswith("The server failed")
                    failed += 1
    assert failed == 2


async def test_who_waits_for_a_call_hears_when_the_home_of_tasks_is_gone() -> None:
    started, failed = anyio.Event(), anyio.Event()

    @tool(background=True)
    async def wait(_: Call) -> str:
        """Never ends."""
        started.set()
        await anyio.sleep_forever()
        return ""

    server = Server("s", "1", [wait])
    with anyio.fail_after(5):
        async with (
            raw_client(server) as client,
            anyio.create_task_group() as tasks,
        ):

            async def call() -> None:
                assert "error" in await ask(client, "tools/call", name="wait", arguments={})
                failed.set()

            async with anyio.create_task_group() as group:
                server.allow_tasks(group)
                tasks.start_soon(call)
                await started.wait()
                group.cancel_scope.cancel()
            await failed.wait()
