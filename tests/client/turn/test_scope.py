"""A memory of which only some documents are asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragchat.errors import NoDocumentMatches
from ragchat.turn.scope import Scope
from tests.support.memory import memory_in


async def test_searches_of_the_chat_and_of_a_model_are_limited_to_the_scope(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory:
        for name in ("work", "home"):
            await memory.inject(f"The {name} boiler needs 2 bar.", {"uri": f"note:{name}", "tags": [name]})
        scope = Scope(memory)
        assert len((await scope.query("boiler")).hits) == 2
        await scope.narrow("home")
        assert [hit.uri for hit in (await scope.query("boiler")).hits] == ["note:home"]
        assert [hit.uri for hit in (await scope.query("boiler", filter={"uri": "note:work"})).hits] == []
        for arguments in ({}, {"filter": None}, {"filter": {"tags": ["work"]}}):
            result = await scope.call("Query", {"query": "boiler", **arguments})
            assert [hit.uri for hit in result.hits] == ["note:home"]
        assert scope.name == "home"
        with pytest.raises(NoDocumentMatches):
            await scope.narrow("garden")
        assert scope.name == "home"
        await scope.narrow("*")
        assert scope.name == ""
        assert len((await scope.query("boiler")).hits) == 2


async def test_documents_that_are_loaded_later_are_in_the_scope_of_a_notebook(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as memory:
        scope = Scope(memory)
        scope.whole = "/papers"
        await scope.narrow("*")
        await memory.inject("The boiler needs 2 bar.", {"uri": "file:///papers/boiler.md"})
        await memory.inject("The boiler needs 3 bar.", {"uri": "file:///other/boiler.md"})
        assert [hit.uri for hit in (await scope.query("boiler")).hits] == ["file:///papers/boiler.md"]
