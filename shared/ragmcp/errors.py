"""The errors of MCP, and which side is at fault.

A subclass of RagMcpError declares its fields and a `sentence` over them. `code` is the stable word of the
wire's `errorCode`, `rpc_code` the JSON-RPC number, `hint` what the user can do ("" where nothing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ragcommon.errors import TemplateError


class RagMcpError(TemplateError):
    """The root."""


class LocalProtocolError(RagMcpError):
    """We were about to do something the protocol does not allow."""

    code: ClassVar[str] = "INTERNAL_ERROR"


class RemoteProtocolError(RagMcpError):
    """The peer did something the protocol does not allow."""

    code: ClassVar[str] = "INVALID_REQUEST"
    rpc_code: ClassVar[int] = -32600

    def details(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {name: getattr(self, name) for name in self._fields if name != "hint"}

    def required_data(self) -> dict[str, Any]:
        """The members that the specification requires in the wire error's `data`."""
        return {}

    def data(self, id: int | str | None) -> dict[str, Any]:
        """The wire error's `data` for the request `id`."""
        return {"errorCode": self.code, "details": self.details(), "requestId": id, **self.required_data()}


class AsyncioRequired(RagMcpError):
    """Called under another library for asynchronous code, or outside of any event loop."""

    sentence = "This runs only in an event loop of asyncio; trio is not supported."
    hint = "Start the program with `asyncio.run`, or with `anyio.run` without another backend."


class BadFunction(LocalProtocolError):
    """A function that cannot be offered as a tool."""

    name: str
    reason: str
    code: ClassVar[str] = "INTERNAL_ERROR"
    sentence = "{name} cannot be a tool: {reason}."


class NotEncodable(LocalProtocolError):
    """A value that has no JSON form, such as a lone surrogate."""

    what: str
    reason: str
    code: ClassVar[str] = "INTERNAL_ERROR"
    sentence = "{what} cannot be written as JSON: {reason}."


class NotJson(RemoteProtocolError):
    """A line that cannot be decoded."""

    reason: str
    code = "PARSE_ERROR"
    rpc_code = -32700
    sentence = "The message is not valid JSON: {reason}."


class MessageTooLarge(RemoteProtocolError):
    """A line longer than `limit` bytes. It was skipped; the connection continues."""

    size: int
    limit: int
    sentence = "The message of {size:,} bytes is over the limit of {limit:,} bytes."
    hint = "Send less at once, or raise the limit on message size on the receiving side."


class InvalidRequest(RemoteProtocolError):
    """Valid JSON, but not a JSON-RPC message that is allowed here."""

    reason: str
    sentence = "Invalid request: {reason}."


class MethodNotFound(RemoteProtocolError):
    """A method that does not exist, or not in this revision."""

    method: str
    rpc_code = -32601
    sentence = "Unknown method {method!r}."


class InvalidParams(RemoteProtocolError):
    """A parameter of the wrong shape; `path` names it (`$.top_k`)."""

    path: str
    reason: str
    rpc_code = -32602
    sentence = "Invalid parameter {path}: {reason}."


class InvalidArguments(InvalidParams):
    """Arguments that do not fit a tool: a result with `isError` from revision 2025-11-25 on (SEP-1303)."""


class ToolNotFound(RemoteProtocolError):
    tool: str
    available: Sequence[str]
    rpc_code = -32602
    sentence = "Unknown tool {tool!r}; available: {available}."


class PromptNotFound(RemoteProtocolError):
    prompt: str
    available: Sequence[str]
    rpc_code = -32602
    sentence = "Unknown prompt {prompt!r}; available: {available}."


class ResourceNotFound(RemoteProtocolError):
    """Raised by `Resources.read` for a URI that it does not have."""

    uri: str
    rpc_code = -32602
    sentence = "There is no resource {uri!r}."

    def required_data(self) -> dict[str, Any]:
        return {"uri": self.uri}


class LegacyResourceNotFound(ResourceNotFound):
    """The same with the number that revisions before 2026-07-28 use."""

    rpc_code = -32002


class UnsupportedRevision(RemoteProtocolError):
    """A protocol revision that this side does not speak."""

    requested: str
    supported: Sequence[str]
    code = "UNSUPPORTED_PROTOCOL_VERSION"
    rpc_code = -32022
    sentence = "Protocol version {requested!r} is not supported; supported: {supported}."

    def required_data(self) -> dict[str, Any]:
        return {"supported": list(self.supported), "requested": self.requested}


class MissingCapability(RemoteProtocolError):
    """The request needs something that the client did not declare."""

    required: Mapping[str, Any]
    code = "MISSING_CLIENT_CAPABILITY"
    rpc_code = -32021
    sentence = "This request needs the client capability {names}, which the client did not declare."

    @property
    def names(self) -> list[str]:
        return list(self.required.get("extensions") or self.required)

    def required_data(self) -> dict[str, Any]:
        return {"requiredCapabilities": dict(self.required)}


class UnreadableAnswer(RemoteProtocolError):
    """A result of a shape that the method does not allow."""

    method: str
    reason: str
    rpc_code = -32603
    sentence = "The answer to {method} is not usable: {reason}."


class WireError(RagMcpError):
    """The peer answered with a JSON-RPC error: `code` is its number, `error_code` the stable word.

    `http_status` is 0 if it did not come over HTTP. `method` is set where the user did not ask for anything.
    """

    code: int
    message: str
    data: Any = None
    http_status: int = 0
    method: str = ""

    def __str__(self) -> str:
        return f"It refused {self.method}: {self.message}" if self.method else self.message

    @property
    def error_code(self) -> str:
        """The stable word of our own servers, "" from a server that sends none."""
        word = self.data.get("errorCode") if isinstance(self.data, dict) else None
        return word if isinstance(word, str) else ""


class ToolError(RagMcpError):
    """Raised by a tool that failed while running: becomes a result with `isError`.

    `code` is a stable word for programs, `message` a sentence, `hint` what the model can do about it.
    """

    code: str
    message: str
    details: Mapping[str, Any] = {}
    hint: str = ""
    sentence = "{message}"

    def data(self, id: int | str | None) -> dict[str, Any]:
        """The structured content of the result of the request `id`."""
        hint = {"hint": self.hint} if self.hint else {}
        return {"errorCode": self.code, "details": {**self.details, **hint}, "requestId": id}


class InputDeclined(RagMcpError):
    """A server does not get what it asks its client for; `reason` is a sentence."""

    reason: str
    code: ClassVar[str] = "INPUT_DECLINED"
    # "User rejected sampling request" (client/sampling)
    rpc_code: ClassVar[int] = -1
    sentence = "{reason}"


class ConnectionClosed(RagMcpError):
    """The connection has ended; pending requests get no answer."""

    method: str = ""
    reason: str = ""
    code: ClassVar[str] = "CONNECTION_CLOSED"

    def __str__(self) -> str:
        before = f" before it answered {self.method}" if self.method else ""
        why = f": {self.reason}" if self.reason else ""
        return f"The connection to the server was closed{before}{why}."


class RequestTimedOut(RagMcpError):
    """No answer in time; the request has been cancelled."""

    method: str
    seconds: float
    sentence = "The server did not answer {method} within {seconds:g} s."


class ServerNotStarted(RagMcpError):
    """The server's program could not be run, or ended before it answered."""

    command: Sequence[str]
    reason: str
    sentence = "The server `{line}` did not start: {reason}."

    @property
    def line(self) -> str:
        return " ".join(self.command)


class ServerUnreachable(RagMcpError):
    """No connection to the server was made, so it has received nothing."""

    url: str
    reason: str
    hint: str = "Check that the server is running and that the address is right."
    sentence = "The server at {url} cannot be reached: {reason}."
