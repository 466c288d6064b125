"""The server: a table of methods and their handlers. Every transport ends in `await server.handle(call)`.

Each feature returns its methods, with handlers bound to what they need; it knows nothing of the server.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup
from msgspec import UNSET, Raw

from ragmcp.concurrency import background_task, contain_cancellation
from ragmcp.errors import MethodNotFound
from ragmcp.older_revisions import find_legacy, require_legacy
from ragmcp.peer import Channel, Peer
from ragmcp.protocol.connection import MAX_IN_PROGRESS, Connection
from ragmcp.protocol.decoding import DECODE_ERRORS, invalid_params
from ragmcp.protocol.eras import MODERN_REVISIONS, ConnectionState, Era
from ragmcp.protocol.framing import MESSAGE_BYTES
from ragmcp.protocol.jsonrpc import Request
from ragmcp.protocol.schema import base
from ragmcp.protocol.schema.discovery import DiscoverResult, ServerCapabilities
from ragmcp.server.call import FRESH_MS, Call, InputNeeded, Method, Methods, Work, method
from ragmcp.server.tools import Tool, by_name, tool_methods
from ragmcp.streams import Stream
from ragmcp.tracing import enter

if TYPE_CHECKING:
    from ragmcp.protocol.schema.subscriptions import Change
    from ragmcp.server.completion import Completer
    from ragmcp.server.input_required import Rounds
    from ragmcp.server.prompts import Prompt
    from ragmcp.server.resources import Resources
    from ragmcp.server.subscriptions import Broadcast
    from ragmcp.server.tasks import Tasks

log = logging.getLogger(__name__)

CHANGES = {"listChanged": True}


class Server:
    """A server's features, and the answers to calls. Between calls it keeps no state except tasks.

    `tools`, by their names, may change while it serves: `announce(list_changed("tools"))` tells the clients.
    """

    def __init__(
        self,
        name: str,
        version: str = "0",
        tools: Iterable[Tool] = (),
        instructions: str | None = None,
        *,
        resources: Resources | None = None,
        prompts: Iterable[Prompt] | None = None,
        complete: Completer | None = None,
        logs: bool = False,
        withheld: Mapping[str, Callable[[], Exception]] | None = None,
    ) -> None:
        """`prompts` are iterated at the first request for one; `logs`: the tools send log messages.

        `withheld` makes the error of a call for each tool that exists but is not offered. Raises
        BadFunction for what is not a Tool, and for duplicate names.
        """
        self.info = base.Implementation(name=name, version=version)
        self.tools = by_name(tools)
        self.withheld = withheld or {}
        self._resources = resources
        self._prompts = prompts
        self._complete = complete
        self.capabilities = ServerCapabilities(
            tools=CHANGES,
            resources=UNSET if resources is None else {"subscribe": True, **CHANGES},
            prompts=UNSET if prompts is None else CHANGES,
            completions=UNSET if complete is None else {},
            logging={} if logs else UNSET,
        )
        self._instructions = UNSET if instructions is None else instructions
        self._meta = Raw(msgspec.json.encode({base.SERVER_INFO: self.info}))
        self.on_subscribe: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint
        """Awaited before a subscription to changes is acknowledged."""
        self._task_group: TaskGroup | None = None
        self._methods: Methods = {
            "server/discover": method(base.Params, self._discover, Era.MODERN, fresh_ms=FRESH_MS),
            **tool_methods(self.tools, self._run_in_background, self.withheld),
        }

    def allow_tasks(self, group: TaskGroup) -> None:
        """Let calls become tasks (SEP-2663) in `group`, until it ends."""
        self._task_group = group
        self.capabilities = msgspec.structs.replace(self.capabilities, extensions={base.TASKS_EXTENSION: {}})

    @cached_property
    def tasks(self) -> Tasks:
        """The tasks, once they are allowed."""
        from ragmcp.server.tasks import Tasks

        assert self._task_group is not None
        return Tasks(self._task_group, self.announce)

    @cached_property
    def broadcast(self) -> Broadcast:
        """Delivers changes to subscribers."""
        from ragmcp.server.subscriptions import Broadcast

        return Broadcast(lambda: self.on_subscribe())

    @property
    def watched(self) -> set[str] | None:
        """The URIs of the resources that clients subscribe to; None if no client subscribes to anything."""
        return self.broadcast.watched if "broadcast" in vars(self) and self.broadcast else None

    @cached_property
    def _rounds(self) -> Rounds:
        from ragmcp.server.input_required import Rounds

        return Rounds()

    def announce(self, change: Change) -> None:
        """Send a change to the clients that subscribe to it. Never waits."""
        self.broadcast.publish(change)

    # Calls

    def find_method(self, name: str) -> Method | None:
        """The method of that name; None if this server has none."""
        for feature in (name.partition("/")[0], "legacy"):
            if name not in self._methods:
                self._methods |= self._feature(feature)
        return self._methods.get(name)

    def _feature(self, name: str) -> Methods:
        """The methods of a feature, which is imported when one of them is first called."""
        match name:
            case "resources" if self._resources is not None:
                from ragmcp.server.resources import resource_methods

                return resource_methods(self._resources)
            case "prompts" if self._prompts is not None:
                from ragmcp.server.prompts import prompt_methods

                return prompt_methods({prompt.info.name: prompt for prompt in self._prompts})
            case "completion" if self._complete is not None:
                from ragmcp.server.completion import completion_methods

                return completion_methods(self._complete)
            case "subscriptions":
                from ragmcp.server.subscriptions import subscription_methods

                return subscription_methods(
                    self.broadcast, self.info, lambda: self.capabilities, lambda id: self.tasks.knows(id)
                )
            case "tasks" if self._task_group is not None:
                return self.tasks.methods()
            case "legacy" if (legacy := find_legacy("server")) is not None:
                methods: Methods = legacy.legacy_methods(self.info, self.capabilities, self._instructions)
                return methods
        return {}

    def open_call(self, request: Request, session: ConnectionState, channel: Channel) -> Call:
        """The call of a request. Raises RemoteProtocolError for an invalid request."""
        method = self.find_method(request.method)
        try:
            params = (method.params if method else _any_params).decode(request.params)
        except DECODE_ERRORS as error:
            raise invalid_params(error) from None
        if method is None and params.meta.protocol_version is UNSET:
            raise MethodNotFound(request.method)
        terms = session.admit(request.method, params)
        if method is None or terms.era not in method.eras:
            raise MethodNotFound(request.method)
        asker = partial(require_legacy("server").ask, channel) if terms.era is Era.LEGACY else None
        return Call(request.id, request.method, params, terms, session, channel, asker)

    async def handle(self, call: Call) -> base.Result:
        """Answer one call. Raises RemoteProtocolError if the client is at fault."""
        method = self._methods[call.method]
        try:
            params = call.params
            if isinstance(params, base.RetryableParams) and params.request_state is not UNSET:
                call.params = params = self._rounds.resume(call.method, params)
            result = await contain_cancellation(method.handler(call, params))
        except InputNeeded as needed:
            result = self._rounds.pause(call.method, needed.params, needed.requests)
        if call.terms.era is Era.LEGACY:
            downgraded: base.Result = require_legacy("downgrade").downgrade(call.terms.revision, result)
            return downgraded
        changes: dict[str, Any] = {}
        if result.result_type is UNSET:
            changes["result_type"] = "complete"
            if method.fresh_ms is not None:
                changes |= {"ttl_ms": method.fresh_ms, "cache_scope": method.cache_scope}
        if result.meta is UNSET:
            changes["meta"] = self._meta
        return msgspec.structs.replace(result, **changes)

    # Features

    async def _discover(self, _: Call, __: base.Params) -> base.Result:
        return DiscoverResult(
            supported_versions=list(MODERN_REVISIONS),
            capabilities=self.capabilities,
            instructions=self._instructions,
        )

    def _run_in_background(self, call: Call, work: Work) -> Awaitable[base.Result]:
        if self._task_group is None or not call.extension(base.TASKS_EXTENSION):
            return work()
        return self.tasks.run(call, work)


_any_params = msgspec.json.Decoder(base.Params)


async def serve(
    server: Server,
    stream: Stream,
    *,
    message_bytes: int = MESSAGE_BYTES,
    in_progress: int = MAX_IN_PROGRESS,
    host: str = "",
) -> None:
    """Answer all requests of `stream` until it ends.

    `message_bytes` is the longest message read; `in_progress` is the most requests in progress; `host` is the
    address of the client's machine.
    """
    session = ConnectionState(os.urandom(4).hex(), host)

    async def handle(request: Request) -> base.Result:
        call = server.open_call(request, session, peer)
        trace = enter(call.params.meta.traceparent)
        if call.params.meta.traceparent is not UNSET:
            log.info("%s, traceparent %s", call.method, trace)
        had_terms = session.terms is not None
        result = await server.handle(call)
        peer.connection.batches = session.batches
        if session.terms is not None and not had_terms:  # This was the handshake.
            tasks.start_soon(require_legacy("server").forward_changes, server.broadcast, session, peer)
        return result

    peer = Peer(stream, Connection(message_bytes, refuses=True, max_in_progress=in_progress), handle)
    async with background_task() as tasks:
        await peer.run()
        if stream.fault:
            log.error("The client was disconnected: %s", stream.fault)
