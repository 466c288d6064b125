"""What can go wrong in MCP, and whose fault it is. Each leaf holds its data and computes its own sentence.

`code` is the stable word of the wire's `errorCode`, `rpc_code` the JSON-RPC number, `hint` what the user can
do ("" where nothing).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


class RagMcpError(Exception):
    """The root of them all."""

    hint: str = ""


class LocalProtocolError(RagMcpError):
    """We were about to do something the protocol does not allow."""

    code: ClassVar[str] = "INTERNAL_ERROR"


class RemoteProtocolError(RagMcpError):
    """The peer did something the protocol does not allow."""

    code: ClassVar[str] = "INVALID_REQUEST"
    rpc_code: ClassVar[int] = -32600

    def details(self) -> dict[str, Any]:
        """The data of the error, ready for JSON."""
        if not dataclasses.is_dataclass(self):
            return {}
        names = (field.name for field in dataclasses.fields(self))
        return {name: getattr(self, name) for name in names if name != "hint"}

    def required_data(self) -> dict[str, Any]:
        """What the specification itself wants in the wire error's `data`."""
        return {}


@dataclass(eq=False)
class BadTool(LocalProtocolError):
    """A function that cannot be offered as a tool."""

    tool: str
    reason: str

    def __str__(self) -> str:
        return f"{self.tool} cannot be a tool: {self.reason}."


@dataclass(eq=False)
class BadPrompt(LocalProtocolError):
    """A function that cannot be offered as a prompt."""

    prompt: str
    reason: str

    def __str__(self) -> str:
        return f"{self.prompt} cannot be a prompt: {self.reason}."


@dataclass(eq=False)
class NotEncodable(LocalProtocolError):
    """A value that has no JSON form, such as a lone surrogate."""

    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what} cannot be written as JSON: {self.reason}."


@dataclass(eq=False)
class NotJson(RemoteProtocolError):
    """A line that could not be read."""

    code = "PARSE_ERROR"
    rpc_code = -32700
    reason: str

    def __str__(self) -> str:
        return f"The message is not valid JSON: {self.reason}."


@dataclass(eq=False)
class MessageTooLarge(RemoteProtocolError):
    """A line longer than `limit` bytes; it was skipped, the connection lives on."""

    code = "MESSAGE_TOO_LARGE"
    size: int
    limit: int
    hint: str = "Send less at once, or raise the limit on message size on the receiving side."

    def __str__(self) -> str:
        return f"The message of {self.size:,} bytes is over the limit of {self.limit:,} bytes."


@dataclass(eq=False)
class InvalidRequest(RemoteProtocolError):
    """JSON, but no JSON-RPC message that may come here."""

    reason: str

    def __str__(self) -> str:
        return f"Invalid request: {self.reason}."


@dataclass(eq=False)
class MethodNotFound(RemoteProtocolError):
    """A method that does not exist, or not in this revision."""

    code = "METHOD_NOT_FOUND"
    rpc_code = -32601
    method: str

    def __str__(self) -> str:
        return f"Unknown method {self.method!r}."


@dataclass(eq=False)
class InvalidParams(RemoteProtocolError):
    """A parameter of the wrong shape; `path` names it (`$.top_k`)."""

    code = "INVALID_PARAMS"
    rpc_code = -32602
    path: str
    reason: str

    def __str__(self) -> str:
        return f"Invalid parameter {self.path}: {self.reason}."


@dataclass(eq=False)
class ToolNotFound(RemoteProtocolError):
    """A call of a tool that is not offered."""

    code = "TOOL_NOT_FOUND"
    rpc_code = -32602
    tool: str
    available: Sequence[str]

    def __str__(self) -> str:
        return f"Unknown tool {self.tool!r}; there are: {', '.join(self.available) or 'none'}."


@dataclass(eq=False)
class PromptNotFound(RemoteProtocolError):
    """A prompt that is not offered."""

    code = "PROMPT_NOT_FOUND"
    rpc_code = -32602
    prompt: str
    available: Sequence[str]

    def __str__(self) -> str:
        return f"Unknown prompt {self.prompt!r}; there are: {', '.join(self.available) or 'none'}."


@dataclass(eq=False)
class ResourceNotFound(RemoteProtocolError):
    """A resource that does not exist."""

    code = "RESOURCE_NOT_FOUND"
    rpc_code = -32602
    uri: str

    def __str__(self) -> str:
        return f"There is no resource {self.uri!r}."

    def required_data(self) -> dict[str, Any]:
        return {"uri": self.uri}


class LegacyResourceNotFound(ResourceNotFound):
    """The same before 2026-07-28, which gave the number up."""

    rpc_code = -32002


@dataclass(eq=False)
class UnsupportedRevision(RemoteProtocolError):
    """A protocol revision that is not spoken here."""

    code = "UNSUPPORTED_PROTOCOL_VERSION"
    rpc_code = -32022
    requested: str
    supported: Sequence[str]

    def __str__(self) -> str:
        return (
            f"Protocol version {self.requested!r} is not supported; supported: {', '.join(self.supported)}."
        )

    def required_data(self) -> dict[str, Any]:
        return {"supported": list(self.supported), "requested": self.requested}


@dataclass(eq=False)
class MissingCapability(RemoteProtocolError):
    """The request needs something that the client did not declare."""

    code = "MISSING_CLIENT_CAPABILITY"
    rpc_code = -32021
    required: Mapping[str, Any]

    def __str__(self) -> str:
        names = ", ".join(self.required.get("extensions") or self.required)
        return f"The client does not declare the capability {names}, which this needs."

    def required_data(self) -> dict[str, Any]:
        return {"requiredCapabilities": dict(self.required)}


@dataclass(eq=False)
class UnreadableAnswer(RemoteProtocolError):
    """An answer that is not what the method promises; not the fault of whose request needed it."""

    code = "UNREADABLE_ANSWER"
    rpc_code = -32603
    method: str
    reason: str

    def __str__(self) -> str:
        return f"The answer to {self.method} is not usable: {self.reason}."


@dataclass(eq=False)
class WireError(RagMcpError):
    """The peer answered with a JSON-RPC error: `code` is its number, `error_code` the stable word.

    `http_status` is 0 where it did not come over HTTP.
    """

    code: int
    message: str
    data: Any = None
    http_status: int = 0

    @property
    def error_code(self) -> str:
        """The stable word of our own servers, "" from a server that sends none."""
        word = self.data.get("errorCode") if isinstance(self.data, dict) else None
        return word if isinstance(word, str) else ""

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class ToolError(RagMcpError):
    """Raised by a tool that failed while running: becomes a result with `isError`."""

    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class ConnectionClosed(RagMcpError):
    """The peer is gone; what it was asked remains unanswered."""

    code: ClassVar[str] = "CONNECTION_CLOSED"
    method: str = ""
    reason: str = ""

    def __str__(self) -> str:
        what = f" before it answered {self.method}" if self.method else ""
        why = f": {self.reason}" if self.reason else ""
        return f"The connection to the server was closed{what}{why}."


@dataclass(eq=False)
class RequestTimedOut(RagMcpError):
    """No answer in time; the request has been cancelled."""

    code: ClassVar[str] = "REQUEST_TIMED_OUT"
    method: str
    seconds: float

    def __str__(self) -> str:
        return f"The server did not answer {self.method} within {self.seconds:g} s."


@dataclass(eq=False)
class TaskCancelled(RagMcpError):
    """The task that a call had become was called off at the server."""

    code: ClassVar[str] = "TASK_CANCELLED"
    method: str
    reason: str = ""

    def __str__(self) -> str:
        return (
            f"The server called off what {self.method} had begun{f': {self.reason}' if self.reason else ''}."
        )


@dataclass(eq=False)
class ServerNotStarted(RagMcpError):
    """The server's program could not be run, or ended before it answered."""

    code: ClassVar[str] = "SERVER_NOT_STARTED"
    command: Sequence[str]
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return f"The server `{' '.join(self.command)}` did not start: {self.reason}."


@dataclass(eq=False)
class ServerUnreachable(RagMcpError):
    """No connection to the server came about; what it was to be asked has not been asked."""

    code: ClassVar[str] = "SERVER_UNREACHABLE"
    url: str
    reason: str
    hint: str = "Check that the server is running, and that the address is its own."

    def __str__(self) -> str:
        return f"The server at {self.url} cannot be reached: {self.reason}."
