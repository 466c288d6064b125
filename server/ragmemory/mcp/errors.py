"""The mapping between MCP and the memory: the origin of a call, and errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from ragcommon.contract.history import Origin
from ragcommon.errors import of_the_system
from ragconfig.errors import SettingsError
from ragmcp.errors import InvalidArguments, ToolError
from ragmemory.limits import MAX_CLIENT_LENGTH

if TYPE_CHECKING:
    from ragmcp.server.call import Call
    from ragmemory.service import MemoryService

# The memory is loaded after the first response, so tools get it when they are called.
Memory: TypeAlias = "Callable[[], Awaitable[MemoryService]]"


def origin_of(call: Call, group: str = "") -> Origin:
    """The client of a call, for the journal."""
    return Origin(call.terms.client.name[:MAX_CLIENT_LENGTH], call.session.id, group, call.session.host)


@contextmanager
def wire_errors() -> Iterator[None]:
    """The one place that maps the memory's errors to MCP's."""
    try:
        yield
    except SettingsError as error:
        raise ToolError("BAD_SETTINGS", str(error), hint=error.hint) from error
    except Exception as error:
        # Imported with the memory: at the top it would delay the first response.
        from ragmemory.errors import BadArgument, RagMemoryError

        if isinstance(error, BadArgument):
            raise InvalidArguments(f"$.{error.path}", error.reason) from error
        found = error if isinstance(error, RagMemoryError) else of_the_system(error)
        if found is None:
            raise
        raise ToolError(found.code, str(found), found.details(), found.hint) from error
