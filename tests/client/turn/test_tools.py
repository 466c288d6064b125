"""Tools that the model may call, who allows it, and what comes back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest
from msgspec import UNSET, UnsetType

from ragchat.errors import MemoryUnavailable
from ragchat.llm.types import ToolRequest
from ragchat.memory.types import ToolResult
from ragchat.servers.asking import User
from ragchat.servers.manager import ServerManager
from ragchat.servers.tools import OfferedTool
from ragchat.turn.approval import PermissionRequest
from ragchat.turn.tools import TIME_USED_UP, Toolbox, ToolCall
from ragchat.ui.approval import Approvals
from ragmcp.protocol.schema.tools import ToolAnnotations, ToolInfo
from tests.support.dialogs import ScriptedDialog
from tests.support.servers import GOOD, SILENT, held_back, managed, write
from tests.support.servers import tool as server_tool
from tests.support.turns import FORGET_TOOL, QUERY_TOOL, ListMemory, hit, make_toolbox

QUERY = ToolRequest("1", "Query", '{"query": "x"}')
FORGET = ToolRequest("2", "Forget", "{}")
SECONDS = 0.05


async def refuse(*_: Any) -> Any:
    raise NotImplementedError


def toolbox(memory: ListMemory, offered: tuple[str, ...] = ("Query", "Forget")) -> Toolbox:
    return make_toolbox(memory, *offered)


async def test_only_offered_tools_are_described_to_the_model() -> None:
    memory = ListMemory(tools=[QUERY_TOOL, FORGET_TOOL])
    [described] = await toolbox(memory, ("Query",)).descriptions()
    assert described["type"] == "function"
    assert described["function"]["name"] == "Query"
    assert described["function"]["parameters"] == QUERY_TOOL.input_schema


async def test_a_read_only_tool_is_called_without_asking() -> None:
    call = await toolbox(ListMemory(tools=[QUERY_TOOL])).permit(QUERY, None)
    assert (call.arguments, call.refusal) == ({"query": "x"}, "")


async def test_another_tool_needs_the_users_approval() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def approve(question: PermissionRequest) -> dict[str, Any] | None:
        asked.append((question.tool.name, question.arguments))
        return {"edited": True} if len(asked) == 1 else None

    tools = toolbox(ListMemory(tools=[FORGET_TOOL]))
    allowed = await tools.permit(FORGET, approve)
    assert (allowed.refusal, allowed.arguments) == ("", {"edited": True})
    assert "not allow" in (await tools.permit(FORGET, approve)).refusal
    assert "the user cannot be asked" in (await tools.permit(FORGET, None)).refusal
    assert asked == [("Forget", {}), ("Forget", {})]


async def test_a_tool_that_is_not_offered_and_arguments_that_are_no_object_are_refused() -> None:
    tools = toolbox(ListMemory(tools=[QUERY_TOOL]))
    assert "no tool" in (await tools.permit(FORGET, None)).refusal
    assert "JSON object" in (await tools.permit(ToolRequest("1", "Query", "[1"), None)).refusal
    assert "JSON object" in (await tools.permit(ToolRequest("1", "Query", "[]"), None)).refusal


async def test_a_wrong_name_leads_to_no_tool_that_may_do_harm() -> None:
    def named(name: str, annotations: ToolAnnotations | UnsetType = UNSET) -> ToolInfo:
        return ToolInfo(name=name, input_schema={"type": "object"}, annotations=annotations)

    listed = [
        named("list_file", ToolAnnotations(read_only_hint=True)),
        named("delete_file"),  # By default, a tool may destroy something.
        named("delete_files", ToolAnnotations(read_only_hint=False)),
        named("delete_all_files", ToolAnnotations(destructive_hint=True)),
    ]
    tools = toolbox(ListMemory(tools=listed), tuple(one.name for one in listed))
    refusals = {
        name: (await tools.permit(ToolRequest("1", name, "{}"), None)).refusal
        for name in ("list_files", "delete_the_files")
    }
    assert refusals == {
        "list_files": "There is no tool list_files. There is list_file.",
        "delete_the_files": "There is no tool delete_the_files.",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes in folders are POSIX")
async def test_a_call_to_a_tool_of_a_starting_server_waits_for_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    write(tmp_path, mine=held_back(gate), silent=SILENT)
    someone = User(refuse, refuse, refuse, print)
    async with managed(tmp_path, settled=(), user=someone, wait_seconds=0.0) as manager:
        tools = Toolbox(ListMemory(), (), 5.0, manager, budget=100_000, trust_read_only_hints=True)
        assert await tools.descriptions() == []  # At the prompt, a question does not wait.
        calls: list[ToolCall] = []

        async def permit() -> None:
            calls.append(await tools.permit(ToolRequest("1", "mine__Echo", '{"text": "hello"}'), None))

        async with anyio.create_task_group() as group:
            group.start_soon(permit)
            await anyio.Path(gate).write_text("go\n")
        [result] = await tools.run(calls)
        assert result.text == "hello"


async def test_the_calls_of_a_round_run_at_the_same_time_and_answer_in_order() -> None:
    memory = ListMemory(tools=[QUERY_TOOL, FORGET_TOOL], answers=[hit("a")])
    tools = toolbox(memory)

    async def approve(question: PermissionRequest) -> dict[str, Any]:
        return question.arguments

    calls = [await tools.permit(request, approve) for request in (QUERY, FORGET, QUERY)]
    results = await tools.run(calls)
    assert memory.most_at_once == 3
    assert [(result.ok, len(result.hits)) for result in results] == [(True, 1), (True, 0), (True, 1)]
    assert results[1].text == "Done."


async def test_a_memory_that_is_down_offers_no_tools() -> None:
    class Down(ListMemory):
        async def tools(self) -> list[Any]:
            raise MemoryUnavailable("it is gone")

    assert await toolbox(Down()).descriptions() == []


async def test_a_call_that_fails_has_a_result_and_raises_nothing() -> None:
    class Failing(ListMemory):
        async def call(self, name: str, arguments: dict[str, Any]) -> Any:
            raise MemoryUnavailable(f"{name} {arguments}")

    tools = toolbox(Failing(tools=[QUERY_TOOL]))
    [result] = await tools.run([await tools.permit(QUERY, None)])
    assert (result.ok, result.text) == (
        False,
        "Memory is not available: Query {'query': 'x'}.",
    )


@pytest.mark.parametrize(("asks", "text"), [(True, "Ada"), (False, TIME_USED_UP)])
async def test_the_time_in_which_a_server_asks_the_user_is_not_that_of_its_call(
    asks: bool, text: str
) -> None:
    tools = toolbox(ListMemory())

    async def call(_: dict[str, Any]) -> ToolResult:
        if not asks:
            await anyio.sleep_forever()
        with tools.clock.stopped():
            answered = anyio.current_time() + 2 * SECONDS
            while anyio.current_time() < answered:
                await anyio.lowlevel.checkpoint()
        return ToolResult(True, "Ada")

    tool = OfferedTool("Ask", "mine", "mine", FORGET_TOOL, True, call)
    [result] = await tools.run([ToolCall(FORGET, tool=tool)], seconds=SECONDS)
    assert result.text == text


TURN = ToolRequest("1", "mine__Turn", "{}")


async def turned(manager: ServerManager) -> None:
    """Call the tool that becomes another one, and wait until the client knows."""
    assert (await server_tool(manager, "mine__Turn").call({})).text == "noted"
    while server_tool(manager, "mine__Turn").info.description == "Takes a note.":
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("reply", ["s", "a"])
async def test_a_tool_that_becomes_another_one_is_asked_about_again(tmp_path: Path, reply: str) -> None:
    write(tmp_path, mine=GOOD)
    async with managed(tmp_path) as manager:
        user = ScriptedDialog([reply, "n", "n"])
        approve = Approvals(manager.permissions, user, user.show, lambda: 80, pytest.fail).approve
        for trust_read_only_hints in (False, True):
            tools = Toolbox(
                ListMemory(), (), 5.0, manager, budget=100_000, trust_read_only_hints=trust_read_only_hints
            )
            if not trust_read_only_hints:
                assert (await tools.permit(TURN, approve)).refusal == ""
                assert (await tools.permit(TURN, approve)).refusal == ""
                assert len(user.asked) == 1
                await turned(manager)
            user.shown.clear()
            assert "not allow" in (await tools.permit(TURN, approve)).refusal
            assert user.shown[0] == "mine__Turn has changed since you allowed it:"
            expected = {"-Takes a note.", "+Deletes all your files now.", "+  readOnlyHint: true"}
            assert expected <= {*user.shown[1].splitlines()}


async def test_only_what_was_approved_is_called(tmp_path: Path) -> None:
    write(tmp_path, mine=GOOD)
    async with managed(tmp_path) as manager:
        tools = Toolbox(ListMemory(), (), 5.0, manager, budget=100_000)

        async def approve(question: PermissionRequest) -> dict[str, Any]:
            await turned(manager)  # while the user reads the question
            return question.arguments

        [result] = await tools.run([await tools.permit(TURN, approve)])
        assert not result.ok
        assert "was not called: it has changed, or is gone" in result.text


async def test_the_time_in_which_the_user_decides_on_a_call_does_not_count() -> None:
    tools = toolbox(ListMemory(tools=[FORGET_TOOL]))

    async def approve(question: PermissionRequest) -> dict[str, Any]:
        before = tools.clock.now()
        await anyio.lowlevel.checkpoint()
        assert tools.clock.now() == before
        return question.arguments

    assert (await tools.permit(FORGET, approve)).refusal == ""
