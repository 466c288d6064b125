"""`prompts/list` and `prompts/get`. Source: server/prompts."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.base import Page, Result, RetryableParams, Wire
from ragmcp.protocol.schema.content import Content


class PromptArgument(Wire, frozen=True, kw_only=True):
    """An argument of a prompt; its value is text."""

    name: str
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class PromptInfo(Wire, frozen=True, kw_only=True):
    """A prompt as `prompts/list` describes it."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET


class PromptMessage(Wire, frozen=True, kw_only=True):
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    content: Content


class ListPromptsResult(Page, frozen=True, kw_only=True):
    """One page of prompts."""

    prompts: list[PromptInfo]


class GetPromptParams(RetryableParams, frozen=True, kw_only=True):
    """Which prompt, and its arguments."""

    name: str
    arguments: dict[str, str] = {}


class GetPromptResult(Result, frozen=True, kw_only=True):
    """The messages of a prompt."""

    messages: list[PromptMessage]
    description: str | UnsetType = UNSET
