"""Events of a session that a client may have missed, for servers of both SDKs, which bring no store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any


class Events:
    """All of them, numbered, in memory."""

    def __init__(self, event: Callable[[Any, str], Any]) -> None:
        """`event` is the SDK's EventMessage."""
        self._event = event
        self._stored: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        """Its id."""
        self._stored.append((stream_id, message))
        return str(len(self._stored))

    async def replay_events_after(
        self, last_event_id: str, send_callback: Callable[[Any], Awaitable[None]]
    ) -> str | None:
        """Send again what came on that stream since."""
        last = int(last_event_id)
        stream = self._stored[last - 1][0]
        for number, (other, message) in enumerate(self._stored[last:], last + 1):
            if other == stream and message is not None:
                await send_callback(self._event(message, str(number)))
        return stream
