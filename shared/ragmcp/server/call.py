"""A call: one request on its way to its answer, and the ways to talk back meanwhile.

Not the server, which answers it, nor the transport, which brought it: both sides meet here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct

from ragmcp.errors import InvalidRequest, MissingCapability
from ragmcp.peer import Channel
from ragmcp.protocol.eras import Era, Session, Terms
from ragmcp.protocol.jsonrpc import Id
from ragmcp.protocol.schema.base import (
    TASKS_EXTENSION,
    Implementation,
    LogLevel,
    Params,
    ProgressParams,
    Result,
)

if TYPE_CHECKING:
    from ragmcp.protocol.schema.input import InputRequest
    from ragmcp.server.server import Server


# How long clients may keep lists that change with the program only: five minutes spare a host the question
# without hiding an update.
FRESH_MS = 300_000

# Puts requests to the client by their keys and gives its answers, by the same keys.
Asker: TypeAlias = Callable[[Mapping[str, "InputRequest"]], Awaitable[dict[str, Any]]]


class Call:
    """One request, and a way to talk back while it is being answered."""

    __slots__ = ("_terms", "asker", "channel", "go_to_background", "id", "method", "params", "session")

    def __init__(
        self, id: Id, method: str, params: Params, terms: Terms, session: Session, channel: Channel
    ) -> None:
        # None: it has none, as may be in the plain form.
        self.id: Id | None = id
        self.method = method
        self.params = params
        self.session = session
        self.channel = channel
        # Set where the call is, or may become, a task.
        self.asker: Asker | None = None
        self.go_to_background: Callable[[], Awaitable[None]] | None = None
        self._terms = terms

    @property
    def era(self) -> Era:
        """Modern (stateless) or legacy (after a handshake)."""
        return self._terms.era

    @property
    def revision(self) -> str:
        """The protocol revision of this request."""
        return self._terms.revision

    @property
    def client(self) -> Implementation:
        """Who says to be asking."""
        return self._terms.client

    def supports(self, capability: str, part: str = "") -> bool:
        """Whether the client has declared `capability` (`elicitation`, `sampling` …), or that part of it."""
        declared = self._terms.capabilities.get(capability)
        if not part or not isinstance(declared, dict):
            return declared is not None
        # "An empty capabilities object is equivalent to declaring support for `form` mode only."
        return part in declared or (part == "form" and not declared)

    def extension(self, name: str) -> bool:
        """Whether the client has declared the extension `name` (modern only)."""
        if self.era is Era.LEGACY:
            return False
        extensions = self._terms.capabilities.get("extensions")
        return isinstance(extensions, dict) and name in extensions

    def require(self, capability: str, part: str = "") -> None:
        """Raises MissingCapability (legacy: InvalidRequest) unless the client has declared that."""
        if self.supports(capability, part):
            return
        if self.era is Era.LEGACY:
            name = f"{capability}.{part}" if part else capability
            raise InvalidRequest(f"the client does not declare the capability {name}, which this needs")
        raise MissingCapability({capability: {part: {}} if part else {}})

    def require_extension(self, name: str) -> None:
        """Raises MissingCapability unless the client has declared the extension `name`."""
        if not self.extension(name):
            raise MissingCapability({"extensions": {name: {}}})

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification; waits while the client does not read."""
        await self.channel.notify(method, params)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the work is, if the client asked to be told."""
        token = self.params.meta.progress_token
        if token is not UNSET:
            news = ProgressParams(
                progress_token=token,
                progress=done,
                total=UNSET if total is None else total,
                message=UNSET if message is None else message,
            )
            await self.notify("notifications/progress", news)

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants those of this level (`info`, `error` …)."""
        from ragmcp.server.logging import send

        await send(self, level, data, logger)

    async def background(self, *, required: bool = False) -> None:
        """From here on go on as a task, and let the client have its id as the answer (ragmcp.server.tasks).

        For tools made with `background=True`; clients without tasks wait for the result as usual, or are
        refused where it is `required`: raises MissingCapability.
        """
        if required:
            self.require_extension(TASKS_EXTENSION)
        if self.go_to_background is not None:
            await self.go_to_background()

    async def ask(self, **requests: InputRequest) -> dict[str, Any]:
        """Ask the client's user, model or host for something; the answers come under the same names.

        In the modern era the client calls again with the answers, and the handler runs again from its start:
        what stands before an `ask` must bear repetition, and an `except Exception` around it must not catch
        InputNeeded. Raises MissingCapability, InvalidRequest, InvalidParams for unusable answers, and in the
        legacy era what `Channel.request` raises.
        """
        from ragmcp.server.input_required import ask

        if self.asker is None:
            return await ask(self)(requests)
        for request in requests.values():
            self.require(request.capability, request.part)
        return await self.asker(requests)


class InputNeeded(Exception):
    """Not an error: the call can go on once the client has answered `requests`."""

    def __init__(self, requests: Mapping[str, InputRequest], answers: Mapping[str, Raw]) -> None:
        self.requests = requests
        self.answers = answers


class Method(Struct, frozen=True):
    """What a method takes, when it exists, and who answers it."""

    params: msgspec.json.Decoder[Any]
    eras: frozenset[Era]
    answer: Callable[[Server, Call], Awaitable[Result]]
    # The field of ServerCapabilities without which the method does not exist; "" for what every server has.
    capability: str
    # From the modern era on some results say how long they stay fresh, and for whom; None: nothing is said.
    fresh_ms: int | None
    cache_scope: str


def method(
    params: type[Params],
    answer: Callable[[Server, Call], Awaitable[Result]],
    *eras: Era,
    capability: str = "",
    fresh_ms: int | None = None,
    cache_scope: str = "public",
) -> Method:
    """A method of `eras` (none given: of both)."""
    return Method(
        msgspec.json.Decoder(params), frozenset(eras or Era), answer, capability, fresh_ms, cache_scope
    )
