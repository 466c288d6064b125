"""Decodes the responses of the memory server, and maps its errors to ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ragchat.errors import MemoryRefused, MemoryTimedOut, MemoryUnavailable
from ragcommon.contract.search import Hit
from ragmcp.errors import (
    ConnectionClosed,
    LocalProtocolError,
    RagMcpError,
    RequestTimedOut,
    ServerNotStarted,
    WireError,
)
from ragmcp.http.errors import HttpRefused
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.schema.content import TextContent
from ragmcp.protocol.schema.tools import ToolCallResult

T = TypeVar("T")

UNAUTHORIZED, TOO_LARGE = 401, 413
TOKEN_HINT = "Its token is taken from RAGMEMORY_TOKEN, or the file that memory_server.token_file names."
# A shared server may offer fewer toolsets than our own process.
TOOLSETS_HINT = 'The settings of that server must offer it: memory.toolsets = ["memory", "documents", …].'


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
        hint = TOOLSETS_HINT if error.error_code == "TOOL_NOT_FOUND" else ""
        raise MemoryRefused(error.error_code or str(error.code), str(error), hint) from error
    except LocalProtocolError as error:
        raise MemoryRefused(error.code, str(error), error.hint) from error
    except RequestTimedOut as error:
        raise MemoryTimedOut(tool, error.seconds) from error
    except (ServerNotStarted, ConnectionClosed) as error:
        raise MemoryUnavailable(error.reason or str(error)) from error
    except HttpRefused as error:
        if error.status == TOO_LARGE:
            raise MemoryRefused(error.code, str(error), error.hint) from error
        unavailable = MemoryUnavailable(str(error))
        unavailable.hint = TOKEN_HINT if error.status == UNAUTHORIZED else error.hint
        raise unavailable from error
    except RagMcpError as error:
        raise MemoryUnavailable(str(error)) from error


def refusal(result: ToolCallResult) -> MemoryRefused:
    """The error of a failed tool call. Its message is the first text of the content."""
    try:
        failure = result.structured(ToolFailure)
    except DECODE_ERRORS:
        failure = ToolFailure()
    message = next((item.text for item in result.content if isinstance(item, TextContent)), "")
    return MemoryRefused(failure.error_code, message, failure.details.hint)
