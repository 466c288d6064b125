"""Prompts: templates of messages that a user chooses. Source: server/prompts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from ragmcp.errors import InvalidParams, PromptNotFound
from ragmcp.protocol.pagination import page
from ragmcp.protocol.schema import prompts as schema
from ragmcp.protocol.schema.base import ListParams
from ragmcp.protocol.schema.content import TextContent
from ragmcp.server.call import FRESH_MS, Call, Methods, method

# async def name(call: Call, argument: str, optional: str = ""): the user's text, or messages.
Function: TypeAlias = Callable[..., Awaitable[str | list[schema.PromptMessage]]]


class Prompt(Struct, frozen=True):
    """A function that makes a prompt's messages."""

    info: schema.PromptInfo
    function: Function

    async def messages(self, call: Call, arguments: dict[str, str]) -> list[schema.PromptMessage]:
        """Raises InvalidParams for arguments it does not take, and what the function raises."""
        described = self.info.arguments or []
        names = {argument.name for argument in described}
        if unknown := arguments.keys() - names:
            takes = ", ".join(sorted(names)) or "no arguments"
            raise InvalidParams(f"$.arguments.{min(unknown)}", f"the prompt takes {takes}")
        for argument in described:
            if argument.required is True and argument.name not in arguments:
                raise InvalidParams(f"$.arguments.{argument.name}", "required, but missing")
        made = await self.function(call, **arguments)
        if isinstance(made, str):
            return [schema.PromptMessage(role="user", content=TextContent(text=made))]
        return made


def prompt_methods(prompts: Mapping[str, Prompt]) -> Methods:
    """`prompts/list` and `prompts/get`."""

    async def list_prompts(_: Call, params: ListParams) -> schema.ListPromptsResult:
        items, cursor = page([prompt.info for prompt in prompts.values()], params.cursor)
        return schema.ListPromptsResult(prompts=items, next_cursor=cursor)

    async def get_prompt(call: Call, params: schema.GetPromptParams) -> schema.GetPromptResult:
        prompt = prompts.get(params.name)
        if prompt is None:
            raise PromptNotFound(params.name, tuple(prompts))
        messages = await prompt.messages(call, params.arguments)
        return schema.GetPromptResult(messages=messages, description=prompt.info.description)

    return {
        "prompts/list": method(ListParams, list_prompts, fresh_ms=FRESH_MS),
        "prompts/get": method(schema.GetPromptParams, get_prompt),
    }
