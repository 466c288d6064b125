"""Tools from functions: name, description and schemas come from the signature and the docstring.

Not the protocol: a `Tool` decodes arguments and runs the function; how a call arrives is no concern here.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct

from ragmcp.errors import BadTool, ToolError
from ragmcp.protocol.json_schema import flat_schema
from ragmcp.protocol.schema.content import Content, TextContent
from ragmcp.protocol.schema.tools import ToolAnnotations, ToolInfo
from ragmcp.protocol.validation import decode

if TYPE_CHECKING:
    from ragmcp.server.call import Call

__all__ = ["TextContent", "Tool", "ToolError", "ToolResult", "tool"]

T = TypeVar("T")
Function = Callable[..., Awaitable[Any]]


class ToolResult(Struct, Generic[T], frozen=True):
    """A result whose text the tool chose itself; `structured` is the typed form of the same thing."""

    content: list[Content]
    structured: T


class Tool(Struct, frozen=True):
    """A function that can be called over the wire."""

    info: ToolInfo
    function: Function
    arguments: msgspec.json.Decoder[Any]
    background: bool = False

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.info.name

    async def run(self, call: Call, arguments: Raw) -> ToolResult[Any]:
        """Call the function; `structured` is UNSET where it returned text only.

        Raises InvalidParams for arguments that do not fit the schema, and what the function raises.
        """
        decoded = decode(self.arguments, arguments)
        return _as_result(await self.function(call, **msgspec.structs.asdict(decoded)))


def tool(
    *,
    read_only: bool = False,
    idempotent: bool = False,
    destructive: bool = False,
    background: bool = False,
) -> Callable[[Function], Tool]:
    """Make a tool of `async def Name(call: Call, argument: type = default, …)`.

    It returns a Struct, a str, a `list[Content]` or a `ToolResult[Struct]`. The docstring describes the tool;
    `Annotated[int, msgspec.Meta(ge=1, description=…)]` constrains and describes an argument.
    With `background` it may go on as a task: `await call.background()`.
    Raises BadTool for a function that does not fit.
    """
    annotations = ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent or read_only,
        open_world_hint=False,
    )
    return lambda function: _make(function, annotations, background)


def _make(function: Function, annotations: ToolAnnotations, background: bool) -> Tool:
    name = function.__name__
    if not function.__doc__:
        raise BadTool(name, "it has no docstring, so a model would not know what it is for")
    if not inspect.iscoroutinefunction(function):
        raise BadTool(name, "it is not an async function")
    hints = get_type_hints(function, include_extras=True)
    arguments = _arguments(name, function, hints)
    info = ToolInfo(
        name=name,
        description=inspect.cleandoc(function.__doc__),
        input_schema=flat_schema(arguments),
        output_schema=_output_schema(name, hints.get("return")),
        annotations=annotations,
    )
    return Tool(info, function, msgspec.json.Decoder(arguments), background)


def _arguments(name: str, function: Function, hints: dict[str, Any]) -> type[Struct]:
    first, *parameters = inspect.signature(function).parameters.values() or (None,)
    if first is None or first.kind is not first.POSITIONAL_OR_KEYWORD:
        raise BadTool(name, "its first parameter is not the call")
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters:
        if parameter.name not in hints:
            raise BadTool(name, f"its argument {parameter.name} has no type hint")
        required = parameter.default is parameter.empty
        hint = hints[parameter.name]
        fields.append((parameter.name, hint) if required else (parameter.name, hint, parameter.default))
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _output_schema(name: str, returned: Any) -> dict[str, Any] | msgspec.UnsetType:
    if get_origin(returned) is ToolResult:
        (returned,) = get_args(returned)
    if returned in (str, list[Content], ToolResult):
        return msgspec.UNSET
    if isinstance(returned, type) and issubclass(returned, Struct):
        return flat_schema(returned)
    allowed = "a msgspec Struct, a str, a list[Content] or a ToolResult"
    raise BadTool(name, f"it returns {returned!r}; a tool returns {allowed}")


def _as_result(returned: Any) -> ToolResult[Any]:
    if isinstance(returned, ToolResult):
        return returned
    if isinstance(returned, str):
        returned = [TextContent(text=returned)]
    if isinstance(returned, list):
        return ToolResult(returned, msgspec.UNSET)
    # "For backwards compatibility, a tool that returns structured content SHOULD also return the serialized
    # JSON in a TextContent block." (server/tools)
    text = msgspec.json.encode(returned).decode()
    return ToolResult([TextContent(text=text)], returned)
