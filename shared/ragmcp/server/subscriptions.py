"""What changed at the server, told to whoever listens.

Modern: `subscriptions/listen`, a request that stays open. Legacy: the connection itself, after `initialize`.
Source: basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskStatus
from msgspec import UNSET, Raw

from ragmcp.concurrency import LatestQueue, beside
from ragmcp.peer import Channel
from ragmcp.protocol.eras import Era, Session
from ragmcp.protocol.schema.base import SERVER_INFO, TASKS_EXTENSION, Result
from ragmcp.protocol.schema.subscriptions import (
    ACKNOWLEDGED,
    LISTEN,
    RESOURCE_UPDATED,
    SUBSCRIPTION_ID,
    Acknowledged,
    Change,
    Filter,
    ListenParams,
    SubscriptionMeta,
    accepts,
)
from ragmcp.server.call import Call, Method, method

if TYPE_CHECKING:
    from ragmcp.server.server import Server

ChangeQueue: TypeAlias = LatestQueue[tuple[str, str], Change]


class Broadcast:
    """Delivers each change to all subscribers that accept it."""

    def __init__(self) -> None:
        self._subscribers: dict[ChangeQueue, Callable[[Change], bool]] = {}

    def publish(self, change: Change) -> None:
        """Never waits."""
        for queue, wants in self._subscribers.items():
            if wants(change):
                queue.put((change.method, change.subject), change)

    @contextmanager
    def subscribed(self, wants: Callable[[Change], bool]) -> Iterator[ChangeQueue]:
        """A queue of the changes from now on that `wants` accepts."""
        queue: ChangeQueue = LatestQueue()
        self._subscribers[queue] = wants
        try:
            yield queue
        finally:
            del self._subscribers[queue]


def _honoured(server: Server, wanted: Filter) -> Filter:
    """Of what a client wants, what this server has."""
    offered = server.capabilities
    return Filter(
        tools_list_changed=wanted.tools_list_changed if offered.tools else UNSET,
        prompts_list_changed=wanted.prompts_list_changed if offered.prompts else UNSET,
        resources_list_changed=wanted.resources_list_changed if offered.resources else UNSET,
        resource_subscriptions=wanted.resource_subscriptions if offered.resources else UNSET,
        task_ids=[id for id in wanted.task_ids if server.tasks.knows(id)]
        if wanted.task_ids and offered.extensions
        else UNSET,
    )


async def _listen(server: Server, call: Call) -> Result:
    assert isinstance(call.params, ListenParams)
    if call.params.notifications.task_ids:
        call.require_extension(TASKS_EXTENSION)
    filter = _honoured(server, call.params.notifications)
    assert call.id is not None  # The plain form cannot listen.
    meta = SubscriptionMeta(subscription_id=call.id)
    with server.broadcast.subscribed(accepts(filter)) as queue:
        await call.notify(ACKNOWLEDGED, Acknowledged(meta=meta, notifications=filter))

        async def tell() -> None:
            while True:
                change = await queue.get()
                await call.notify(change.method, {**change.params, "_meta": meta})

        async with beside(tell):
            await call.channel.closed.wait()
    ended = {SUBSCRIPTION_ID: call.id, SERVER_INFO: server.info}
    return Result(meta=Raw(msgspec.json.encode(ended)))


async def tell_legacy(
    server: Server,
    session: Session,
    channel: Channel,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Tell a legacy connection all it has a right to hear. Has started once it listens; never returns."""

    def wants(change: Change) -> bool:
        if session.terms is None:
            return False
        return change.method.endswith("list_changed") or (
            change.method == RESOURCE_UPDATED and change.subject in session.subscriptions
        )

    with server.broadcast.subscribed(wants) as queue:
        task_status.started()
        while True:
            change = await queue.get()
            await channel.notify(change.method, change.params)


METHODS: dict[str, Method] = {
    LISTEN: method(ListenParams, _listen, Era.MODERN),
}
