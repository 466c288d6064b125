"""Resources: what can be read by its URI. Source: server/resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import UnsetType

from ragmcp.errors import LegacyResourceNotFound, ResourceNotFound
from ragmcp.protocol.eras import Era
from ragmcp.protocol.pagination import page
from ragmcp.protocol.schema import resources as schema
from ragmcp.protocol.schema.base import ListParams
from ragmcp.protocol.schema.content import ResourceContents
from ragmcp.server.call import FRESH_MS, Call, Methods, method


class Resources(Protocol):
    """The resources of a server."""

    @property
    def templates(self) -> Sequence[schema.ResourceTemplate]:
        """The patterns of URIs that can be read."""

    async def page(self, cursor: str | UnsetType) -> tuple[list[schema.ResourceInfo], str | UnsetType]:
        """One page of the list, and the cursor of the next. Raises InvalidParams for a foreign cursor."""

    async def read(self, call: Call, uri: str) -> list[ResourceContents]:
        """The contents of a resource. Raises ResourceNotFound."""


def resource_methods(resources: Resources) -> Methods:
    """`resources/list`, `resources/templates/list` and `resources/read`."""

    async def list_resources(_: Call, params: ListParams) -> schema.ListResourcesResult:
        items, cursor = await resources.page(params.cursor)
        return schema.ListResourcesResult(resources=items, next_cursor=cursor)

    async def list_templates(_: Call, params: ListParams) -> schema.ListResourceTemplatesResult:
        templates, cursor = page(resources.templates, params.cursor)
        return schema.ListResourceTemplatesResult(resource_templates=templates, next_cursor=cursor)

    async def read(call: Call, params: schema.ResourceParams) -> schema.ReadResourceResult:
        try:
            return schema.ReadResourceResult(contents=await resources.read(call, params.uri))
        except ResourceNotFound:
            if call.terms.era is Era.LEGACY:
                raise LegacyResourceNotFound(params.uri) from None
            raise

    # Documents come and go, and their contents concern only their owner.
    return {
        "resources/list": method(ListParams, list_resources, fresh_ms=0, cache_scope="private"),
        "resources/templates/list": method(ListParams, list_templates, fresh_ms=FRESH_MS),
        "resources/read": method(schema.ResourceParams, read, fresh_ms=0, cache_scope="private"),
    }
