"""A server as the features of a client know it: its era and description, requests, lists from all pages.

Source: basic/versioning, basic/patterns/mrtr, server/utilities/pagination.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ragmcp.client.handlers import Handlers
from ragmcp.errors import RemoteProtocolError, RequestTimedOut, UnreadableAnswer, WireError
from ragmcp.older_revisions import require_legacy
from ragmcp.peer import ClientChannel
from ragmcp.protocol import eras
from ragmcp.protocol.jsonrpc import Id
from ragmcp.protocol.results import complete, decode_answer, or_none, server_info
from ragmcp.protocol.schema import base
from ragmcp.protocol.schema.discovery import DiscoverResult, ServerCapabilities

P = TypeVar("P", bound=base.Page)
R = TypeVar("R", bound=base.Result)
T = TypeVar("T")

# A server that does not answer `server/discover` is a legacy server: some ignore all requests before
# `initialize`.
PROBE_SECONDS = 5.0
# Long enough for a server that loads models first; a server that never answers must not hang its host.
ANSWER_SECONDS = 60.0
# For a client that gives itself no name.
ANONYMOUS = base.Implementation(name="ragmcp", version="0")
# A list with more pages counts as endless.
MAX_PAGES = 10_000
# Rounds of input after which a request is given up.
MAX_ROUNDS = 20


async def negotiate(
    probe: Callable[[], Awaitable[T | None]], handshake: Callable[[], Awaitable[T]], *, known: bool = False
) -> T:
    """What `probe` finds; for a legacy server, where it finds nothing, what `handshake` returns.

    A server `known` to be a legacy one is not probed first. Raises as these do.
    """
    if not known and (found := await probe()):
        return found
    try:
        return await handshake()
    except WireError as error:
        # It is a modern server that started too slowly for the first probe.
        if error.code in eras.MODERN_ERRORS and (found := await probe()):
            return found
        raise


class Core:
    """What the client knows of its server. The features send requests through it; `Client` extends it."""

    channel: ClientChannel
    """To the server; the transport sets it."""

    def __init__(self, identity: base.Implementation, handlers: Handlers) -> None:
        self.server = base.UNKNOWN
        self.revision = eras.LATEST_MODERN
        self.capabilities = ServerCapabilities()
        self.instructions: str | None = None
        self.identity = identity
        self.handlers = handlers
        self.declared = handlers.capabilities()
        self.log_level: base.LogLevel | UnsetType = UNSET if handlers.on_log is None else "info"

    @property
    def modern(self) -> bool:
        """Whether the server is of the stateless era."""
        return self.revision >= eras.LATEST_MODERN

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended; over HTTP: whether the last attempt to connect failed."""
        return self.channel.closed.is_set()

    async def closed(self) -> None:
        """Wait until the connection has ended."""
        await self.channel.closed.wait()

    # The handshake

    async def discover(self) -> bool:
        """Find out whether the server is modern, and its revision. Raises UnsupportedRevision."""
        self.revision = eras.LATEST_MODERN
        answer = await self._probe()
        revision = eras.verdict(answer)
        if revision is None:
            return False
        self.revision = revision
        if isinstance(answer, WireError) and answer.code == eras.UNSUPPORTED_VERSION:
            answer = await self._probe()
        if isinstance(answer, Raw) and (found := complete("server/discover", answer, DiscoverResult)):
            self.server = server_info(found)
            self.capabilities = found.capabilities
            self.instructions = or_none(found.instructions)
        return True

    async def _probe(self) -> Raw | WireError | None:
        try:
            params = base.Params(meta=self.meta())
            return await self.channel.request("server/discover", params, PROBE_SECONDS)
        except WireError as error:
            return error
        except RequestTimedOut:
            return None

    async def initialize(self) -> None:
        """The legacy handshake. Raises UnreadableAnswer for an unknown revision, UnsupportedRevision."""
        await require_legacy("client").initialize(self)

    # Requests

    def meta(self, token: Id | UnsetType = UNSET) -> base.RequestMeta:
        """The `_meta` of a request; `token` for its progress."""
        if self.modern:
            return base.RequestMeta(
                protocol_version=self.revision,
                client_info=self.identity,
                client_capabilities=self.declared,
                log_level=self.log_level,
                progress_token=token,
            )
        return base.NO_META if token is UNSET else base.RequestMeta(progress_token=token)

    async def request(
        self, method: str, params: base.Params, type: type[R], timeout: float | None = ANSWER_SECONDS
    ) -> R:
        """Send a request, whose `params` carry our `meta`, and give the input that the server asks for.

        `timeout` (seconds; None for no limit) is for each round.
        """
        for _ in range(1 + MAX_ROUNDS):
            answer = await self.channel.request(method, params, timeout)
            if (result := complete(method, answer, type)) is not None:
                return result
            params = await self._with_input(method, params, answer)
        raise UnreadableAnswer(method, f"it still requires input after {MAX_ROUNDS} rounds")

    async def _with_input(self, method: str, params: base.Params, answer: Raw) -> base.Params:
        """The parameters of the repeated request. Raises UnreadableAnswer for a forbidden request."""
        if not isinstance(params, base.RetryableParams):
            raise UnreadableAnswer(method, "it requires input, which this method does not allow")
        from ragmcp.protocol.schema.input import InputRequiredResult

        needed = decode_answer(method, answer, InputRequiredResult)
        responses: dict[str, Raw] = {}
        # In sequence: a person answers one form at a time.
        for key, request in needed.input_requests.items():
            try:
                response = await self.handlers.answer(request.method, request.params)
            except RemoteProtocolError as error:
                raise UnreadableAnswer(method, f"its input request is not allowed: {error}") from None
            responses[key] = Raw(msgspec.json.encode(response))
        return msgspec.structs.replace(params, input_responses=responses, request_state=needed.request_state)

    async def list_all(self, method: str, type: type[P], items: Callable[[P], Iterable[T]]) -> list[T]:
        """The `items` of all pages. Raises as `request`."""
        found: list[T] = []
        cursor: str | UnsetType = UNSET
        for _ in range(MAX_PAGES):
            try:
                page = await self.request(method, base.ListParams(meta=self.meta(), cursor=cursor), type)
            except WireError as error:
                error.method = method
                raise
            found += items(page)
            if self.server is base.UNKNOWN:
                self.server = server_info(page)
            cursor = page.next_cursor
            if cursor is UNSET:
                return found
        raise UnreadableAnswer(method, f"its list does not end within {MAX_PAGES:,} pages")
