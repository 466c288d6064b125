"""`completion/complete`. Source: server/utilities/completion."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.base import Params, Result, Wire


class PromptReference(Wire, frozen=True, kw_only=True, tag="ref/prompt"):
    """A prompt, one of whose arguments is to be completed."""

    name: str


class TemplateReference(Wire, frozen=True, kw_only=True, tag="ref/resource"):
    """A resource template, one of whose variables is to be completed."""

    uri: str


Reference: TypeAlias = PromptReference | TemplateReference


class Argument(Wire, frozen=True, kw_only=True):
    """The argument to complete, and the text typed so far."""

    name: str
    value: str


class Context(Wire, frozen=True, kw_only=True):
    """The arguments that already have their values."""

    arguments: dict[str, str] = {}


class CompleteParams(Params, frozen=True, kw_only=True):
    """The parameters of `completion/complete`."""

    ref: Reference
    argument: Argument
    context: Context = Context()


class Completion(Wire, frozen=True, kw_only=True):
    """Values, best first; `total` includes those that are not sent."""

    values: list[str]
    total: int | UnsetType = UNSET
    has_more: bool | UnsetType = UNSET


class CompleteResult(Result, frozen=True, kw_only=True):
    """The answer to `completion/complete`."""

    completion: Completion
