"""Completion: values for the arguments of prompts and templates. Source: server/utilities/completion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from ragmcp.protocol.schema.completion import CompleteParams, CompleteResult, Completion, Reference
from ragmcp.server.call import Call, Methods, method

# "Maximum 100 items per response."
MAX_VALUES = 100

# (reference, argument, the text typed so far, the other arguments) → all fitting values, best first.
Completer: TypeAlias = Callable[[Reference, str, str, Mapping[str, str]], Awaitable[Sequence[str]]]


def completion_methods(completer: Completer) -> Methods:
    """`completion/complete`."""

    async def complete(_: Call, params: CompleteParams) -> CompleteResult:
        argument = params.argument
        values = await completer(params.ref, argument.name, argument.value, params.context.arguments)
        total = len(values)
        completion = Completion(values=[*values[:MAX_VALUES]], total=total, has_more=total > MAX_VALUES)
        return CompleteResult(completion=completion)

    return {"completion/complete": method(CompleteParams, complete)}
