"""Log messages from a server to its client. Source: server/utilities/logging."""

from __future__ import annotations

from typing import Any, get_args

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.base import LogLevel, Wire

LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)


class LogMessage(Wire, frozen=True, kw_only=True):
    """`notifications/message`."""

    level: LogLevel
    data: Any
    logger: str | UnsetType = UNSET
