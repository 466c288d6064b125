"""The modern client over HTTP: stateless, one POST for each request.

Source: basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from msgspec import UNSET, Raw

from ragmcp.errors import RequestTimedOut
from ragmcp.http.client import Http, unreadable
from ragmcp.peer import Notifications, OnSent
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.eras import LATEST_MODERN
from ragmcp.protocol.framing import Line
from ragmcp.protocol.jsonrpc import Failure, Message, Notification, Unreadable
from ragmcp.protocol.schema.base import Params
from ragmcp.protocol.schema.tools import ToolCall, ToolInfo


class ModernHttp:
    """A channel to a modern server. Cancelling a request closes its response, which cancels it there."""

    def __init__(self, http: Http, on_notification: Callable[[Notification], None]) -> None:
        self._http = http
        self._notifications = Notifications(on_notification)
        self._last_id = 0
        self._params: dict[str, tuple[headers.HeaderParam, ...]] = {}

    @property
    def closed(self) -> anyio.Event:
        """Set when the last attempt to connect failed; requests are still possible."""
        return self._http.unreachable

    def admit_tool(self, tool: ToolInfo) -> None:
        """Raises ValueError if the tool cannot be called over HTTP."""
        self._params[tool.name] = headers.header_params(tool.input_schema)

    async def request(
        self, method: str, params: Any, timeout: float | None = None, *, on_sent: OnSent = lambda _: None
    ) -> Raw:
        """As `ClientChannel.request`; also raises ServerUnreachable, HttpRefused, MessageTooLarge."""
        self._last_id = id = self._last_id + 1
        on_sent(id)
        body = jsonrpc.encode_request(id, method, params)

        async def take(_: Line, message: Message) -> None:
            match message:
                case Notification():
                    self._notifications.take(message)
                    await self._notifications.keep_pace()
                case Unreadable():
                    raise unreadable(method, message)

        with anyio.move_on_after(timeout):
            answer = await self._http.ask(method, id, body, self._headers(method, params), take)
            if isinstance(answer, Failure):
                raise answer.error.as_error()
            return answer.result
        raise RequestTimedOut(method, timeout or 0)

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification; the core protocol has none for servers."""
        body = jsonrpc.encode_notification(method, params)
        await self._http.post(method, body, self._headers(method, params))

    def _headers(self, method: str, params: Any) -> dict[str, str]:
        revision = params.meta.protocol_version if isinstance(params, Params) else UNSET
        written = {headers.PROTOCOL_VERSION: revision or LATEST_MODERN, headers.METHOD: method}
        if field := headers.NAME_FIELDS.get(method):
            written[headers.NAME] = headers.encode_value(getattr(params, field))
        if isinstance(params, ToolCall):
            written |= headers.param_headers(self._params.get(params.name, ()), params.arguments)
        return written
