"""Where the memory's words become MCP's: who is asking, and what went wrong."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from ragconfig.settings import SettingsError
from ragmcp.errors import InvalidParams, ToolError
from ragmemory.limits import LONGEST_CLIENT
from ragmemory.types import Origin

if TYPE_CHECKING:
    from ragmcp.server.call import Call
    from ragmemory.service import MemoryService

# The memory is loaded behind the first answer, so a tool asks for it when it is called.
Memory: TypeAlias = "Callable[[], Awaitable[MemoryService]]"

# Over stdio a process serves one host for as long as that host runs: the process is the session.
_SESSION = os.urandom(4).hex()


def origin_of(call: Call) -> Origin:
    """Who is asking, for the journal."""
    return Origin(call.client.name[:LONGEST_CLIENT], _SESSION)


@contextmanager
def wire_errors() -> Iterator[None]:
    """The one place that turns the memory's errors into the protocol's."""
    try:
        yield
    except SettingsError as error:
        raise ToolError("BAD_SETTINGS", str(error), hint=error.hint) from error
    except Exception as error:
        # They come with the memory: importing them here would delay the first answer.
        from ragmemory.errors import BadArgument, RagMemoryError

        if isinstance(error, BadArgument):
            raise InvalidParams(f"$.{error.path}", error.reason) from error
        if isinstance(error, RagMemoryError):
            raise ToolError(error.code, str(error), error.details(), error.hint) from error
        raise
