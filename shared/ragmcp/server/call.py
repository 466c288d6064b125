"""A call: one request while it is handled, and the ways to reach its client meanwhile.

Transports make calls with `Server.open_call`; handlers get them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct

from ragmcp.errors import InvalidRequest, MissingCapability
from ragmcp.peer import Channel
from ragmcp.protocol.eras import ConnectionState, Era, Terms
from ragmcp.protocol.jsonrpc import Id
from ragmcp.protocol.schema import base

if TYPE_CHECKING:
    from ragmcp.protocol.schema.input import InputRequest

P = TypeVar("P", bound=base.Params)

# How long clients may cache lists that change only with the program. Five minutes save requests and do not
# hide an update for long.
FRESH_MS = 300_000

# Sends InputRequests to the client by their keys and returns its answers by the same keys. `help(Call)`
# evaluates the types of its fields, for which those of the requests are not imported.
Asker: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]

# The work of a call that may become a task.
Work: TypeAlias = Callable[[], Awaitable[base.Result]]


class InputNeeded(Exception):
    """Not an error: the call continues once the client has answered `requests`."""

    def __init__(self, params: base.RetryableParams, requests: Mapping[str, InputRequest]) -> None:
        self.params = params
        self.requests = requests


class Call(Struct):
    """One request, and the ways to reach its client while it is handled."""

    id: Id | None
    """None if the request has no id, which only the plain form allows."""
    method: str
    params: base.Params
    terms: Terms
    session: ConnectionState
    channel: Channel
    asker: Asker | None = None
    """Set for tasks and legacy calls; the client repeats other calls with the answers."""
    go_to_background: Callable[[], Awaitable[None]] | None = None
    """Set if the call may become a task."""
    is_cancelled: bool = False
    """Whether the client has cancelled the task; a task also ends, to be continued, with its server."""

    def supports(self, capability: str, part: str = "") -> bool:
        """Whether the client has declared `capability` (`elicitation`, `sampling` …) or a part of it."""
        declared = self.terms.capabilities.get(capability)
        if not part or not isinstance(declared, dict):
            return declared is not None
        # "An empty capabilities object is equivalent to declaring support for `form` mode only."
        return part in declared or (part == "form" and not declared)

    def extension(self, name: str) -> bool:
        """Whether the client has declared the extension `name` (modern only)."""
        if self.terms.era is Era.LEGACY:
            return False
        extensions = self.terms.capabilities.get("extensions")
        return isinstance(extensions, dict) and name in extensions

    def require(self, capability: str, part: str = "") -> None:
        """Raises MissingCapability (legacy: InvalidRequest) unless the client has declared the capability."""
        if self.supports(capability, part):
            return
        if self.terms.era is Era.LEGACY:
            name = f"{capability}.{part}" if part else capability
            raise InvalidRequest(f"the client does not declare the capability {name}, which this needs")
        raise MissingCapability({capability: {part: {}} if part else {}})

    def require_extension(self, name: str) -> None:
        """Raises MissingCapability unless the client has declared the extension `name`."""
        if not self.extension(name):
            raise MissingCapability({"extensions": {name: {}}})

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client asked for it."""
        token = self.params.meta.progress_token
        if token is not UNSET:
            params = base.ProgressParams(progress_token=token, progress=done, total=total, message=message)
            await self.channel.notify("notifications/progress", params)

    async def log(self, level: base.LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it asked for messages of this level (`info`, `error` …)."""
        from ragmcp.protocol.schema.logging import LEVELS, LogMessage

        # "The server MUST NOT emit notifications/message for a request that does not include this field."
        least = self.session.log_level if self.terms.era is Era.LEGACY else self.params.meta.log_level
        if least and LEVELS.index(level) >= LEVELS.index(least):
            message = LogMessage(level=level, data=data, logger=UNSET if logger is None else logger)
            await self.channel.notify("notifications/message", message)

    async def background(self) -> None:
        """Become a task: the client gets the task's id as its answer now, and the result later.

        For tools made with `background=True`. Clients without tasks wait for the result as usual.
        """
        if self.go_to_background is not None:
            await self.go_to_background()

    async def ask(self, **requests: InputRequest) -> dict[str, Any]:
        """Ask the client's user, model or host for something; the answers come under the same names.

        In the modern era the client repeats the call with the answers, and the handler runs again from its
        start: code before an `ask` must be safe to repeat, and an `except Exception` around it must not catch
        InputNeeded. Raises MissingCapability, InvalidRequest, InvalidParams for unusable answers, and in the
        legacy era what `Channel.request` raises.
        """
        if self.asker is not None:
            self._require_all(requests)
            return await self.asker(requests)
        assert isinstance(self.params, base.RetryableParams), "only tools, prompts and resources may ask"
        given = self.params.input_responses
        if missing := {key: request for key, request in requests.items() if key not in given}:
            self._require_all(missing)
            raise InputNeeded(self.params, missing)
        from ragmcp.server.input_required import decode_response

        return {key: decode_response(key, request, given[key]) for key, request in requests.items()}

    def _require_all(self, requests: Mapping[str, InputRequest]) -> None:
        for request in requests.values():
            self.require(request.capability, request.part)


class Method(Struct, frozen=True):
    """A method that a server has: the type of its parameters, and its handler."""

    params: msgspec.json.Decoder[Any]
    handler: Callable[[Call, Any], Awaitable[base.Result]]
    eras: frozenset[Era]
    # In the modern era some results say how long they stay fresh, and for whom; None: neither is sent.
    fresh_ms: int | None
    cache_scope: str


# The methods of a feature by their names, the handlers bound to its data.
Methods: TypeAlias = dict[str, Method]


def method(
    params: type[P],
    handler: Callable[[Call, P], Awaitable[base.Result]],
    *eras: Era,
    fresh_ms: int | None = None,
    cache_scope: str = "public",
) -> Method:
    """A method of `eras` (default: both)."""
    return Method(msgspec.json.Decoder(params), handler, frozenset(eras or Era), fresh_ms, cache_scope)
