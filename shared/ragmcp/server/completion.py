"""Completion: values for the arguments of prompts and templates. Source: server/utilities/completion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ragmcp.protocol.schema.base import Result
from ragmcp.protocol.schema.completion import CompleteParams, CompleteResult, Completion, Reference
from ragmcp.server.call import Call, Method, method

if TYPE_CHECKING:
    from ragmcp.server.server import Server

# "Maximum 100 items per response."
MAX_VALUES = 100


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
