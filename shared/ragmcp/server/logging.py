"""Log messages for the client, not the server's own log. Source: server/utilities/logging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ragmcp.protocol.eras import Era
from ragmcp.protocol.schema.base import EmptyResult, LogLevel, Result
from ragmcp.protocol.schema.logging import LEVELS, LogMessage, SetLevelParams
from ragmcp.server.call import Call, Method, method

if TYPE_CHECKING:
    from ragmcp.server.server import Server

# What a legacy client hears that has set no level: the server "MAY decide".
DEFAULT_LEVEL: LogLevel = "info"


async def send(call: Call, level: LogLevel, data: Any, logger: str | None) -> None:
    """Send it to the client if it wants it."""
    least = _least(call)
    if least is not None and LEVELS.index(level) >= LEVELS.index(least):
        message = LogMessage(level=level, data=data, logger=UNSET if logger is None else logger)
        await call.notify("notifications/message", message)


def _least(call: Call) -> LogLevel | None:
    if call.era is Era.LEGACY:
        return call.session.log_level or DEFAULT_LEVEL
    # "The server MUST NOT emit notifications/message for a request that does not include this field."
    return call.params.meta.log_level or None


async def _set_level(_: Server, call: Call) -> Result:
    assert isinstance(call.params, SetLevelParams)
    call.session.log_level = call.params.level
    return EmptyResult()


METHODS: dict[str, Method] = {
    "logging/setLevel": method(SetLevelParams, _set_level, Era.LEGACY, capability="logging"),
}
