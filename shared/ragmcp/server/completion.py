"""Completion: values for the arguments of prompts and templates. Source: server/utilities/completion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema import Params, Result, Wire
from ragmcp.server.call import Call, Method, method

if TYPE_CHECKING:
    from ragmcp.server.server import Server

# "Maximum 100 items per response."
MAX_VALUES = 100


class PromptReference(Wire, frozen=True, kw_only=True, tag="ref/prompt"):
    """An argument of a prompt."""

    name: str


class TemplateReference(Wire, frozen=True, kw_only=True, tag="ref/resource"):
    """A variable of a resource template."""

    uri: str


Reference: TypeAlias = PromptReference | TemplateReference


class Argument(Wire, frozen=True, kw_only=True):
    """What is being typed."""

    name: str
    value: str


class Context(Wire, frozen=True, kw_only=True):
    """What has been filled in already."""

    arguments: dict[str, str] = {}


class CompleteParams(Params, frozen=True, kw_only=True):
    """What is to be completed."""

    ref: Reference
    argument: Argument
    context: Context = Context()


class Completion(Wire, frozen=True, kw_only=True):
    """Values, best first; `total` counts those not sent too."""

    values: list[str]
    total: int | UnsetType = UNSET
    has_more: bool | UnsetType = UNSET


class CompleteResult(Result, frozen=True, kw_only=True):
    """The answer to `completion/complete`."""

    completion: Completion


# (reference, argument, what is typed, the other arguments) → all fitting values, best first.
Completer: TypeAlias = Callable[[Reference, str, str, Mapping[str, str]], Awaitable[Sequence[str]]]


async def _complete(server: Server, call: Call) -> Result:
    params = call.params
    assert isinstance(params, CompleteParams)
    assert server.complete is not None
    argument = params.argument
    values = await server.complete(params.ref, argument.name, argument.value, params.context.arguments)
    completion = Completion(
        values=list(values[:MAX_VALUES]), total=len(values), has_more=len(values) > MAX_VALUES
    )
    return CompleteResult(completion=completion)


METHODS: dict[str, Method] = {
    "completion/complete": method(CompleteParams, _complete, capability="completions"),
}
