"""Where the memory's words become MCP's: who is asking, and what went wrong."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from ragmcp.errors import InvalidParams, ToolError
from ragmcp.settings import SettingsError
from ragmemory.errors import BadArgument, RagMemoryError
from ragmemory.types import Origin

if TYPE_CHECKING:
    from ragmcp.server import Call
    from ragmemory.service import MemoryService

# The memory is loaded behind the first answer, so a tool asks for it when it is called.
Memory: TypeAlias = "Callable[[], Awaitable[MemoryService]]"

# Over stdio a process serves one host for as long as that host runs: the process is the session.
_SESSION = secrets.token_hex(4)


def origin_of(call: Call) -> Origin:
    """Who is asking, for the journal."""
    return Origin(call.client.name, _SESSION)


@contextmanager
def wire_errors() -> Iterator[None]:
    """The one place that turns the memory's errors into the protocol's."""
    try:
        yield
    except BadArgument as error:
        raise InvalidParams(f"$.{error.path}", error.reason) from error
    except SettingsError as error:
        raise ToolError("BAD_SETTINGS", f"{error} {error.hint}".rstrip()) from error
    except RagMemoryError as error:
        raise ToolError(error.code, f"{error} {error.hint}".rstrip(), details=error.details()) from error
