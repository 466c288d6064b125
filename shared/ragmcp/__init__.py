"""MCP in five revisions, as server and as client, over stdio and HTTP.

Start with `protocol`, which is pure; `server` and `client` are the two ends; `stdio` and `http` are the
shells around them; `oauth` authorizes a client over HTTP; `legacy` holds what only older revisions need.
Imports neither of the two programs. The names below are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragmcp.client.features import Client as Client
    from ragmcp.client.handlers import Handlers as Handlers
    from ragmcp.errors import RagMcpError as RagMcpError
    from ragmcp.errors import ToolError as ToolError
    from ragmcp.http.asgi import Endpoint as Endpoint
    from ragmcp.http.connect import open_http as open_http
    from ragmcp.protocol.schema.input import Sample as Sample
    from ragmcp.protocol.schema.input import SamplingResult as SamplingResult
    from ragmcp.server.call import Call as Call
    from ragmcp.server.core import Server as Server
    from ragmcp.server.tools import ToolResult as ToolResult
    from ragmcp.server.tools import tool as tool
    from ragmcp.stdio.connect import open_stdio as open_stdio
    from ragmcp.stdio.serve import serve_stdio as serve_stdio

_HOMES = {
    "Call": "server.call",
    "Client": "client.features",
    "Endpoint": "http.asgi",
    "Handlers": "client.handlers",
    "RagMcpError": "errors",
    "Sample": "protocol.schema.input",
    "SamplingResult": "protocol.schema.input",
    "Server": "server.core",
    "ToolError": "errors",
    "ToolResult": "server.tools",
    "open_http": "http.connect",
    "open_stdio": "stdio.connect",
    "serve_stdio": "stdio.serve",
    "tool": "server.tools",
}
__all__ = list(_HOMES)


if not TYPE_CHECKING:  # For mypy it would make every name valid.

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
