"""Decodes the responses of the memory server, and maps its errors to ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from ragchat.errors import DocumentUnknown, MemoryRefused, MemoryTimedOut, MemoryUnavailable
from ragcommon.contract.errors import DOCUMENT_NOT_FOUND
from ragcommon.contract.search import Hit
from ragcommon.errors import DECODE_ERRORS
from ragmcp.errors import (
    ConnectionClosed,
    LocalProtocolError,
    RagMcpError,
    RequestTimedOut,
    ServerNotStarted,
    WireError,
)
from ragmcp.http.errors import HttpRefused
from ragmcp.protocol.schema.content import EmbeddedResource, ResourceContents, TextContent
from ragmcp.protocol.schema.tools import ToolCallResult

if TYPE_CHECKING:
    from ragmcp.protocol.schema.prompts import GetPromptResult

T = TypeVar("T")

UNAUTHORIZED, TOO_LARGE = 401, 413
TOKEN_HINT = "Its token is taken from RAGMEMORY_TOKEN, or the file that memory_server.token_file names."
READ_ONLY_HINT = "Its setting memory.read_only (see `ragchat config show`), or --read-only, makes it so."
RIGHT_HINT = "Use one with that right, in RAGMEMORY_TOKEN or the file that memory_server.token_file names."
# This program names only arguments that the tools of its own release take.
OLDER_HINT = "That server is older than this program: update ragchat where it runs."
UNKNOWN_ARGUMENT = ": unknown field."
# A shared server may offer fewer toolsets than our own process, which has those of all tools that we call.
TOOLS_BY_TOOLSET = {
    "memory": {"Query", "Inject"},
    "search": {"compare_texts"},
    "documents": {"list_documents", "list_folders", "get_document", "delete_document", "map_documents"},
    "history": {"list_journal", "list_versions", "diff_versions", "restore_version", "undo_writes"},
    "ingestion": {
        *("start_ingestion", "get_ingestion_status", "cancel_ingestion", "list_ingestions"),
        *("add_sources", "list_sources", "remove_source", "sync_sources"),
    },
    "code": {"trace_symbol"},
    "maintenance": {
        *("get_memory_stats", "verify_memory", "repair_memory", "list_embedders", "prepare_embedder"),
        *("reembed_memory", "discard_embeddings", "backup_memory", "export_documents", "import_documents"),
    },
}


class FailureDetails(Struct, frozen=True):
    hint: str = ""


class ToolFailure(Struct, frozen=True, rename="camel"):
    """The structured content of a failed tool call."""

    error_code: str = "MEMORY_ERROR"
    details: FailureDetails = FailureDetails()


class _Passages(Struct, frozen=True):
    hits: list[dict[str, Any]] = []


def decoded(tool: str, result: ToolCallResult, type: type[T]) -> T:
    """The structured content of a tool's result."""
    with _usable(tool):
        return result.structured(type)


def passages(tool: str, result: ToolCallResult) -> list[Hit]:
    """The hits of a tool; none for a tool that does not search."""
    with _usable(tool):
        hits = result.structured(_Passages).hits
        # Only `Query` sends the metadata of the documents; `search_code` sends `symbol` instead of headings.
        return [
            msgspec.convert({"metadata": {}, "title": "", "heading": hit.get("symbol", "")} | hit, Hit)
            for hit in hits
        ]


def prompt_parts(filled: GetPromptResult) -> tuple[str, list[ResourceContents]]:
    """The text of a prompt, and its embedded resources."""
    contents = [message.content for message in filled.messages]
    text = "\n\n".join(content.text for content in contents if isinstance(content, TextContent))
    return text, [content.resource for content in contents if isinstance(content, EmbeddedResource)]


@contextmanager
def _usable(tool: str) -> Iterator[None]:
    try:
        yield
    except DECODE_ERRORS as error:
        raise MemoryUnavailable(f"its answer to {tool} is not usable ({error})") from None


@contextmanager
def mapped_errors(tool: str) -> Iterator[None]:
    """Map the errors of MCP to ours."""
    try:
        yield
    except WireError as error:
        if error.error_code == "TOOL_NOT_FOUND":
            raise _not_offered(tool, error) from error
        raise MemoryRefused(error.error_code or str(error.code), str(error), _hint(str(error))) from error
    except LocalProtocolError as error:
        raise MemoryRefused(error.code, str(error), error.hint) from error
    except RequestTimedOut as error:
        raise MemoryTimedOut(tool, error.seconds) from error
    except (ServerNotStarted, ConnectionClosed) as error:
        raise MemoryUnavailable(error.reason or str(error)) from error
    except HttpRefused as error:
        if error.status == TOO_LARGE:
            raise MemoryRefused(error.code, str(error), error.hint) from error
        if error.error_code == "INSUFFICIENT_SCOPE":
            raise MemoryRefused(error.error_code, f"{error.reason}.", RIGHT_HINT) from error
        unavailable = MemoryUnavailable(str(error))
        unavailable.hint = TOKEN_HINT if error.status == UNAUTHORIZED else error.hint
        raise unavailable from error
    except RagMcpError as error:
        raise MemoryUnavailable(str(error)) from error


def _not_offered(tool: str, error: WireError) -> MemoryRefused:
    """The error for a tool that a server lacks: it is read-only, or has not its toolset."""
    toolset, tools = next((one for one in TOOLS_BY_TOOLSET.items() if tool in one[1]), ("", set[str]()))
    offered = {*error.data.get("details", {}).get("available", ())}
    # Without Inject a server offers no writing tool, but of each of its toolsets those that read.
    if "Inject" not in offered and not tools.isdisjoint(offered):
        return MemoryRefused("MEMORY_READ_ONLY", "Memory is read-only.", READ_ONLY_HINT)
    hint = f'The setting memory.toolsets of that server must have "{toolset}".' if toolset else ""
    return MemoryRefused(error.error_code, str(error), hint)


def refusal(result: ToolCallResult) -> MemoryRefused:
    """The error of a failed tool call. Its message is the first text of the content."""
    try:
        failure = result.structured(ToolFailure)
    except DECODE_ERRORS:
        failure = ToolFailure()
    message = next((item.text for item in result.content if isinstance(item, TextContent)), "")
    kind = DocumentUnknown if failure.error_code == DOCUMENT_NOT_FOUND else MemoryRefused
    return kind(failure.error_code, message, _hint(message) or failure.details.hint)


def _hint(message: str) -> str:
    """What helps where a server does not know an argument of ours; else ""."""
    return OLDER_HINT if message.endswith(UNKNOWN_ARGUMENT) else ""
