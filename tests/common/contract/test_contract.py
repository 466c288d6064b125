"""Answers of other releases of the memory server, which a client reads with this one's types.

Covers all modules of `ragcommon.contract`: `code`, `documents`, `errors`, `files`, `history`, `maintenance`,
`search`. `earlier_answers.json` was recorded from a server that did not know some fields yet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragchat.memory.answers import TOOLS_BY_TOOLSET
from ragchat.memory.client import REPEATABLE
from ragcommon.contract import documents, files, history, maintenance
from ragcommon.contract.code import TracePage
from ragcommon.contract.errors import DOCUMENT_NOT_FOUND, FATAL
from ragcommon.contract.search import Comparison, Hit, QueryResult, format_uri, is_code
from ragmemory import errors
from ragmemory.mcp.toolsets import make_tools

ANSWERS: dict[str, dict[str, Any]] = msgspec.json.decode(
    Path(__file__).with_name("earlier_answers.json").read_bytes()
)
TYPES: dict[str, type[Struct]] = {
    "Inject": documents.Injected,
    "Query": QueryResult,
    "compare_texts": Comparison,
    "list_documents": documents.DocumentPage,
    "list_folders": documents.FolderPage,
    "get_document": documents.DocumentPart,
    "delete_document": documents.Forgotten,
    "list_journal": history.JournalPage,
    "list_versions": history.Versions,
    "diff_versions": history.DifferencePart,
    "restore_version": history.Restored,
    "undo_writes": history.Undone,
    "start_ingestion": files.Ingestion,
    "get_ingestion_status": files.IngestionStatus,
    "list_ingestions": files.IngestionList,
    "cancel_ingestion": files.Ingestion,
    "sync_sources": files.Ingestion,
    "add_sources": files.AddedSources,
    "list_sources": files.SourcePage,
    "remove_source": files.RemovedSource,
    "trace_symbol": TracePage,
    "get_memory_stats": maintenance.Stats,
    "discard_embeddings": maintenance.Stats,
    "verify_memory": maintenance.Verified,
    "repair_memory": maintenance.Repaired,
    "backup_memory": maintenance.Backup,
    "reembed_memory": maintenance.Reembedded,
    "export_documents": maintenance.ExportPage,
    "import_documents": maintenance.Imported,
}


# Fields whose values are mappings, not structs.
MAPPINGS = frozenset({"metadata", "weights", "corrections", "writes", "files"})


def with_unknown_fields(value: Any) -> Any:
    """The value as a later release may send it: each object with one more field."""
    if isinstance(value, list):
        return [with_unknown_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    later = {key: item if key in MAPPINGS else with_unknown_fields(item) for key, item in value.items()}
    return {"added_later": [1], **later}


def holds(read: Any, answer: Any) -> bool:
    """Whether what was read holds all that was answered."""
    if isinstance(answer, dict):
        return all(holds(read.get(key), item) for key, item in answer.items())
    if isinstance(answer, list):
        return len(read) == len(answer) and all(map(holds, read, answer))
    return bool(read == answer)


def test_every_recorded_answer_has_its_type() -> None:
    assert ANSWERS.keys() == TYPES.keys()


@pytest.mark.parametrize("tool", TYPES)
def test_an_answer_of_an_earlier_release_is_read_whole(tool: str) -> None:
    assert holds(msgspec.to_builtins(msgspec.convert(ANSWERS[tool], TYPES[tool])), ANSWERS[tool])


def test_what_an_earlier_release_did_not_send_has_its_default() -> None:
    hit = msgspec.convert(ANSWERS["Query"], QueryResult).hits[0]
    assert (hit.written_by, hit.headings, hit.rerank_score) == (None, [], UNSET)
    assert msgspec.convert(ANSWERS["compare_texts"], Comparison).matches is UNSET
    assert msgspec.convert(ANSWERS["restore_version"], history.Restored).next_sync == ""
    assert msgspec.convert(ANSWERS["get_document"], documents.DocumentPart).places == []


@pytest.mark.parametrize("tool", TYPES)
def test_fields_that_a_later_release_adds_are_ignored(tool: str) -> None:
    later = with_unknown_fields(ANSWERS[tool])
    assert msgspec.convert(later, TYPES[tool]) == msgspec.convert(ANSWERS[tool], TYPES[tool])


def test_every_code_that_the_chat_acts_on_is_one_of_an_error_of_the_memory() -> None:
    kinds = (kind for kind in vars(errors).values() if isinstance(kind, type))
    codes = {kind.code for kind in kinds if issubclass(kind, errors.RagMemoryError)}
    assert {*FATAL, DOCUMENT_NOT_FOUND} <= codes


async def no_memory() -> NoReturn:
    raise AssertionError


@pytest.mark.parametrize("toolset", TOOLS_BY_TOOLSET)
def test_the_toolset_that_the_chat_names_for_a_tool_has_it(toolset: str) -> None:
    assert TOOLS_BY_TOOLSET[toolset] <= {tool.name for tool in make_tools(no_memory, [toolset])}


def test_all_the_chat_reads_is_asked_for_again_when_the_server_died_over_it() -> None:
    called: set[str] = set().union(*TOOLS_BY_TOOLSET.values())
    tools = [tool.info for tool in make_tools(no_memory, list(TOOLS_BY_TOOLSET)) if tool.name in called]
    assert {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint} <= REPEATABLE


@pytest.mark.parametrize(
    ("name", "is_code", "is_test"),
    [
        ("src/store.py", True, False),
        ("tests/store.py", True, True),
        ("src/store_test.go", True, True),
        ("src/store.spec.ts", True, True),
        ("src/contest.py", True, False),
        ("test_plan.md", False, False),
        ("Dockerfile", True, False),
        ("Dockerfile.dev", True, False),
        ("Makefile", True, False),
        ("CMakeLists.txt", True, False),
        ("api.proto", True, False),
        ("index.mjs", True, False),
        ("notes.txt", False, False),
        ("my makefile notes.md", False, False),
    ],
)
def test_code_and_its_tests_are_known_by_their_names(name: str, is_code: bool, is_test: bool) -> None:
    found = Hit(1, 0.9, 1, "d", f"file:///src/app/{name}", name, "", 1, 1, "x", metadata={}, written_by="")
    assert (found.is_code, found.is_test) == (is_code, is_test)


def test_a_plain_text_is_code_by_the_name_of_its_file() -> None:
    plain, converted = {"media_type": "text/plain"}, {"media_type": "text/markdown"}
    assert is_code("file:///src/Dockerfile", plain)
    assert is_code("file:///src/pool.go", {})
    assert all(
        is_code(f"file:///app.log{rotated}", plain) for rotated in ("", ".1", "-20260131", ".2026-01-31")
    )
    assert is_code("file:///src/Dockerfile.dev", plain)
    assert not is_code("file:///src/README", plain)
    assert not is_code("file:///src/pool.go", converted)
    assert format_uri("file:///log.json.gz", plain) == ""


def test_a_line_of_code_is_in_the_definition_that_it_is_part_of() -> None:
    symbols = [(1, ""), (3, "a"), (6, "b")]
    hit = Hit(1, 0.5, 1, "a", "file:///a.py", "a.py", "a, b", 1, 9, "", {}, headings=symbols)
    assert [hit.heading_at(line) for line in (1, 3, 5, 9)] == ["", "a", "a", "b"]
    settings = replace(hit, uri="file:///a.ini", heading="Network", headings=[(3, "client")])
    assert [settings.heading_at(line) for line in (1, 3)] == ["Network", "Network > client"]
    ended = replace(settings, headings=[(3, "client"), (6, "")])
    assert [ended.heading_at(line) for line in (3, 6)] == ["Network > client", "Network"]
