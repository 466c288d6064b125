"""A sign on stderr that something is being waited for; silent where it would only be noise."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ragchat.sanitize import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

# What takes less is over before the eye has found it.
PATIENCE_SECONDS = 0.25


class Spinner:
    """Shows the last `wait` after a moment of patience, until `stop`."""

    def __init__(self, console: Console, *, animated: bool) -> None:
        self._console = console
        self._animated = animated and console.is_terminal
        self._timer: asyncio.TimerHandle | None = None
        self._status: Status | None = None

    def wait(self, what: str) -> None:
        self.stop()
        if self._animated:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._start, one_line(what))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _start(self, what: str) -> None:
        from rich.status import Status
        from rich.text import Text

        self._timer = None
        self._status = Status(Text(what, "notice"), console=self._console, spinner="dots")
        self._status.start()
