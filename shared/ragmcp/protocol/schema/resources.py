"""`resources/list`, `resources/templates/list` and `resources/read`. Source: server/resources."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.base import CacheableResult, Page, RetryableParams, Wire
from ragmcp.protocol.schema.content import ResourceContents


class ResourceInfo(Wire, frozen=True, kw_only=True):
    """A resource as `resources/list` describes it."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    annotations: dict[str, Any] | UnsetType = UNSET


class ResourceTemplate(Wire, frozen=True, kw_only=True):
    """A pattern (RFC 6570) of URIs that can be read without being listed."""

    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class ListResourcesResult(Page, frozen=True, kw_only=True):
    """One page of resources."""

    resources: list[ResourceInfo]


class ListResourceTemplatesResult(Page, frozen=True, kw_only=True):
    """One page of templates."""

    resource_templates: list[ResourceTemplate]


class ResourceParams(RetryableParams, frozen=True, kw_only=True):
    """Which resource."""

    uri: str


class ReadResourceResult(CacheableResult, frozen=True, kw_only=True):
    """The contents of a resource."""

    contents: list[ResourceContents]
