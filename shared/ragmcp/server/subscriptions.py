"""Changes at the server, sent to the clients that subscribe to them. Source: basic/patterns/subscriptions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec
from anyio.lowlevel import checkpoint
from msgspec import UNSET, Raw, Struct

from ragmcp.concurrency import LatestQueue, background_task
from ragmcp.protocol.eras import Era
from ragmcp.protocol.schema import subscriptions as schema
from ragmcp.protocol.schema.base import SERVER_INFO, TASKS_EXTENSION, Implementation, Result
from ragmcp.protocol.schema.discovery import ServerCapabilities
from ragmcp.server.call import Call, Methods, method

ChangeQueue: TypeAlias = LatestQueue[tuple[str, str], schema.Change]


class Broadcast(Struct):
    """Delivers each change to all subscribers that accept it."""

    on_subscribe: Callable[[], Awaitable[object]] = checkpoint
    """Awaited before a subscription is acknowledged."""
    _subscribers: dict[ChangeQueue, schema.Accepts] = {}
    _watched: dict[ChangeQueue, Collection[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._subscribers)

    @property
    def watched(self) -> set[str]:
        """The URIs of the resources that are subscribed to."""
        return set().union(*self._watched.values())

    def publish(self, change: schema.Change) -> None:
        """Never waits."""
        for queue, wants in self._subscribers.items():
            if wants(change):
                queue.put((change.method, change.subject), change)

    @contextmanager
    def subscribed(self, wants: schema.Accepts, watched: Collection[str] = ()) -> Iterator[ChangeQueue]:
        """A queue of future changes that `wants` accepts; `watched` are the URIs of its resources."""
        queue: ChangeQueue = LatestQueue()
        self._subscribers[queue], self._watched[queue] = wants, watched
        try:
            yield queue
        finally:
            del self._subscribers[queue], self._watched[queue]


def subscription_methods(
    broadcast: Broadcast,
    info: Implementation,
    capabilities: Callable[[], ServerCapabilities],
    knows_task: Callable[[str], bool],
) -> Methods:
    """`subscriptions/listen`, a request that stays open."""

    async def listen(call: Call, params: schema.ListenParams) -> Result:
        if params.notifications.task_ids:
            call.require_extension(TASKS_EXTENSION)
        filter = _honoured(params.notifications, capabilities(), knows_task)
        meta = {schema.SUBSCRIPTION_ID: call.id}
        with broadcast.subscribed(schema.accepts(filter), filter.resource_subscriptions or ()) as queue:
            await broadcast.on_subscribe()
            await call.channel.notify(schema.ACKNOWLEDGED, {"_meta": meta, "notifications": filter})

            async def forward() -> None:
                while True:
                    change = await queue.get()
                    await call.channel.notify(change.method, {**change.params, "_meta": meta})

            async with background_task(forward):
                await call.channel.closed.wait()
        return Result(meta=Raw(msgspec.json.encode({**meta, SERVER_INFO: info})))

    return {schema.LISTEN: method(schema.ListenParams, listen, Era.MODERN)}


def _honoured(
    filter: schema.Filter, offered: ServerCapabilities, knows_task: Callable[[str], bool]
) -> schema.Filter:
    """The part of a filter that the server can honour."""
    tasks = [id for id in filter.task_ids or () if knows_task(id)] if offered.extensions else UNSET
    return schema.Filter(
        tools_list_changed=filter.tools_list_changed if offered.tools else UNSET,
        prompts_list_changed=filter.prompts_list_changed if offered.prompts else UNSET,
        resources_list_changed=filter.resources_list_changed if offered.resources else UNSET,
        resource_subscriptions=filter.resource_subscriptions if offered.resources else UNSET,
        task_ids=tasks if filter.task_ids else UNSET,
    )
