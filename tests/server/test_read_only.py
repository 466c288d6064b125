from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from ragmcp.errors import WireError
from tests.support.processes import attempt, called, memory_process, uris

READING = [
    *("Query", "list_documents", "list_folders", "get_document"),
    *("search_documents", "list_headings", "map_documents"),
    *("list_journal", "list_versions", "get_version", "diff_versions"),
    *("get_memory_stats", "verify_memory", "list_embedders", "export_documents"),
]


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [(["--read-only"], {}), ([], {"RAGCHAT_MEMORY_READ_ONLY": "true"})],
    ids=["flag", "setting"],
)
async def test_a_read_only_memory_offers_no_tool_that_writes(
    tmp_path: Path, arguments: list[str], variables: dict[str, str]
) -> None:
    with anyio.fail_after(60):
        async with memory_process(tmp_path) as client:
            await called(client, "Inject", text="Foxes jump.", metadata={"uri": "fox"})
        async with memory_process(tmp_path, *arguments, variables=variables) as client:
            assert [tool.name for tool in await client.list_tools()] == READING
            assert uris(await called(client, "Query", query="foxes")) == ["fox"]
            for tool in ("Inject", "delete_document", "undo_writes", "reembed_memory"):
                with pytest.raises(WireError) as caught:
                    await attempt(client, tool, text="x")
                assert caught.value.error_code == "TOOL_NOT_FOUND"
