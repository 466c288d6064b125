"""Subscriptions to a server's changes, the same in both eras.

Modern: `subscriptions/listen`, repeated when its stream breaks. Legacy: the server reports changes of its
lists unasked, and those of resources after `resources/subscribe`. Source: basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

import anyio
import msgspec

from ragmcp.backoff import Backoff
from ragmcp.client.core import Core
from ragmcp.concurrency import LatestQueue, background_task
from ragmcp.errors import ConnectionClosed, RagMcpError, RequestTimedOut
from ragmcp.older_revisions import require_legacy
from ragmcp.protocol.jsonrpc import Id, Notification
from ragmcp.protocol.results import complete
from ragmcp.protocol.schema import subscriptions as schema
from ragmcp.protocol.schema.base import Result

ACKNOWLEDGE_SECONDS = 60.0
UNSUBSCRIBE_SECONDS = 1.0
# Proxies cut silent streams, some of them every minute.
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 10.0


class Subscription:
    """The changes at a server, oldest first; for each subject only the latest. Iterating waits for more.

    It ends with its block, and when the server ends it; if the connection is lost, it raises that error.
    """

    def __init__(self, core: Core, filter: schema.Filter) -> None:
        self._core = core
        self._filter = filter
        self._accepts = schema.accepts(filter)
        self._id: Id | None = None  # of the request that listens, in the modern era
        self._acknowledged = anyio.Event()
        self._failure: RagMcpError | None = None
        self._queue: LatestQueue[tuple[str, str], schema.Change] = LatestQueue()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> schema.Change:
        try:
            return await self._queue.get()
        except anyio.EndOfStream:
            raise self._failure or StopAsyncIteration from None

    def take(self, notification: Notification) -> None:
        """Take a notification, if it is a change subscribed to, and not for another subscription."""
        params = msgspec.json.decode(notification.params, type=dict[str, Any])
        meta = params.pop("_meta", None)
        if isinstance(meta, dict) and meta.get(schema.SUBSCRIPTION_ID, self._id) != self._id:
            return
        if notification.method == schema.ACKNOWLEDGED:
            self._acknowledged.set()
            return
        change = schema.Change(notification.method, params.get("uri", params.get("taskId", "")), params)
        if self._accepts(change):
            self._queue.put((change.method, change.subject), change)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Subscribe, and keep the subscription during the body. Raises RagMcpError if the server refuses."""
        async with background_task(self._listen if self._core.modern else self._wait):
            with anyio.move_on_after(ACKNOWLEDGE_SECONDS):
                await self._acknowledged.wait()
            if not self._acknowledged.is_set():
                raise RequestTimedOut(schema.LISTEN, ACKNOWLEDGE_SECONDS)
            if self._failure:
                raise self._failure
            yield

    async def _wait(self) -> None:
        watch = require_legacy("client").watch
        uris = self._filter.resource_subscriptions or []
        try:
            await watch(self._core, "resources/subscribe", uris)
            self._acknowledged.set()
            await self._core.closed()
            self.end(ConnectionClosed())
        except RagMcpError as error:
            self.end(error)
        finally:
            with anyio.move_on_after(UNSUBSCRIBE_SECONDS, shield=True), suppress(RagMcpError):
                await watch(self._core, "resources/unsubscribe", uris)

    async def _listen(self) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
        while True:
            started = anyio.current_time()
            params = schema.ListenParams(meta=self._core.meta(), notifications=self._filter)
            try:
                answer = await self._core.channel.request(schema.LISTEN, params, on_sent=self._begin)
                complete(schema.LISTEN, answer, Result)
                return self.end()
            except (ConnectionClosed, RequestTimedOut) as error:
                if self._core.is_closed:
                    return self.end(error)
            except RagMcpError as error:
                return self.end(error)
            if anyio.current_time() - started > STEADY_SECONDS:
                backoff.reset()
            await anyio.sleep(backoff.next())

    def _begin(self, id: Id) -> None:
        self._id = id

    def end(self, failure: RagMcpError | None = None) -> None:
        """Let the iteration end once it has had all changes, with the first `failure` if there is one."""
        self._failure = self._failure or failure
        self._acknowledged.set()
        self._queue.close()
