"""The toolset `code`. Covers `ragmemory.mcp.toolsets.code`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import msgspec
import pytest

from ragconfig.home import Home
from ragconfig.repository import make_memory
from ragmcp.client.features import Client
from ragmemory.limits import RESULT_BYTES
from tests.support.mcp_process import ENV, spawned
from tests.support.memory import memory_server
from tests.support.processes import attempt, called

FILES = {
    "disk.py": "# Reads a text.\ndef load(name):\n    return name\n",
    "store.py": (
        "from disk import load\n\n\nclass Store:\n    def find_text(self, name):\n        return load(name)\n"
    ),
    "many.py": "".join(f"def caller_{n}():\n    return load({n}, '{'x' * 150}')\n\n\n" for n in range(200)),
    "notes.md": "Notes about find_text.\n",
}
Call = Callable[..., Awaitable[Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
async def client(tmp_path: Path, folder: Path) -> AsyncIterator[Client]:
    async with memory_server(tmp_path, "memory,code", [folder]) as client:
        yield client


@pytest.fixture
async def call(client: Client, folder: Path) -> Call:
    """Calls a tool on the loaded files, and checks its result against the tool's own schema."""
    schemas = {tool.name: msgspec.to_builtins(tool)["outputSchema"] for tool in await client.list_tools()}

    async def checked(tool_name: str, /, **arguments: Any) -> Any:
        result = await called(client, tool_name, **arguments)
        jsonschema.validate(result, schemas[tool_name])
        return result

    job = await checked("build_index", paths=[str(folder)])
    while (await checked("index_status", job_id=job["job_id"]))["jobs"][0]["status"] == "running":
        await anyio.lowlevel.checkpoint()
    return checked


async def test_the_index_is_built_and_its_status_counts_the_languages(call: Call) -> None:
    status = await call("index_status")
    assert status["files"] == {"Python": 3}
    [job] = status["jobs"]
    assert (job["status"], job["added"]) == ("completed", 4)


async def test_build_index_reads_only_below_the_roots(client: Client, tmp_path: Path) -> None:
    refused = await attempt(client, "build_index", paths=[str(tmp_path)])
    assert refused.is_error
    assert refused.structured(dict)["errorCode"] == "PATH_NOT_ALLOWED"


async def test_in_a_repository_with_its_own_memory_the_index_is_built_without_any_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "tea.py").write_text("def brew() -> int:\n    return 75\n", encoding="utf-8")
    memory, _ = make_memory(repository, Home.find({"RAGCHAT_HOME": str(tmp_path / "home")}))
    memory.touch()
    monkeypatch.setitem(ENV, "RAGCHAT_HOME", str(tmp_path / "home"))
    command = [sys.executable, "-m", "ragmemory", "--toolsets", "code"]
    async with spawned(command, cwd=repository, stderr=tmp_path / "log") as client:
        job = await called(client, "build_index")
        while (await called(client, "index_status", job_id=job["job_id"]))["jobs"][0]["status"] == "running":
            await anyio.lowlevel.checkpoint()
        [symbol] = (await called(client, "get_symbol", name="brew"))["symbols"]
        assert symbol["location"].endswith("tea.py:1")


async def test_search_code_cites_path_and_line_and_leaves_out_prose(call: Call, folder: Path) -> None:
    found = await call("search_code", query="findText", limit=1)
    [hit] = found["hits"]
    assert "Store.find_text" in hit["symbol"]
    assert hit["location"] == f"{folder / 'store.py'}:{hit['start_line']}"


async def test_get_symbol_returns_the_source_with_the_comment_above(call: Call, folder: Path) -> None:
    [symbol] = (await call("get_symbol", name="load"))["symbols"]
    assert symbol["text"] == "# Reads a text.\ndef load(name):\n    return name"
    assert symbol["location"] == f"{folder / 'disk.py'}:2"
    assert (symbol["start_line"], symbol["end_line"]) == (1, 3)


async def test_the_source_of_a_long_symbol_is_cut_and_the_answer_says_where(call: Call) -> None:
    lines = ["def long():", *(f"    print({n}, '{'x' * 80}')" for n in range(1_000))]
    await call("Inject", text="\n".join(lines), metadata={"uri": "note:long.py"})
    found = await call("get_symbol", name="long")
    [symbol], [notice] = found["symbols"], found["notices"]
    shown = symbol["text"].splitlines()
    assert shown == lines[: len(shown)]
    assert len(msgspec.json.encode(symbol)) < RESULT_BYTES
    assert notice.endswith(f"returns the rest, from line {len(shown) + 1}.")


async def test_a_long_trace_comes_in_pages(call: Call) -> None:
    steps: list[Any] = []
    cursor = ""
    pages = 0
    while True:
        page = await call("trace_symbol", name="load", direction="callers", cursor=cursor)
        steps += page["steps"]
        pages += 1
        if not (cursor := page.get("next_cursor", "")):
            break
    assert pages > 1
    assert [step["symbol"] for step in steps] == [*(f"caller_{n}" for n in range(200)), "Store.find_text"]
    assert [place["name"] for place in page["definitions"]] == ["load"]


async def test_an_unknown_symbol_is_an_empty_answer_and_a_bad_direction_is_refused(
    call: Call, client: Client
) -> None:
    page = await call("trace_symbol", name="nothing")
    assert (page["definitions"], page["steps"]) == ([], [])
    assert (await attempt(client, "trace_symbol", name="load", direction="sideways")).is_error
    assert (await attempt(client, "trace_symbol", name="::")).is_error
