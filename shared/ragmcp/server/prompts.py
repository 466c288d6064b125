"""Prompts: templates of messages that a user chooses. Source: server/prompts."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from ragmcp.errors import BadPrompt, InvalidParams, PromptNotFound
from ragmcp.protocol.pagination import page
from ragmcp.protocol.schema.base import ListParams
from ragmcp.protocol.schema.content import TextContent
from ragmcp.protocol.schema.prompts import (
    GetPromptParams,
    GetPromptResult,
    ListPromptsResult,
    PromptArgument,
    PromptInfo,
    PromptMessage,
)
from ragmcp.server.call import FRESH_MS, Call, Methods, method

Function: TypeAlias = Callable[..., Awaitable[str | list[PromptMessage]]]


class Prompt(Struct, frozen=True):
    """A function that makes a prompt's messages."""

    info: PromptInfo
    function: Function

    async def messages(self, call: Call, arguments: dict[str, str]) -> list[PromptMessage]:
        """Raises InvalidParams for arguments it does not take, and what the function raises."""
        described = self.info.arguments or []
        names = {argument.name for argument in described}
        if unknown := arguments.keys() - names:
            raise InvalidParams(f"$.arguments.{min(unknown)}", f"the prompt takes {_listed(names)}")
        for argument in described:
            if argument.required is True and argument.name not in arguments:
                raise InvalidParams(f"$.arguments.{argument.name}", "required, but missing")
        made = await self.function(call, **arguments)
        return [PromptMessage(role="user", content=TextContent(text=made))] if isinstance(made, str) else made


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "no arguments"


def prompt(
    *, title: str | UnsetType = UNSET, describe: dict[str, str] | None = None
) -> Callable[[Function], Prompt]:
    """Make a prompt of `async def name(call: Call, argument: str, optional: str = "")`.

    It returns the user's text, or messages. The docstring describes it, `describe` its arguments.
    Raises BadPrompt for a function that does not fit.
    """
    return lambda function: _make(function, title, describe or {})


def _make(function: Function, title: str | UnsetType, describe: dict[str, str]) -> Prompt:
    name = function.__name__
    if not function.__doc__:
        raise BadPrompt(name, "it has no docstring, so a user would not know what it is for")
    if not inspect.iscoroutinefunction(function):
        raise BadPrompt(name, "it is not an async function")
    call, *parameters = inspect.signature(function).parameters.values() or (None,)
    if call is None:
        raise BadPrompt(name, "it does not take the call")
    arguments = [
        PromptArgument(
            name=parameter.name,
            description=describe.get(parameter.name, UNSET),
            required=parameter.default is parameter.empty,
        )
        for parameter in parameters
    ]
    info = PromptInfo(
        name=name, title=title, description=inspect.cleandoc(function.__doc__), arguments=arguments or UNSET
    )
    return Prompt(info, function)


def prompt_methods(prompts: Mapping[str, Prompt]) -> Methods:
    """`prompts/list` and `prompts/get`."""

    async def list_prompts(_: Call, params: ListParams) -> ListPromptsResult:
        items, cursor = page([prompt.info for prompt in prompts.values()], params.cursor)
        return ListPromptsResult(prompts=items, next_cursor=cursor)

    async def get_prompt(call: Call, params: GetPromptParams) -> GetPromptResult:
        prompt = prompts.get(params.name)
        if prompt is None:
            raise PromptNotFound(params.name, tuple(prompts))
        messages = await prompt.messages(call, params.arguments)
        return GetPromptResult(messages=messages, description=prompt.info.description)

    return {
        "prompts/list": method(ListParams, list_prompts, fresh_ms=FRESH_MS),
        "prompts/get": method(GetPromptParams, get_prompt),
    }
