"""MCP in five revisions, as server and as client, over stdio and HTTP.

Start with `protocol`, which is pure; `server` and `client` are the two ends; `stdio` and `http` are the
shells around them; `oauth` authorizes a client over HTTP; `legacy` holds what only older revisions need.
Imports neither of the two programs. The names below are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragmcp.client.features import Client
    from ragmcp.client.handlers import Handlers
    from ragmcp.errors import RagMcpError, ResourceNotFound, ToolError
    from ragmcp.http.asgi import Endpoint
    from ragmcp.http.connect import open_http
    from ragmcp.protocol.schema.completion import PromptReference, Reference, TemplateReference
    from ragmcp.protocol.schema.content import Content, ImageContent, ResourceContents, TextContent
    from ragmcp.protocol.schema.input import Elicit, ElicitResult, ListRoots, Root, Sample, SamplingResult
    from ragmcp.protocol.schema.logging import LogMessage
    from ragmcp.protocol.schema.prompts import PromptArgument, PromptInfo, PromptMessage
    from ragmcp.protocol.schema.resources import ResourceInfo, ResourceTemplate
    from ragmcp.protocol.schema.subscriptions import Filter, list_changed, resource_updated
    from ragmcp.server.call import Call
    from ragmcp.server.core import Server
    from ragmcp.server.prompts import Prompt
    from ragmcp.server.tools import Tool, ToolResult, tool
    from ragmcp.stdio.connect import open_stdio
    from ragmcp.stdio.serve import serve_stdio

__all__ = ["Call", "Client", "Content", "Elicit", "ElicitResult", "Endpoint", "Filter", "Handlers"]
__all__ += ["ImageContent", "ListRoots", "LogMessage", "Prompt", "PromptArgument", "PromptInfo"]
__all__ += ["PromptMessage", "PromptReference", "RagMcpError", "Reference", "ResourceContents"]
__all__ += ["ResourceInfo", "ResourceNotFound", "ResourceTemplate", "Root", "Sample", "SamplingResult"]
__all__ += ["Server", "TemplateReference", "TextContent", "Tool", "ToolError", "ToolResult", "list_changed"]
__all__ += ["open_http", "open_stdio", "resource_updated", "serve_stdio", "tool"]

_HOMES = {
    "client.features": "Client",
    "client.handlers": "Handlers",
    "errors": "RagMcpError ResourceNotFound ToolError",
    "http.asgi": "Endpoint",
    "http.connect": "open_http",
    "protocol.schema.completion": "PromptReference Reference TemplateReference",
    "protocol.schema.content": "Content ImageContent ResourceContents TextContent",
    "protocol.schema.input": "Elicit ElicitResult ListRoots Root Sample SamplingResult",
    "protocol.schema.logging": "LogMessage",
    "protocol.schema.prompts": "PromptArgument PromptInfo PromptMessage",
    "protocol.schema.resources": "ResourceInfo ResourceTemplate",
    "protocol.schema.subscriptions": "Filter list_changed resource_updated",
    "server.call": "Call",
    "server.core": "Server",
    "server.prompts": "Prompt",
    "server.tools": "Tool ToolResult tool",
    "stdio.connect": "open_stdio",
    "stdio.serve": "serve_stdio",
}


if not TYPE_CHECKING:  # For mypy it would make every name valid.

    def __getattr__(name: str) -> object:
        for module, names in _HOMES.items():
            if name in names.split():
                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
