"""Resources: what can be read by its URI, and watched. Source: server/resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UnsetType

from ragmcp.errors import InvalidParams, LegacyResourceNotFound, ResourceNotFound
from ragmcp.protocol.eras import Era
from ragmcp.protocol.pagination import page
from ragmcp.protocol.schema.base import (
    EmptyResult,
    ListParams,
    Params,
    Result,
)
from ragmcp.protocol.schema.content import ResourceContents
from ragmcp.protocol.schema.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    ResourceInfo,
    ResourceParams,
    ResourceTemplate,
)
from ragmcp.server.call import FRESH_MS, Call, Method, method

if TYPE_CHECKING:
    from ragmcp.server.server import Server

# What one legacy connection may watch at a time.
MOST_WATCHED = 1_000
# The longest URI that can be watched, in characters: a session keeps it.
LONGEST_WATCHED = 8_192


class Resources(Protocol):
    """What a server has to read."""

    @property
    def templates(self) -> Sequence[ResourceTemplate]:
        """The patterns of what is not listed, or not only."""

    async def page(self, cursor: str | UnsetType) -> tuple[list[ResourceInfo], str | UnsetType]:
        """One page of the list, and the cursor of the next. Raises InvalidParams for a cursor of others."""

    async def read(self, call: Call, uri: str) -> list[ResourceContents]:
        """What is there. Raises ResourceNotFound."""


async def _list(server: Server, call: Call) -> Result:
    assert isinstance(call.params, ListParams)
    resources, cursor = await server.resources.page(call.params.cursor)
    return ListResourcesResult(resources=resources, next_cursor=cursor)


async def _list_templates(server: Server, call: Call) -> Result:
    assert isinstance(call.params, ListParams)
    templates, cursor = page(server.resources.templates, call.params.cursor)
    return ListResourceTemplatesResult(resource_templates=templates, next_cursor=cursor)


async def _read(server: Server, call: Call) -> Result:
    uri = server.resume(call, ResourceParams).uri
    try:
        return ReadResourceResult(contents=await server.resources.read(call, uri))
    except ResourceNotFound:
        if call.era is Era.LEGACY:
            raise LegacyResourceNotFound(uri) from None
        raise


async def _subscribe(_: Server, call: Call) -> Result:
    assert isinstance(call.params, ResourceParams)
    watched = call.session.subscriptions
    if len(call.params.uri) > LONGEST_WATCHED:
        raise InvalidParams("$.uri", f"it is longer than {LONGEST_WATCHED:,} characters")
    if len(watched) >= MOST_WATCHED and call.params.uri not in watched:
        raise InvalidParams("$.uri", f"this connection watches {MOST_WATCHED:,} resources already")
    watched.add(call.params.uri)
    return EmptyResult()


async def _unsubscribe(_: Server, call: Call) -> Result:
    assert isinstance(call.params, ResourceParams)
    call.session.subscriptions.discard(call.params.uri)
    return EmptyResult()


def _resources(params: type[Params], answer: Any, *eras: Era, **freshness: Any) -> Method:
    return method(params, answer, *eras, capability="resources", **freshness)


# Documents come and go, and what they hold concerns their owner only.
METHODS: dict[str, Method] = {
    "resources/list": _resources(ListParams, _list, fresh_ms=0, cache_scope="private"),
    "resources/templates/list": _resources(ListParams, _list_templates, fresh_ms=FRESH_MS),
    "resources/read": _resources(ResourceParams, _read, fresh_ms=0, cache_scope="private"),
    "resources/subscribe": _resources(ResourceParams, _subscribe, Era.LEGACY),
    "resources/unsubscribe": _resources(ResourceParams, _unsubscribe, Era.LEGACY),
}
