"""News from a server, the same in both eras: a block of code, and what changes while it runs.

Modern: `subscriptions/listen`, opened anew when its stream breaks. Legacy: changes of lists come unasked,
those of resources after `resources/subscribe`.
Source: basic/patterns/subscriptions, and server/resources of 2025-11-25.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

import anyio
import msgspec

from ragmcp.backoff import Backoff
from ragmcp.concurrency import LatestQueue, beside
from ragmcp.errors import ConnectionClosed, RagMcpError, RequestTimedOut
from ragmcp.protocol.jsonrpc import Id, Notification
from ragmcp.protocol.schema.base import EmptyResult, Result
from ragmcp.protocol.schema.resources import ResourceParams
from ragmcp.protocol.schema.subscriptions import (
    SUBSCRIPTION_ID,
    Acknowledged,
    Change,
    Filter,
    ListenParams,
    accepts,
)

if TYPE_CHECKING:
    from ragmcp.client.client import Client

ACKNOWLEDGE_SECONDS = 60.0
UNSUBSCRIBE_SECONDS = 2.0
# Proxies cut silent streams, now and then or every minute.
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 10.0


class News:
    """What has changed, oldest first; of one thing only the latest. Iterating waits for more.

    It ends when the server ends it, and with the error where the server is gone.
    """

    def __init__(self, filter: Filter) -> None:
        self.wanted = filter
        self.honoured = filter
        """Of what is wanted, what the server will tell."""
        self.settled = anyio.Event()
        self.failure: RagMcpError | None = None
        self._accepts = accepts(filter)
        self._queue: LatestQueue[tuple[str, str], Change] = LatestQueue()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        try:
            return await self._queue.get()
        except anyio.EndOfStream:
            raise self.failure or StopAsyncIteration from None

    def hear(self, change: Change) -> None:
        """Take it, if it is wanted."""
        if self._accepts(change):
            self._queue.put((change.method, change.subject), change)

    def settle(self, honoured: Filter) -> None:
        """The server has agreed."""
        self.honoured = honoured
        self.settled.set()

    def end(self, failure: RagMcpError | None = None) -> None:
        """There will be no more."""
        self.failure = failure
        self.settled.set()
        self._queue.close()


class Subscriptions:
    """All that one client listens to."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._all: set[News] = set()
        # Modern: by the id of the request that listens.
        self._by_id: dict[Id, News] = {}
        # Legacy: the resources that are watched, and by how many; one at a time changes that at the server.
        self._watched: Counter[str] = Counter()
        self._changing = anyio.Lock()

    # What comes in

    def acknowledged(self, notification: Notification) -> None:
        """A modern server has agreed to tell something."""
        agreed = msgspec.json.decode(notification.params, type=Acknowledged)
        if news := self._by_id.get(agreed.meta.subscription_id):
            news.settle(agreed.notifications)

    def changed(self, notification: Notification) -> Change:
        """Tell those who listen; gives the news."""
        params = msgspec.json.decode(notification.params, type=dict[str, Any])
        meta = params.pop("_meta", {})
        news = Change(notification.method, params.get("uri", params.get("taskId", "")), params)
        # On stdio all subscriptions share one channel, and only the id says whose news these are.
        id = meta.get(SUBSCRIPTION_ID)
        for listening in self._all if id is None else filter(None, [self._by_id.get(id)]):
            listening.hear(news)
        return news

    # Listening

    @asynccontextmanager
    async def listening(self, filter: Filter) -> AsyncIterator[News]:
        """As `Client.listening`."""
        news = News(filter)
        keep = self._listen if self._client.modern else self._watch
        self._all.add(news)
        try:
            async with beside(lambda: keep(news)):
                await self._settled(news)
                yield news
        finally:
            self._all.discard(news)

    async def _settled(self, news: News) -> None:
        with anyio.move_on_after(ACKNOWLEDGE_SECONDS):
            await news.settled.wait()
        if not news.settled.is_set():
            raise RequestTimedOut("subscriptions/listen", ACKNOWLEDGE_SECONDS)
        if news.failure:
            raise news.failure

    async def _listen(self, news: News) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            began = anyio.current_time()
            try:
                await self._ask(news)
                return news.end()
            except (ConnectionClosed, RequestTimedOut) as error:
                if self._client.is_closed:
                    return news.end(error)
            except RagMcpError as error:
                return news.end(error)
            self._client.cache.clear()  # What has changed meanwhile, nobody told us.
            if anyio.current_time() - began > STEADY_SECONDS:
                backoff.reset()
            await anyio.sleep(backoff.next())

    async def _ask(self, news: News) -> None:
        id = self._client.channel.next_id
        self._by_id[id] = news
        try:
            params = ListenParams(meta=self._client.meta(), notifications=news.wanted)
            await self._client.request("subscriptions/listen", params, Result, timeout=None)
        finally:
            del self._by_id[id]

    # Legacy

    async def _watch(self, news: News) -> None:
        watched: list[str] = []
        try:
            for uri in news.wanted.resource_subscriptions or []:
                await self._begin_watch(uri)
                watched.append(uri)
            news.settle(news.wanted)
            await self._client.closed()
            news.end(ConnectionClosed())
        except RagMcpError as error:
            news.end(error)
        finally:
            with anyio.move_on_after(UNSUBSCRIBE_SECONDS, shield=True):
                for uri in watched:
                    await self._end_watch(uri)

    async def _begin_watch(self, uri: str) -> None:
        async with self._changing:
            if not self._watched[uri]:
                await self._tell("resources/subscribe", uri)
            self._watched[uri] += 1

    async def _end_watch(self, uri: str) -> None:
        async with self._changing:
            self._watched[uri] -= 1
            if not self._watched[uri]:
                del self._watched[uri]
                with suppress(RagMcpError):
                    await self._tell("resources/unsubscribe", uri)

    async def _tell(self, method: str, uri: str) -> None:
        params = ResourceParams(meta=self._client.meta(), uri=uri)
        await self._client.request(method, params, EmptyResult, timeout=ACKNOWLEDGE_SECONDS)
