"""The OpenAPI 3.1 description of the HTTP paths and, where the plain form is on, of each tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from ragmcp.http.exchange import EVENTS, JSON
from ragmcp.server.tools import Tool

_ANY = {"type": "object"}
_TEXT = {"type": "string"}
_ID = {"type": ["integer", "string"]}
_MESSAGE = {
    "type": "object",
    "description": "A message of the Model Context Protocol, which describes its methods itself.",
    "properties": {"jsonrpc": {"const": "2.0"}, "id": _ID, "method": _TEXT, "params": _ANY},
    "required": ["jsonrpc"],
}
# The `data` of an error, and what a failed tool returns instead of its own structured content.
_DATA = {"type": "object", "properties": {"errorCode": _TEXT, "details": _ANY, "requestId": {}}}
_FAILURE = {**_DATA, "required": ["errorCode"]}
_ERROR = {
    "type": "object",
    "properties": {
        "id": {"type": ["integer", "string", "null"]},
        "error": {
            "type": "object",
            "properties": {"code": {"type": "integer"}, "message": _TEXT, "data": _DATA},
            "required": ["code", "message"],
        },
    },
    "required": ["error"],
}

_PUBLIC: dict[str, Any] = {"security": []}


def describe(
    version: str, url: str, tools: Iterable[Tool], *, plain_form: bool, needs_token: bool
) -> dict[str, Any]:
    """The description of the server at `url`. `tools` are described if the `plain_form` is on."""
    schemas: dict[str, Any] = {"Message": _MESSAGE, "Error": _ERROR, "ToolFailure": _FAILURE}
    called = list(tools) if plain_form else []
    for tool in called:
        schemas[f"{tool.name}.request"] = _request(tool)
        schemas[f"{tool.name}.response"] = _response(tool)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "ragmemory", "version": version, "description": "A memory of documents, over MCP."},
        "servers": [{"url": url}],
        "paths": _paths([tool.name for tool in called]),
        "components": {"schemas": schemas},
    }
    if needs_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _paths(tools: list[str]) -> dict[str, Any]:
    legacy = {"deprecated": True}
    home = _operation("page", "The page for browsers; JSON for programs", "text/html", JSON)
    message = _ref("Message")
    requests = [message, *(_ref(f"{name}.request") for name in tools)]
    responses = [message, *(_ref(f"{name}.response") for name in tools)]
    mcp = {
        "post": {
            "operationId": "send",
            "summary": "Send a message of the Model Context Protocol"
            + (", or call a tool in the plain form" if tools else ""),
            "requestBody": {"required": True, "content": {JSON: {"schema": _one_of(requests)}}},
            "responses": {
                "200": {
                    "description": "The answer; as an event stream after notifications.",
                    "content": {
                        JSON: {"schema": _one_of(responses)},
                        EVENTS: {"schema": _TEXT},
                    },
                },
                "202": {"description": "Nothing is to be answered."},
                **_errors(),
            },
        },
        "get": _operation("listen", "Receive events of a session (until 2025-11-25)", EVENTS) | legacy,
        "delete": {
            "operationId": "endSession",
            "summary": "End a session (until 2025-11-25)",
            "responses": {"204": {"description": "It has ended."}, **_errors()},
        }
        | legacy,
    }
    return {
        "/": {"get": home | _PUBLIC},
        "/health": {"get": _operation("health", "Whether the server runs", JSON) | _PUBLIC},
        "/health/live": {"get": _operation("live", "Whether the process runs", JSON) | _PUBLIC},
        "/health/ready": {"get": _operation("ready", "Whether the memory can be read", JSON) | _PUBLIC},
        "/metrics": {"get": _operation("metrics", "Metrics for Prometheus", "text/plain")},
        "/openapi.json": {"get": _operation("openapi", "This description", JSON)},
        "/.well-known/mcp": {"get": _operation("describe", "The endpoints, revisions and tools", JSON)},
        "/mcp": mcp,
        "/sse": {"get": _operation("openSse", "Open an event stream (2024-11-05)", EVENTS) | legacy},
        "/messages": {
            "post": {
                "operationId": "sendToSse",
                "summary": "Send a message; the answer is an event (2024-11-05)",
                "parameters": [{"name": "session_id", "in": "query", "required": True, "schema": _TEXT}],
                "requestBody": {"required": True, "content": {JSON: {"schema": message}}},
                "responses": {"202": {"description": "Accepted."}, **_errors()},
            }
            | legacy
        },
    }


def _operation(name: str, summary: str, *types: str) -> dict[str, Any]:
    """A GET that is answered in one of some media types."""
    content = {kind: {"schema": _ANY if kind == JSON else _TEXT} for kind in types}
    responses = {"200": {"description": "OK", "content": content}, **_errors()}
    return {"operationId": name, "summary": summary, "responses": responses}


def _errors() -> dict[str, Any]:
    return {"default": {"description": "The reason.", "content": {JSON: {"schema": _ref("Error")}}}}


def _request(tool: Tool) -> dict[str, Any]:
    params = tool.info.input_schema
    return {
        "type": "object",
        "description": tool.info.description,
        "properties": {"method": {"const": tool.name}, "params": params, "id": _ID},
        "required": ["method", "params"] if params.get("required") else ["method"],
        "not": {"required": ["jsonrpc"]},
    }


def _response(tool: Tool) -> dict[str, Any]:
    structured = [] if tool.info.output_schema is UNSET else [msgspec.to_builtins(tool.info.output_schema)]
    result = {
        "type": "object",
        "properties": {
            "content": {"type": "array", "items": _ANY},
            "structuredContent": _one_of([*structured, _ref("ToolFailure")]),
            "isError": {"type": "boolean"},
        },
        "required": ["content"],
    }
    return {"type": "object", "properties": {"id": _ID, "result": result}, "required": ["result"]}


def _one_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}
