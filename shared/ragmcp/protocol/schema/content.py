"""The content blocks of tool results and prompts, and the contents of resources."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.base import Wire


class ResourceContents(Wire, frozen=True, kw_only=True):
    """The contents of a resource: either `text`, or `blob` in base64."""

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET


class TextContent(Wire, frozen=True, kw_only=True, tag="text"):
    """Text for the model."""

    text: str


class ImageContent(Wire, frozen=True, kw_only=True, tag="image"):
    """An image, base64."""

    data: str
    mime_type: str


class AudioContent(Wire, frozen=True, kw_only=True, tag="audio"):
    """Sound, base64 (2025-03-26 and later)."""

    data: str
    mime_type: str


class EmbeddedResource(Wire, frozen=True, kw_only=True, tag="resource"):
    """A resource with its contents."""

    resource: ResourceContents


class ResourceLink(Wire, frozen=True, kw_only=True, tag="resource_link"):
    """A pointer to a resource (2025-06-18 and later)."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET


Content: TypeAlias = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink
