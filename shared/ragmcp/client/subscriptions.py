"""Subscriptions to a server's changes, the same in both eras.

Modern: `subscriptions/listen`, repeated when its stream breaks. Legacy: the server reports changes of lists
unasked, and changes of resources after `resources/subscribe`.
Source: basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Self, TypeAlias

import anyio
import msgspec

from ragmcp.backoff import Backoff
from ragmcp.client.core import Core
from ragmcp.concurrency import LatestQueue, beside
from ragmcp.errors import ConnectionClosed, RagMcpError, RequestTimedOut
from ragmcp.older_revisions import require_legacy
from ragmcp.protocol.jsonrpc import Id, Notification
from ragmcp.protocol.schema import subscriptions as schema
from ragmcp.protocol.schema.base import Result

ACKNOWLEDGE_SECONDS = 60.0
# Proxies cut silent streams, some of them every minute.
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 10.0


# Keeps a subscription until it ends, or it is cancelled.
_Keep: TypeAlias = Callable[["Subscription"], Coroutine[Any, Any, None]]


class Subscription:
    """The changes at a server, oldest first; for each subject only the latest. Iterating waits for more.

    It ends when the server ends it; if the connection is lost, it raises that error.
    """

    def __init__(self, filter: schema.Filter) -> None:
        self.requested = filter
        self.honoured = filter
        """The part of the filter that the server honours."""
        self.acknowledged = anyio.Event()
        self.failure: RagMcpError | None = None
        self._accepts = schema.accepts(filter)
        self._queue: LatestQueue[tuple[str, str], schema.Change] = LatestQueue()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> schema.Change:
        try:
            return await self._queue.get()
        except anyio.EndOfStream:
            raise self.failure or StopAsyncIteration from None

    def put(self, change: schema.Change) -> None:
        """Add a change, if the filter accepts it."""
        if self._accepts(change):
            self._queue.put((change.method, change.subject), change)

    def acknowledge(self, honoured: schema.Filter) -> None:
        """The server has agreed to send these changes."""
        self.honoured = honoured
        self.acknowledged.set()

    def end(self, failure: RagMcpError | None = None) -> None:
        """There will be no more changes."""
        self.failure = failure
        self.acknowledged.set()
        self._queue.close()


class Subscriptions:
    """All subscriptions of one client."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._all: set[Subscription] = set()
        # Modern: by the id of the `subscriptions/listen`.
        self._by_id: dict[Id, Subscription] = {}

    @cached_property
    def _watch(self) -> _Keep:
        watch: _Keep = require_legacy("client").Watch(self._core).keep
        return watch

    def acknowledged(self, notification: Notification) -> None:
        """Take a modern server's acknowledgement."""
        params = msgspec.json.decode(notification.params, type=schema.Acknowledged)
        if subscription := self._by_id.get(params.meta.subscription_id):
            subscription.acknowledge(params.notifications)

    def changed(self, notification: Notification) -> schema.Change:
        """Pass the change in a notification on to its subscriptions, and return it."""
        params = msgspec.json.decode(notification.params, type=dict[str, Any])
        meta = params.pop("_meta", {})
        change = schema.Change(notification.method, params.get("uri", params.get("taskId", "")), params)
        # On stdio all subscriptions share one channel; the id says which one a change belongs to.
        id = meta.get(schema.SUBSCRIPTION_ID)
        for subscription in self._all if id is None else filter(None, [self._by_id.get(id)]):
            subscription.put(change)
        return change

    @asynccontextmanager
    async def subscribe(self, filter: schema.Filter) -> AsyncIterator[Subscription]:
        """As `Client.subscribe`."""
        subscription = Subscription(filter)
        keep = self._listen if self._core.modern else self._watch
        self._all.add(subscription)
        try:
            async with beside(lambda: keep(subscription)):
                with anyio.move_on_after(ACKNOWLEDGE_SECONDS):
                    await subscription.acknowledged.wait()
                if not subscription.acknowledged.is_set():
                    raise RequestTimedOut(schema.LISTEN, ACKNOWLEDGE_SECONDS)
                if subscription.failure:
                    raise subscription.failure
                yield subscription
        finally:
            self._all.discard(subscription)

    async def _listen(self, subscription: Subscription) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            started = anyio.current_time()
            try:
                await self._request(subscription)
                return subscription.end()
            except (ConnectionClosed, RequestTimedOut) as error:
                if self._core.is_closed:
                    return subscription.end(error)
            except RagMcpError as error:
                return subscription.end(error)
            self._core.cache.clear()  # Changes during the interruption were not reported.
            if anyio.current_time() - started > STEADY_SECONDS:
                backoff.reset()
            await anyio.sleep(backoff.next())

    async def _request(self, subscription: Subscription) -> None:
        id = self._core.channel.next_id
        self._by_id[id] = subscription
        try:
            params = schema.ListenParams(meta=self._core.meta(), notifications=subscription.requested)
            await self._core.request(schema.LISTEN, params, Result, timeout=None)
        finally:
            del self._by_id[id]
