"""Tools from functions: name, description and schemas come from the signature and the docstring.

Source: server/tools.
"""

from __future__ import annotations

import ast
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from functools import cache, partial
from typing import Any, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict

from ragcommon.errors import leaf
from ragmcp import errors
from ragmcp.older_revisions import require_legacy
from ragmcp.protocol.decoding import decode
from ragmcp.protocol.eras import ARGUMENT_RESULTS_SINCE, Era
from ragmcp.protocol.json_schema import flat_schema, input_schema
from ragmcp.protocol.pagination import page
from ragmcp.protocol.schema import tools as schema
from ragmcp.protocol.schema.base import ListParams, Result
from ragmcp.protocol.schema.content import Content, TextContent
from ragmcp.server.call import FRESH_MS, Call, InputNeeded, Methods, Work, method

log = logging.getLogger(__name__)

_NAMED = msgspec.json.Decoder(dict[str, Raw])
_CONTENT = {*get_args(Content)}

T = TypeVar("T")
Function: TypeAlias = Callable[..., Awaitable[Any]]


class ToolResult(Struct, Generic[T], frozen=True):
    """A result whose text the tool chose itself; `structured` is the typed form of the same thing."""

    content: list[Content]
    structured: T


class Tool(Struct, frozen=True):
    """A function that can be called over the wire.

    `tool` makes one from the types of a function. With a decoder of `dict[str, Any]` for its arguments it can
    have any schema, such as that of a tool of another server.
    """

    info: schema.ToolInfo
    function: Function
    arguments: msgspec.json.Decoder[Any]
    background: bool = False
    returns: Any = Any
    """The type that the function returns, unless it returns a ToolResult."""

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.info.name

    async def run(self, call: Call, arguments: Raw) -> ToolResult[Any]:
        """Call the function; `structured` is UNSET if it returned text only.

        Raises InvalidArguments for arguments that do not fit the schema, ValidationError for a result of
        another type than the function declares, and what the function raises.
        """
        decoded = self._decoded(arguments)
        given = decoded if isinstance(decoded, dict) else asdict(decoded)
        return _as_result(await self.function(call, **given), self.returns)

    def _decoded(self, arguments: Raw) -> Any:
        """Some hosts name every argument: a null that does not fit means that it was left out."""
        try:
            return decode(self.arguments, arguments)
        except errors.InvalidParams as error:
            name = error.path.removeprefix("$.")
            known, required = (set(self.info.input_schema.get(key, ())) for key in ("properties", "required"))
            given = _NAMED.decode(arguments) if name in known - required else {}
            if bytes(given.pop(name, b"")) != b"null":
                raise errors.InvalidArguments(error.path, error.reason) from None
        return self._decoded(Raw(msgspec.json.encode(given)))


def tool(
    *, read_only: bool = False, idempotent: bool = False, destructive: bool = False, background: bool = False
) -> Callable[[Function], Tool]:
    """Make a tool of `async def Name(call: Call, argument: type = default, …)`.

    It returns a str, a list of content, an object in JSON (a msgspec Struct, a dataclass, a TypedDict, a
    `dict[str, int]` …), or a ToolResult of these. The docstring describes the tool;
    `Annotated[int, msgspec.Meta(ge=1, description=…)]` constrains and describes an argument.
    With `background` it may go on as a task: `await call.background()`.
    Raises BadFunction for a function that does not fit.
    """
    annotations = schema.ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent or read_only,
        open_world_hint=False,
    )
    return lambda function: _make(function, annotations, background)


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools by their names. Raises BadFunction for what is not a Tool, and for duplicate names."""
    found = dict[str, Tool]()
    for one in tools:
        if not isinstance(one, Tool):
            raise errors.BadFunction(getattr(one, "__name__", repr(one)), "it was not made with @tool()")
        if found.setdefault(one.name, one) is not one:
            raise errors.BadFunction(one.name, "another tool has the same name")
    return found


def _make(function: Function, annotations: schema.ToolAnnotations, background: bool) -> Tool:
    # A partial is a coroutine function without a name.
    name = getattr(function, "__name__", "")
    if not name or not inspect.iscoroutinefunction(function):
        raise errors.BadFunction(name or repr(function), "it is not an async function")
    description = _description(function)
    if not description:
        raise errors.BadFunction(name, "it has no docstring, so a model would not know what it is for")
    signature = inspect.signature(function)
    key = function.__module__, function.__code__, name, description, annotations, str(signature)
    if key not in _forms:
        try:
            hints = get_type_hints(function, include_extras=True)
            arguments = _arguments(name, signature, hints)
            returns, output_schema = _returned(name, hints.get("return"))
            info = schema.ToolInfo(
                name=name,
                description=description,
                input_schema=input_schema(arguments),
                output_schema=output_schema,
                annotations=annotations,
            )
        except (TypeError, NameError, RuntimeError) as error:
            reason = str(error).splitlines()[-1]
            raise errors.BadFunction(name, f"its type hints have no JSON form: {reason}") from error
        _forms[key] = info, msgspec.json.Decoder(arguments), returns
    info, decoder, returns = _forms[key]
    return Tool(info, function, decoder, background, returns)


# By code, description and signature, with its defaults: a process that makes several servers makes each tool
# again from the same code, and the schemas of 46 tools take 60 ms.
_forms: dict[tuple[object, ...], tuple[schema.ToolInfo, msgspec.json.Decoder[Any], Any]] = {}


def _description(function: Function) -> str:
    """Its docstring; from its source where Python leaves docstrings out (`-OO`, PYTHONOPTIMIZE=2)."""
    if function.__doc__ or sys.flags.optimize < 2:
        return inspect.cleandoc(function.__doc__ or "")
    import textwrap

    try:
        source = textwrap.dedent(inspect.getsource(function))
        # From Python 3.13 on, `ast.parse` leaves docstrings out too.
        module = compile(source, "", "exec", ast.PyCF_ONLY_AST, optimize=0)
    except (OSError, SyntaxError):
        return ""
    (definition,) = ast.iter_child_nodes(module)
    return (isinstance(definition, ast.AsyncFunctionDef) and ast.get_docstring(definition)) or ""


def _arguments(name: str, signature: inspect.Signature, hints: dict[str, Any]) -> type[Struct]:
    first, *parameters = signature.parameters.values() or (None,)
    if first is None or first.kind is not first.POSITIONAL_OR_KEYWORD:
        raise errors.BadFunction(name, "its first parameter is not the call")
    kinds = [hints.get(each) for each in signature.parameters]
    if kinds[0] not in (Call, Any, None) or Call in kinds[1:]:
        raise errors.BadFunction(name, f"its first parameter, {first.name}, is not the call")
    members: list[tuple[str, Any, Any]] = []
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise errors.BadFunction(name, f"its parameter {parameter.name} cannot be given by name")
        if parameter.name not in hints:
            raise errors.BadFunction(name, f"its argument {parameter.name} has no type hint")
        default = msgspec.NODEFAULT if parameter.default is parameter.empty else parameter.default
        if deepcopy(default) is not default:  # A call could change it.
            default = msgspec.field(default_factory=partial(deepcopy, default))
        members.append((parameter.name, hints[parameter.name], default))
    return msgspec.defstruct(name, members, kw_only=True, forbid_unknown_fields=True)


def _returned(name: str, returned: Any) -> tuple[Any, dict[str, Any] | msgspec.UnsetType]:
    """The type of a tool's result without ToolResult, and the schema of its structured content."""
    if get_origin(returned) is ToolResult:
        (returned,) = get_args(returned)
    (item,) = get_args(returned) if get_origin(returned) is list else (None,)
    if returned in (str, ToolResult) or {*(get_args(item) or [item])} <= _CONTENT:
        return returned, msgspec.UNSET
    if (found := _schema_of(returned)).get("type") == "object":
        return returned, found
    allowed = "a str, a list of content, an object in JSON such as a msgspec Struct, or a ToolResult"
    raise errors.BadFunction(name, f"it returns {returned!r}; a tool returns {allowed}")


# Many tools return the same type.
_schema_of = cache(flat_schema)


def _as_result(returned: Any, declared: Any) -> ToolResult[Any]:
    if isinstance(returned, ToolResult):
        return returned
    if declared in (str, Any) and isinstance(returned, str):
        return ToolResult([TextContent(text=returned)], msgspec.UNSET)
    # "Servers MUST provide structured results that conform to this schema." (server/tools)
    msgspec.json.decode(text := msgspec.json.encode(returned), type=declared)
    if isinstance(returned, list | tuple):
        return ToolResult([*returned], msgspec.UNSET)
    # "For backwards compatibility, a tool that returns structured content SHOULD also return the serialized
    # JSON in a TextContent block." (server/tools)
    return ToolResult([TextContent(text=text.decode())], returned)


def tool_methods(
    tools: Mapping[str, Tool],
    run_in_background: Callable[[Call, Work], Awaitable[Result]],
    withheld: Mapping[str, Callable[[], Exception]],
) -> Methods:
    """`tools/list` and `tools/call`; `run_in_background` runs what may become a task.

    `withheld` makes the error for each tool that exists but is not offered.
    """
    # By revision and cursor: the tools of a page and their JSON. Encoding 46 tools takes 200 µs.
    pages: dict[tuple[str, object], tuple[list[schema.ToolInfo], list[Raw]]] = {}

    async def list_tools(call: Call, params: ListParams) -> schema.ListToolsResult:
        items, cursor = page([tool.info for tool in tools.values()], params.cursor)
        key = call.terms.revision, params.cursor
        listed, encoded = pages.get(key, ([], []))
        if items != listed:  # They have changed; the same objects are equal without a look into them.
            known = items
            if call.terms.era is Era.LEGACY:
                downgrade = partial(require_legacy("downgrade").downgrade_tool, call.terms.revision)
                known = [downgrade(info) for info in items]
            encoded = [Raw(msgspec.json.encode(info)) for info in known]
            pages[key] = items, encoded
        return schema.ListToolsResult(tools=encoded, next_cursor=cursor)

    async def call_tool(call: Call, params: schema.CallToolParams) -> Result:
        tool = tools.get(params.name)
        if tool is None:
            unknown = partial(errors.ToolNotFound, params.name, tuple(tools))
            raise withheld.get(params.name, unknown)()
        if not bytes(params.arguments).startswith(b"{"):
            raise errors.InvalidParams("$.arguments", "expected `object`")
        if tool.background:
            return await run_in_background(call, lambda: _run(call, tool, params.arguments))
        return await _run(call, tool, params.arguments)

    return {
        "tools/list": method(ListParams, list_tools, fresh_ms=FRESH_MS),
        "tools/call": method(schema.CallToolParams, call_tool),
    }


async def _run(call: Call, tool: Tool, arguments: Raw) -> schema.CallToolResult:
    try:
        result = await tool.run(call, arguments)
    except errors.InvalidArguments as error:
        if call.terms.revision < ARGUMENT_RESULTS_SINCE:
            raise
        names = ", ".join(tool.info.input_schema.get("properties", ()))
        hint = f"{tool.name} takes: {names or 'no arguments'}."
        return _failure(call, tool, errors.ToolError(error.code, str(error), error.details(), hint))
    except Exception as error:
        # A task group wraps what is raised in it.
        if isinstance(first := leaf(error), errors.RemoteProtocolError | InputNeeded):
            raise first from None
        return _failure(call, tool, first if isinstance(first, errors.ToolError) else error)
    return schema.CallToolResult(content=result.content, structured_content=result.structured)


def _failure(call: Call, tool: Tool, error: Exception) -> schema.CallToolResult:
    if not isinstance(error, errors.ToolError):
        if isinstance(error, errors.ConnectionClosed) and call.channel.closed.is_set():
            log.info("The client disconnected before the response of %s", tool.name)
        else:
            log.error("The tool %s failed", tool.name, exc_info=error)
        reason = f"{tool.name} failed unexpectedly; the server's log says more."
        error = errors.ToolError("INTERNAL_ERROR", reason)
    content: list[Content] = [TextContent(text=text) for text in (str(error), error.hint) if text]
    return schema.CallToolResult(content=content, structured_content=error.data(call.id), is_error=True)
