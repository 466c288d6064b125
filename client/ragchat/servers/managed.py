"""The base of every server, memory included: its name, state and log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ragchat.log import LOG_TAIL_BYTES

if TYPE_CHECKING:
    from ragchat.errors import RagChatError
    from ragmcp.errors import RagMcpError
    from ragmcp.protocol.schema.tools import ToolInfo


class ServerState(StrEnum):
    """The state of a server, as `/mcp` shows it."""

    DISABLED = "disabled"
    UNASKED = "waits for your consent"
    STARTING = "starting"
    READY = "ready"
    LOGIN = "wants you to log in"
    FAILED = "failed"


class ManagedServer(ABC):
    """`shown` is its command or address on one line; `log` the file that it writes to."""

    def __init__(self, name: str, shown: str, log: Path) -> None:
        self.name = name
        self.shown = shown
        self.log = log

    @property
    @abstractmethod
    def state(self) -> ServerState: ...

    @property
    @abstractmethod
    def failure(self) -> RagChatError | RagMcpError | None:
        """Why it last failed or ended, until it is ready again."""

    @abstractmethod
    async def wait_started(self) -> None:
        """Return once its start has succeeded or failed."""

    @abstractmethod
    async def known_tools(self) -> list[ToolInfo]:
        """The tools that it listed last; none if it cannot be started. Raises nothing."""

    def last_log_lines(self, count: int) -> str:
        """The end of its log."""
        with suppress(OSError), self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_TAIL_BYTES))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
        return ""
