"""`subscriptions/listen` and the notifications of changes. Source: basic/patterns/subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from ragmcp.protocol.schema.base import Params, Wire

# In `_meta`: the id of the `subscriptions/listen` that a message belongs to.
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
RESOURCE_UPDATED = "notifications/resources/updated"
TASK_CHANGED = "notifications/tasks"
LIST_CHANGED = "/list_changed"


class Change(Struct, frozen=True):
    """Something changed at the server: the notification's method and parameters.

    `subject` is what has changed: the URI of the resource, the id of the task; "" for lists.
    """

    method: str
    subject: str = ""
    params: Mapping[str, Any] = {}


def list_changed(feature: str) -> Change:
    """The list of `feature` (tools, prompts or resources) has changed."""
    return Change(f"notifications/{feature}{LIST_CHANGED}")


def resource_updated(uri: str) -> Change:
    """The contents of the resource `uri` have changed."""
    return Change(RESOURCE_UPDATED, uri, {"uri": uri})


class Filter(Wire, frozen=True, kw_only=True):
    """Which changes a client subscribes to."""

    tools_list_changed: bool | UnsetType = UNSET
    prompts_list_changed: bool | UnsetType = UNSET
    resources_list_changed: bool | UnsetType = UNSET
    resource_subscriptions: list[str] | UnsetType = UNSET
    task_ids: list[str] | UnsetType = UNSET  # With the tasks extension.


# Whether a change is one of those subscribed to.
Accepts: TypeAlias = Callable[[Change], bool]


def accepts(filter: Filter) -> Accepts:
    """The predicate of a filter: whether a change is one of those subscribed to."""
    lists = {
        list_changed(feature).method
        for feature in ("tools", "prompts", "resources")
        if getattr(filter, f"{feature}_list_changed") is True
    }
    uris = frozenset(filter.resource_subscriptions or ())
    tasks = frozenset(filter.task_ids or ())
    return lambda change: (
        change.method in lists
        or (change.method == RESOURCE_UPDATED and change.subject in uris)
        or (change.method == TASK_CHANGED and change.subject in tasks)
    )


class ListenParams(Params, frozen=True, kw_only=True):
    """The parameters of `subscriptions/listen`."""

    notifications: Filter
