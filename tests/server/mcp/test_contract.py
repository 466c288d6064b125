"""Every tool against its own schemas: over stdio in an older revision, over HTTP in the newest.

A new tool needs a line in `valid_arguments`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from ragmcp.server.tools import Tool
from ragmemory.mcp import toolsets
from ragmemory.mcp.toolsets import make_tools
from ragmemory.service import MemoryService
from tests.support.http_memory import MODERN, http_memory
from tests.support.http_memory import host as http_host
from tests.support.stdio_memory import stdio_memory

URI = "note:tea"
TEXTS = ["# Tea\n\nSteep it for two minutes.", "# Tea\n\nSteep it for three minutes.\n\n## Milk\n\nNone."]
# From this revision on, results have structured content, and until this one arguments that do not fit a
# schema are protocol errors.
LAST_WITH_PROTOCOL_ERRORS = "2025-06-18"
HOSTS = [
    ("stdio", LAST_WITH_PROTOCOL_ERRORS),
    ("HTTP", MODERN),
]
# A value that is not of the type of an argument.
WRONG = {"string": 1, "integer": "x", "number": "x", "boolean": "x", "array": 1, "object": 1}

# Sends a `tools/call` and returns the whole answer.
Caller = Callable[[str, Any], Any]


def valid_arguments(
    folder: Path, chunk_id: int = 1, job_id: str = "", version: int = 2
) -> dict[str, dict[str, Any]]:
    """For each tool arguments with which it succeeds, if memory holds TEXTS as two versions of URI."""
    notes = str(folder / "notes")
    return {
        "Inject": {"text": "Coffee.", "metadata": {"uri": "note:coffee", "tags": ["drinks"]}},
        "Query": {"query": "steep tea", "top_k": 3, "filter": {"uri": "note:*"}, "min_score": 0.1},
        "semantic_search": {"query": "steep tea", "limit": 3},
        "get_source_by_id": {"chunk_id": chunk_id},
        "get_metadata_by_id": {"chunk_id": chunk_id},
        "get_neighbours": {"chunk_id": chunk_id, "before": 1, "after": 1},
        "compare_texts": {"query": "hot drinks", "texts": ["tea", "lawn"], "words": ["drinks"]},
        "list_documents": {"filter": {"uri": "note:*"}, "sort": "updated_at", "descending": True, "limit": 2},
        "list_folders": {},
        "get_document": {"document": URI, "start_line": 1, "end_line": 3, "max_tokens": 100},
        "search_documents": {"query": "steep tea", "n_results": 3},
        "ingest_document": {"title": "Mate", "content": "From a gourd.", "source_url": "note:mate"},
        "delete_document": {"document": URI},
        "list_headings": {"document": URI},
        "map_documents": {"limit": 10},
        "create_document": {"title": "Cups", "content": "Of glass.", "uri": f"note:{os.urandom(4).hex()}"},
        "search_blocks": {"document": URI, "below": "1"},
        "search_content": {"query": "steep minutes"},
        "insert_block": {"document": URI, "version": version, "content": "Drink it.", "block": "1.a"},
        "update_block": {"document": URI, "version": version, "block": "#1", "content": "Black tea"},
        "delete_block": {"document": URI, "version": version, "block": "1.1", "section": True},
        "search_code": {"query": "steep tea", "limit": 3},
        "get_symbol": {"name": "Kettle.boil"},
        "trace_symbol": {"name": "Kettle.boil", "direction": "callers", "depth": 2},
        "build_index": {"paths": [notes]},
        "index_status": {"job_id": job_id},
        "list_journal": {"limit": 2},
        "list_versions": {"document": URI},
        "get_version": {"document": URI},
        "diff_versions": {"document": URI},
        "restore_version": {"document": URI},
        "undo_writes": {},
        "start_ingestion": {"path": notes},
        "get_ingestion_status": {"job_id": job_id, "wait_seconds": 10},
        "cancel_ingestion": {"job_id": job_id},
        "list_ingestions": {"limit": 1},
        "add_sources": {"paths": [notes]},
        "list_sources": {},
        "remove_source": {"source": notes},
        "sync_sources": {"paths": [notes]},
        "get_memory_stats": {},
        "verify_memory": {},
        "repair_memory": {},
        "list_embedders": {},
        "prepare_embedder": {},
        "reembed_memory": {},
        "discard_embeddings": {},
        "backup_memory": {"path": str(folder / "copy.db"), "force": True},
        "export_documents": {},
        "import_documents": {"documents": [{"text": "Cocoa.", "metadata": {"uri": "note:cocoa"}}]},
    }


async def no_memory() -> MemoryService:
    raise AssertionError("only the descriptions of the tools are needed")


TOOLS: dict[str, Tool] = {tool.name: tool for tool in make_tools(no_memory, toolsets._TOOLSETS)}


@pytest.fixture(scope="module", params=HOSTS, ids=lambda host: " ".join(host))
def host(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The transport and the revision of a host."""
    transport, revision = request.param
    return transport, revision


@pytest.fixture(scope="module")
def revision(host: tuple[str, str]) -> str:
    return host[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, host: tuple[str, str]) -> Path:
    folder = tmp_path_factory.mktemp("-".join(host))
    (folder / "notes").mkdir()
    (folder / "notes" / "cup.md").write_text("# Cups\n\nOf porcelain.", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def call(folder: Path, host: tuple[str, str]) -> Iterator[Caller]:
    words = ["--toolsets", ",".join(toolsets._TOOLSETS), f"--root={folder}"]
    transport, revision = host
    if transport == "stdio":
        with stdio_memory(folder, *words, revision=revision) as speaker:
            yield lambda tool, arguments: speaker.request("tools/call", name=tool, arguments=arguments)
    else:
        with http_memory(folder, *words) as server, http_host(server.url, revision) as http:
            http.begin()
            yield lambda tool, arguments: http.request("tools/call", {"name": tool, "arguments": arguments})


@pytest.fixture(scope="module")
def prepared(call: Caller) -> dict[str, dict[str, Any]]:  # noqa: ARG001 (each host has its own)
    """The arguments that `arguments` has prepared; empty once a tool has changed the memory."""
    return {}


@pytest.fixture(scope="module")
def job(call: Caller, folder: Path) -> str:
    """The id of an ingestion."""
    answer = call("start_ingestion", {"path": str(folder / "notes")})
    return str(answer["result"]["structuredContent"]["job_id"])


@pytest.fixture
def arguments(
    name: str, call: Caller, folder: Path, job: str, prepared: dict[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The valid arguments of a tool for a memory with two versions of a document and a source."""

    def result(tool: str, **arguments: Any) -> Any:
        return call(tool, arguments)["result"]["structuredContent"]

    if not prepared:
        for text in TEXTS:
            result("Inject", text=text, metadata={"uri": URI})
        [hit] = result("Query", query="tea", filter={"uri": URI}, top_k=1)["hits"]
        result("add_sources", paths=[str(folder / "notes")])
        version = result("list_versions", document=URI)["versions"][0]["number"]
        prepared |= valid_arguments(folder, hit["chunk_id"], job, version)
    yield prepared[name]
    if not msgspec.to_builtins(TOOLS[name].info)["annotations"]["readOnlyHint"]:
        prepared.clear()


def test_there_are_valid_arguments_for_every_tool(tmp_path: Path) -> None:
    assert valid_arguments(tmp_path).keys() == TOOLS.keys()


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_describes_itself_completely(name: str) -> None:
    info = msgspec.to_builtins(TOOLS[name].info)
    assert info["description"].endswith(".")
    hints = info["annotations"]
    assert hints.keys() == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert not (hints["readOnlyHint"] and hints["destructiveHint"])
    for schema in (info["inputSchema"], info["outputSchema"]):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"


@pytest.mark.parametrize("name", TOOLS)
def test_a_result_has_the_form_that_the_tool_promises(
    name: str, call: Caller, arguments: dict[str, Any]
) -> None:
    Draft202012Validator(TOOLS[name].info.input_schema).validate(arguments)
    result = call(name, arguments)["result"]
    assert not result.get("isError"), result
    assert result["content"][0]["text"]
    Draft202012Validator(msgspec.to_builtins(TOOLS[name].info.output_schema)).validate(
        result["structuredContent"]
    )


@pytest.mark.parametrize("name", TOOLS)
def test_wrong_arguments_are_an_error_that_names_the_field(name: str, call: Caller, revision: str) -> None:
    schema = TOOLS[name].info.input_schema
    wrong: list[tuple[dict[str, Any], str]] = [({"no_such_argument": 1}, "no_such_argument")]
    wrong += [({field: WRONG[kind["type"]]}, f"$.{field}") for field, kind in schema["properties"].items()]
    wrong += [({}, f"$.{schema['required'][0]}")] if schema.get("required") else []
    for arguments, path in wrong:
        answer = call(name, arguments)
        if revision > LAST_WITH_PROTOCOL_ERRORS:
            result = answer["result"]
            assert result["isError"]
            message, data = result["content"][0]["text"], result["structuredContent"]
        else:
            error = answer["error"]
            assert error["code"] == -32602
            message, data = error["message"], error["data"]
        assert path in message
        assert (data["errorCode"], data["requestId"]) == ("INVALID_PARAMS", answer["id"])
        assert data["details"]["path"]


def test_an_unknown_tool_and_a_malformed_call_are_protocol_errors(call: Caller) -> None:
    for tool, arguments, code in (("no_tool", {}, "TOOL_NOT_FOUND"), ("Query", [], "INVALID_PARAMS")):
        error = call(tool, arguments)["error"]
        assert (error["code"], error["data"]["errorCode"]) == (-32602, code)
