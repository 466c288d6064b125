"""Tools that the model may call, who allows it, and what comes back."""

from __future__ import annotations

from typing import Any

import anyio.lowlevel
import pytest

from ragchat.errors import MemoryUnavailable
from ragchat.memory.types import ToolResult
from ragchat.turn.approval import OfferedTool, Question
from ragchat.turn.tools import TIME_USED_UP, Toolbox, ToolCall
from ragchat.types import ToolRequest
from tests.support.turns import FORGET_TOOL, QUERY_TOOL, ListMemory, hit, make_toolbox

QUERY = ToolRequest("1", "Query", '{"query": "x"}')
FORGET = ToolRequest("2", "Forget", "{}")
SECONDS = 0.05


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

    async def approve(question: Question) -> dict[str, Any] | None:
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


async def test_the_calls_of_a_round_run_at_the_same_time_and_answer_in_order() -> None:
    memory = ListMemory(tools=[QUERY_TOOL, FORGET_TOOL], answers=[hit("a")])
    tools = toolbox(memory)

    async def approve(question: Question) -> dict[str, Any]:
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

    tool = OfferedTool("Ask", "mine", FORGET_TOOL, True, call)
    [result] = await tools.run([ToolCall(FORGET, tool=tool)], seconds=SECONDS)
    assert result.text == text


async def test_the_time_in_which_the_user_decides_on_a_call_does_not_count() -> None:
    tools = toolbox(ListMemory(tools=[FORGET_TOOL]))

    async def approve(question: Question) -> dict[str, Any]:
        before = tools.clock.now()
        await anyio.lowlevel.checkpoint()
        assert tools.clock.now() == before
        return question.arguments

    assert (await tools.permit(FORGET, approve)).refusal == ""
