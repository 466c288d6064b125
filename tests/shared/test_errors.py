"""Every error says in a sentence what happened, with which value.

Covers `ragmcp.http.errors` and `ragmcp.oauth.errors`.
"""

from __future__ import annotations

import msgspec
import pytest

from ragcommon.errors import TemplateError
from ragmcp import errors
from ragmcp.errors import RagMcpError, RemoteProtocolError
from ragmcp.http import access
from ragmcp.http import errors as http_errors
from ragmcp.http.reach import AddressRefused
from ragmcp.oauth import bearer
from ragmcp.oauth import errors as oauth_errors
from ragmcp.protocol.jsonrpc import error_object

SENTENCES: list[tuple[TemplateError, str]] = [
    (errors.AsyncioRequired(), "This runs only in an event loop of asyncio; trio is not supported."),
    (
        errors.BadFunction("Query", "it has no docstring"),
        "Query cannot be a tool: it has no docstring.",
    ),
    (errors.NotEncodable("The result", "it is a set"), "The result cannot be written as JSON: it is a set."),
    (errors.NotJson("it is not UTF-8"), "The message is not valid JSON: it is not UTF-8."),
    (
        errors.MessageTooLarge(70_000_000, 67_108_864),
        "The message of 70,000,000 bytes is over the limit of 67,108,864 bytes.",
    ),
    (errors.InvalidRequest("it is a number"), "Invalid request: it is a number."),
    (errors.MethodNotFound("tools/fly"), "Unknown method 'tools/fly'."),
    (errors.InvalidArguments("$.top_k", "expected `int`"), "Invalid parameter $.top_k: expected `int`."),
    (errors.ToolNotFound("Qurey", ("Query", "Inject")), "Unknown tool 'Qurey'; available: Query, Inject."),
    (errors.ToolNotFound("Query", ()), "Unknown tool 'Query'; available: none."),
    (errors.PromptNotFound("sum", ("sum_up",)), "Unknown prompt 'sum'; available: sum_up."),
    (errors.LegacyResourceNotFound("memory://x"), "There is no resource 'memory://x'."),
    (
        errors.UnsupportedRevision("1900-01-01", ("2026-07-28",)),
        "Protocol version '1900-01-01' is not supported; supported: 2026-07-28.",
    ),
    (
        errors.MissingCapability({"elicitation": {}}),
        "This request needs the client capability elicitation, which the client did not declare.",
    ),
    (errors.UnreadableAnswer("tools/list", "no tools"), "The answer to tools/list is not usable: no tools."),
    (errors.WireError(-32601, "Method not found"), "Method not found"),
    (errors.ToolError("OUT_OF_LUCK", "There was no luck left."), "There was no luck left."),
    (errors.InputDeclined("The user declined."), "The user declined."),
    (errors.ConnectionClosed(), "The connection to the server was closed."),
    (
        errors.ConnectionClosed("Query", "it ended with exit code 3"),
        "The connection to the server was closed before it answered Query: it ended with exit code 3.",
    ),
    (errors.RequestTimedOut("Query", 2.5), "The server did not answer Query within 2.5 s."),
    (
        errors.ServerNotStarted(["nope", "-x"], "there is no such program"),
        "The server `nope -x` did not start: there is no such program.",
    ),
    # HTTP
    (
        http_errors.HeaderMismatch("mcp-method", "is 'a', but the body says 'b'"),
        "Header mismatch: mcp-method is 'a', but the body says 'b'.",
    ),
    (
        http_errors.HttpMethodNotAllowed("PUT", ("POST", "GET")),
        "PUT is not allowed here; allowed: POST, GET.",
    ),
    (
        http_errors.NotAcceptable(("application/json", "text/event-stream")),
        "The Accept header must list application/json, text/event-stream.",
    ),
    (
        http_errors.UnsupportedMediaType("text/plain"),
        "The body must be application/json, uncompressed; this one is text/plain.",
    ),
    (
        http_errors.UnsupportedMediaType("not labelled"),
        "The body must be application/json, uncompressed; this one is not labelled.",
    ),
    (
        http_errors.HeadersTooLarge("there are 300, over the limit of 100"),
        "The headers are too large: there are 300, over the limit of 100.",
    ),
    (http_errors.BodyTooLarge(1_000_000), "The body is over the limit of 1,000,000 bytes."),
    (http_errors.BodyTooSlow(30.0), "The body did not arrive within 30 s."),
    (
        http_errors.SessionRequired("tools/list"),
        "tools/list needs the header Mcp-Session-Id, which initialize returns.",
    ),
    (http_errors.SessionNotFound(), "The session does not exist or has ended."),
    (
        http_errors.TooManyOpen("event streams", 10_000),
        "The limit of 10,000 event streams is reached; try again later.",
    ),
    (http_errors.ServerLeaving(), "The server is shutting down."),
    (access.HostNotAllowed("evil.example"), "The host 'evil.example' is not allowed."),
    (
        access.OriginNotAllowed("https://evil.example"),
        "Pages from 'https://evil.example' may not use this server.",
    ),
    (bearer.Unauthorized("none was sent"), "This server requires its token: none was sent."),
    (
        bearer.InsufficientScope("undo_writes", "write"),
        "This token may not use undo_writes, which needs the right 'write'.",
    ),
    (
        errors.ServerUnreachable("http://127.0.0.1:1/mcp", "nothing listens there"),
        "The server at http://127.0.0.1:1/mcp cannot be reached: nothing listens there.",
    ),
    (
        http_errors.HttpRefused("http://127.0.0.1:1/mcp", 404, "Not Found"),
        "The server at http://127.0.0.1:1/mcp answered with HTTP status 404: Not Found.",
    ),
    (
        AddressRefused("https://a.org/mcp", "b.org:443", "10.0.0.1", "in a private network"),
        "The server at https://a.org/mcp leads to b.org:443 (10.0.0.1), which is in a private network. "
        "The server itself is not there, so nothing was sent.",
    ),
    (
        oauth_errors.AuthorizationFailed("https://a.org", "it has no page to log in"),
        "Access to https://a.org was not granted: it has no page to log in.",
    ),
    (
        oauth_errors.LoginRequired("https://a.org/mcp"),
        "The server at https://a.org/mcp wants you to log in.",
    ),
]


@pytest.mark.parametrize(("error", "sentence"), SENTENCES, ids=lambda value: type(value).__name__)
def test_an_error_computes_its_sentence(error: TemplateError, sentence: str) -> None:
    assert str(error) == sentence


def leaves(kind: type[RagMcpError]) -> set[type[RagMcpError]]:
    """The package's own: other tests define errors too. Private ones have their base's sentence."""
    own = [sub for sub in kind.__subclasses__() if sub.__module__.startswith("ragmcp.")]
    subclasses = [sub for sub in own if not sub.__name__.startswith("_")]
    return {leaf for sub in subclasses for leaf in leaves(sub)} or {kind}


def test_every_leaf_has_its_sentence_pinned() -> None:
    assert leaves(RagMcpError) <= {type(error) for error, _ in SENTENCES}


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (errors.NotJson("x"), -32700, "PARSE_ERROR"),
        (errors.InvalidRequest("x"), -32600, "INVALID_REQUEST"),
        (errors.MessageTooLarge(2, 1), -32600, "MESSAGE_TOO_LARGE"),
        (errors.MethodNotFound("x"), -32601, "METHOD_NOT_FOUND"),
        (errors.InvalidParams("$", "x"), -32602, "INVALID_PARAMS"),
        (errors.ToolNotFound("x", ()), -32602, "TOOL_NOT_FOUND"),
        (errors.PromptNotFound("x", ()), -32602, "PROMPT_NOT_FOUND"),
        (errors.ResourceNotFound("x"), -32602, "RESOURCE_NOT_FOUND"),
        (errors.LegacyResourceNotFound("x"), -32002, "RESOURCE_NOT_FOUND"),
        (errors.MissingCapability({"roots": {}}), -32021, "MISSING_CLIENT_CAPABILITY"),
        (errors.UnsupportedRevision("x", ("y",)), -32022, "UNSUPPORTED_PROTOCOL_VERSION"),
        (errors.UnreadableAnswer("x", "y"), -32603, "UNREADABLE_ANSWER"),
        (errors.NotEncodable("x", "y"), -32603, "INTERNAL_ERROR"),
        (ValueError("a secret"), -32603, "INTERNAL_ERROR"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_wire_error_has_code_message_error_code_details_and_request_id(
    error: Exception, code: int, word: str
) -> None:
    wire = error_object(error, 7)
    assert wire.code == code
    assert wire.data["errorCode"] == word
    assert wire.data["requestId"] == 7
    assert isinstance(wire.data["details"], dict)
    assert "secret" not in wire.message
    if isinstance(error, RemoteProtocolError):
        assert wire.message == str(error)
    msgspec.json.encode(wire)


def test_the_data_the_specification_asks_for_is_there() -> None:
    assert (
        error_object(errors.UnsupportedRevision("1", ["2"]), 1).data.items()
        >= {
            "requested": "1",
            "supported": ["2"],
        }.items()
    )
    assert error_object(errors.MissingCapability({"roots": {}}), 1).data["requiredCapabilities"] == {
        "roots": {}
    }


def test_the_word_of_a_wire_error_is_read_from_its_data() -> None:
    assert errors.WireError(-1, "m", {"errorCode": "TOOL_NOT_FOUND"}).error_code == "TOOL_NOT_FOUND"
    assert errors.WireError(-1, "m", {"errorCode": 5}).error_code == ""
    assert errors.WireError(-1, "m", "text").error_code == ""


def test_the_hint_of_a_tool_error_is_apart_from_its_message() -> None:
    wire = error_object(errors.ToolError("FULL", "The disk is full.", {"path": "a"}, "Free some space."), 1)
    assert wire.message == "The disk is full."
    assert wire.data == {
        "errorCode": "FULL",
        "details": {"path": "a", "hint": "Free some space."},
        "requestId": 1,
    }


def test_that_the_user_declined_is_told_without_details() -> None:
    error = errors.InputDeclined("The user declined.")
    wire = error_object(error, 7)
    assert (wire.code, wire.message) == (-1, "The user declined.")
    assert wire.data == {"errorCode": "INPUT_DECLINED", "details": {}, "requestId": 7}
