"""What changed at the server, told to whoever listens.

Modern: `subscriptions/listen`, a request that stays open. Legacy: the connection itself, after `initialize`.
Source: basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.abc import TaskStatus
from msgspec import UNSET, Raw, Struct, UnsetType, field

from ragmcp.concurrency import beside
from ragmcp.protocol.eras import Era, Session
from ragmcp.protocol.schema import SERVER_INFO, TASKS_EXTENSION, Params, Result, Wire
from ragmcp.server.call import Call, Channel, Method, method

if TYPE_CHECKING:
    from ragmcp.server.server import Server

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
LISTEN = "subscriptions/listen"
RESOURCE_UPDATED = "notifications/resources/updated"
TASK_CHANGED = "notifications/tasks"


class Announcement(Struct, frozen=True):
    """News; `subject` tells apart news of one method (the resource's URI)."""

    method: str
    subject: str = ""
    params: dict[str, Any] = {}


def list_changed(what: str) -> Announcement:
    """`what` is tools, prompts or resources."""
    return Announcement(f"notifications/{what}/list_changed")


def resource_updated(uri: str) -> Announcement:
    """There is something new at `uri`."""
    return Announcement(RESOURCE_UPDATED, uri, {"uri": uri})


def task_changed(id: str, state: Struct) -> Announcement:
    """A task is not what it was."""
    return Announcement(TASK_CHANGED, id, msgspec.json.decode(msgspec.json.encode(state)))


class Listener:
    """Somebody's unheard news: of one method and subject only the latest, so a slow one costs no memory."""

    def __init__(self, wants: Callable[[Announcement], bool]) -> None:
        self.wants = wants
        self._news: dict[tuple[str, str], Announcement] = {}
        self._some = anyio.Event()
        self._closed = False

    def hear(self, news: Announcement) -> None:
        """Take it, if it is wanted."""
        if self.wants(news):
            self._news[news.method, news.subject] = news
            self._some.set()

    def close(self) -> None:
        """There will be no more."""
        self._closed = True
        self._some.set()

    async def next(self) -> Announcement:
        """The oldest unheard news. Raises EndOfStream when there will be no more."""
        while not self._news:
            if self._closed:
                raise anyio.EndOfStream
            self._some = anyio.Event()
            await self._some.wait()
        return self._news.pop(next(iter(self._news)))


class Announcer:
    """Tells all listeners."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    def announce(self, news: Announcement) -> None:
        """Never waits."""
        for listener in self._listeners:
            listener.hear(news)

    @contextmanager
    def listening(self, wants: Callable[[Announcement], bool]) -> Iterator[Listener]:
        """News that `wants` accepts, from now on."""
        listener = Listener(wants)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)


class Filter(Wire, frozen=True, kw_only=True):
    """Which news a client wants."""

    tools_list_changed: bool | UnsetType = UNSET
    prompts_list_changed: bool | UnsetType = UNSET
    resources_list_changed: bool | UnsetType = UNSET
    resource_subscriptions: list[str] | UnsetType = UNSET
    task_ids: list[str] | UnsetType = UNSET  # With the tasks extension.


class ListenParams(Params, frozen=True, kw_only=True):
    """`subscriptions/listen`."""

    notifications: Filter


class SubscriptionMeta(Wire, frozen=True, kw_only=True):
    """Which subscription a message belongs to: the id of its `subscriptions/listen`."""

    subscription_id: int | str = field(name=SUBSCRIPTION_ID)


class Acknowledged(Wire, frozen=True, kw_only=True):
    """`notifications/subscriptions/acknowledged`: what will be told."""

    meta: SubscriptionMeta = field(name="_meta")
    notifications: Filter


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


def accepts(filter: Filter) -> Callable[[Announcement], bool]:
    """Which news fit the filter."""
    lists = {
        list_changed(what).method
        for what in ("tools", "prompts", "resources")
        if getattr(filter, f"{what}_list_changed") is True
    }
    uris = frozenset(filter.resource_subscriptions or ())
    tasks = frozenset(filter.task_ids or ())
    return lambda news: (
        news.method in lists
        or (news.method == RESOURCE_UPDATED and news.subject in uris)
        or (news.method == TASK_CHANGED and news.subject in tasks)
    )


async def _listen(server: Server, call: Call) -> Result:
    assert isinstance(call.params, ListenParams)
    if call.params.notifications.task_ids:
        call.require_extension(TASKS_EXTENSION)
    filter = _honoured(server, call.params.notifications)
    assert call.id is not None  # The plain form cannot listen.
    meta = SubscriptionMeta(subscription_id=call.id)
    with server.announcer.listening(accepts(filter)) as listener:
        await call.notify(
            "notifications/subscriptions/acknowledged", Acknowledged(meta=meta, notifications=filter)
        )

        async def tell() -> None:
            while True:
                news = await listener.next()
                await call.notify(news.method, news.params | {"_meta": meta})

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

    def wants(news: Announcement) -> bool:
        if session.terms is None:
            return False
        return news.method.endswith("list_changed") or (
            news.method == RESOURCE_UPDATED and news.subject in session.subscriptions
        )

    with server.announcer.listening(wants) as listener:
        task_status.started()
        while True:
            news = await listener.next()
            await channel.notify(news.method, news.params)


METHODS: dict[str, Method] = {
    LISTEN: method(ListenParams, _listen, Era.MODERN),
}
