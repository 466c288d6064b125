"""Prompts made of functions, which their signatures and docstrings describe."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.prompts import PromptArgument, PromptInfo
from ragmcp.server.prompts import Function, Prompt


def prompt(
    *, title: str | UnsetType = UNSET, describe: dict[str, str] | None = None
) -> Callable[[Function], Prompt]:
    """A prompt of `async def name(call: Call, argument: str, optional: str = "")`.

    The docstring describes it, `describe` its arguments.
    """

    def make(function: Function) -> Prompt:
        _, *parameters = inspect.signature(function).parameters.values()
        arguments = [
            PromptArgument(
                name=parameter.name,
                description=(describe or {}).get(parameter.name, UNSET),
                required=parameter.default is parameter.empty,
            )
            for parameter in parameters
        ]
        info = PromptInfo(
            name=function.__name__,
            title=title,
            description=function.__doc__ or UNSET,
            arguments=arguments or UNSET,
        )
        return Prompt(info, function)

    return make
