"""What a client does for its servers: it asks its user or model, lists its roots, takes log messages.

The handlers that are set are declared as the client's capabilities. They answer both a legacy server's
requests and the `inputRequests` of a modern one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ragmcp.errors import MethodNotFound
from ragmcp.protocol.decoding import decode
from ragmcp.protocol.schema.base import Wire
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Root, RootsResult, Sample, SamplingResult
from ragmcp.protocol.schema.logging import LogMessage


class Handlers(Struct, frozen=True, kw_only=True):
    """Each may be None, except `on_stray`. Those of the first three that are set are declared to servers.

    `elicit` shows the user a form or a page, `sample` asks a model, `list_roots` names the folders that
    servers may work in; they raise InputDeclined to refuse. `on_log` gets the log messages of servers.
    """

    elicit: Callable[[Elicit], Awaitable[ElicitResult]] | None = None
    sample: Callable[[Sample], Awaitable[SamplingResult]] | None = None
    list_roots: Callable[[], Awaitable[Sequence[Root]]] | None = None
    on_log: Callable[[LogMessage], None] | None = None
    # The user is done with the page of the elicitation that has this id.
    on_visited: Callable[[str], None] | None = None
    # The server printed a line that is no message, which begins like this.
    on_stray: Callable[[str], None] = lambda _: None

    def capabilities(self) -> dict[str, Any]:
        """The capabilities that the client declares."""
        declared: dict[str, Any] = {}
        if self.elicit is not None:
            declared["elicitation"] = {"form": {}, "url": {}}
        if self.sample is not None:
            declared["sampling"] = {}
        if self.list_roots is not None:
            declared["roots"] = {}
        return declared

    async def answer(self, method: str, params: Raw) -> Wire:
        """Answer a server's request. Raises MethodNotFound if no handler is set for it, and InvalidParams."""
        if method == Elicit.method and self.elicit is not None:
            return await self.elicit(decode(msgspec.json.Decoder(Elicit), params))
        if method == Sample.method and self.sample is not None:
            return await self.sample(decode(msgspec.json.Decoder(Sample), params))
        if method == "roots/list" and self.list_roots is not None:
            return RootsResult(roots=list(await self.list_roots()))
        raise MethodNotFound(method)


NO_HANDLERS = Handlers()
