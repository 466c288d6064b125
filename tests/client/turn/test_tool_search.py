"""Tools that a model searches for, because describing all of them would cost too much."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from ragchat.errors import MemoryUnavailable
from ragchat.servers.tools import OfferedTool
from ragchat.turn.tool_search import FIND_TOOLS, MAX_FOUND, ToolSearch, cost
from ragcommon.contract.search import Comparison
from tests.client.ui.test_approval import nothing
from tests.support.turns import FORGET_TOOL, QUERY_TOOL, ListMemory

QUERY = OfferedTool("Query", "memory", "memory", QUERY_TOOL, True, nothing)


def tool(name: str, description: str) -> OfferedTool:
    info = replace(FORGET_TOOL, name=name, description=description)
    return OfferedTool(f"many__{name}", "many", "many", info, False, nothing)


MANY = [tool(f"tool{number}", f"Does thing number {number}.") for number in range(50)]
ISSUES = tool("create_issue", "Create an issue in a repository.")


def names(tools: list[OfferedTool]) -> list[str]:
    return [one.name for one in tools]


def test_all_tools_are_offered_while_they_fit() -> None:
    search = ToolSearch(ListMemory(), cost([QUERY, *MANY]))
    assert search.offered([QUERY], MANY) == [QUERY, *MANY]


async def test_beyond_the_budget_a_search_offers_what_it_has_found() -> None:
    search = ToolSearch(ListMemory(), 400)
    offered = search.offered([QUERY], [*MANY, ISSUES])
    assert names(offered) == ["Query", FIND_TOOLS.name]
    result = await offered[1].call({"query": "create an issue"})
    [first, *others] = json.loads(result.text)
    assert first["function"]["name"] == "many__create_issue"
    assert len(others) == MAX_FOUND - 1
    offered = search.offered([QUERY], [*MANY, ISSUES])
    assert offered[2] == ISSUES
    assert cost(offered) <= 400


async def test_what_was_found_longest_ago_makes_room_for_what_is_found_now() -> None:
    search = ToolSearch(ListMemory(), 260)
    for query in ("thing number 1.", "create an issue"):
        await search.offered([QUERY], [*MANY, ISSUES])[1].call({"query": query})
    offered = search.offered([QUERY], [*MANY, ISSUES])
    assert offered[2] == ISSUES
    assert cost(offered) <= 260


async def test_every_tool_that_searches_return_is_offered_and_the_others_are_named() -> None:
    search = ToolSearch(ListMemory(), 300)
    find = search.offered([QUERY], [*MANY, ISSUES])[1]
    results = [await find.call({"query": query}) for query in ("create an issue", "thing number 7.")]
    returned: set[str] = set()
    for result in results:  # Of one round: they share the room.
        tools, _, left_out = result.text.partition("\n")
        returned |= {one["function"]["name"] for one in json.loads(tools)}
        assert left_out.startswith("Also found, but ")
        [note] = result.notes
        assert note.rpartition(": ")[2] == left_out.rpartition(": ")[2]
    assert ISSUES.name in returned
    assert returned == {*names(search.offered([QUERY], [*MANY, ISSUES]))} - {"Query", FIND_TOOLS.name}


async def test_a_tool_that_never_fits_is_not_returned_as_one_that_can_be_called() -> None:
    huge = tool("huge", "Create an issue. " * 500)
    search = ToolSearch(ListMemory(), 400)
    result = await search.offered([QUERY], [*MANY, huge])[1].call({"query": "create an issue."})
    assert "many__huge" not in result.text.partition("\n")[0]
    assert result.text.endswith("so you cannot call them: many__huge.")
    assert result.notes == ["There is no room for these tools within tools.description_tokens: many__huge."]


@pytest.mark.parametrize("arguments", [{"query": "issue"}, {}, {"query": 7}])
async def test_without_memory_shared_words_decide(arguments: dict[str, object]) -> None:
    class Down(ListMemory):
        async def compare(self, *_: object) -> Comparison:
            raise MemoryUnavailable("it is gone")

    search = ToolSearch(Down(), 400)
    result = await search.offered([QUERY], [*MANY, ISSUES])[1].call(arguments)
    assert len(json.loads(result.text)) == MAX_FOUND
