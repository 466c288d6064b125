"""Tools that the referee calls by name: content of all kinds, progress, log messages, errors, schemas."""

from __future__ import annotations

from typing import Annotated, Any

import anyio
from msgspec import Meta
from msgspec.structs import replace

from ragmcp.errors import ToolError
from ragmcp.protocol.eras import Era
from ragmcp.protocol.schema.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    TextContent,
)
from ragmcp.server.call import Call
from ragmcp.server.tools import tool

# A red pixel, and a fraction of a second of silence.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

# The referee wants to hear of each step by itself.
STEP_SECONDS = 0.05


@tool(read_only=True)
async def test_simple_text(call: Call) -> str:
    """Text."""
    return "This is a simple text response for testing."


@tool(read_only=True)
async def test_image_content(call: Call) -> list[Content]:
    """An image."""
    return [ImageContent(data=PNG, mime_type="image/png")]


@tool(read_only=True)
async def test_audio_content(call: Call) -> list[Content]:
    """A sound."""
    return [AudioContent(data=WAV, mime_type="audio/wav")]


@tool(read_only=True)
async def test_embedded_resource(call: Call) -> list[Content]:
    """A resource, carried along."""
    resource = ResourceContents(
        uri="test://embedded-resource",
        mime_type="text/plain",
        text="This is an embedded resource content.",
    )
    return [EmbeddedResource(resource=resource)]


@tool(read_only=True)
async def test_multiple_content_types(call: Call) -> list[Content]:
    """Text, an image and a resource."""
    resource = ResourceContents(
        uri="test://mixed-content-resource",
        mime_type="application/json",
        text='{"test":"data","value":123}',
    )
    return [
        TextContent(text="Multiple content types test:"),
        ImageContent(data=PNG, mime_type="image/png"),
        EmbeddedResource(resource=resource),
    ]


@tool(read_only=True)
async def test_tool_with_logging(call: Call) -> str:
    """Says what it does while it does it."""
    await call.log("info", "Tool execution started")
    await anyio.sleep(STEP_SECONDS)  # sleep: the suite asks for it
    await call.log("info", "Tool processing data")
    await anyio.sleep(STEP_SECONDS)  # sleep: the suite asks for it
    await call.log("info", "Tool execution completed")
    return "Tool with logging executed successfully"


@tool(read_only=True)
async def test_tool_with_progress(call: Call) -> str:
    """Says how far it is."""
    for done in (0, 50, 100):
        await call.progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(STEP_SECONDS)  # sleep: the suite asks for it
    return str(call.params.meta.progress_token)


@tool(read_only=True)
async def test_error_handling(call: Call) -> str:
    """Fails."""
    raise ToolError("TEST_ERROR", "This tool intentionally returns an error for testing")


@tool(read_only=True)
async def test_logging_tool(call: Call) -> str:
    """Logs, which a modern client hears only if its request says so."""
    await call.log("info", "Diagnostic trace logging activated")
    return "Logging evaluated"


@tool(read_only=True)
async def test_reconnection(call: Call) -> str:
    """Lets the response end before there is a result; the client comes back for it."""
    if call.terms.era is Era.LEGACY:
        from ragmcp.legacy.http_session import SessionChannel

        if isinstance(call.channel, SessionChannel):
            await call.channel.pause()
    await anyio.sleep(STEP_SECONDS)  # sleep: the suite asks for it
    return "Reconnection test completed successfully."


@tool(read_only=True)
async def test_missing_capability(call: Call) -> str:
    """Works only with clients that have a model."""
    call.require("sampling")
    return "The client has a model."


@tool(read_only=True)
async def test_x_mcp_header(
    call: Call, region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]
) -> str:
    """Its argument travels in a header too."""
    return f"The region is {region}."


@tool(read_only=True)
async def _any_contact(
    call: Call,
    name: str = "",
    address: dict[str, Any] | None = None,
    contactMethod: str = "",
    phone: str = "",
    email: str = "",
) -> str:
    """Its schema uses the whole vocabulary of JSON Schema 2020-12."""
    return f"JSON Schema 2020-12 tool called with: {name or phone or email}"


CONTACT_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

json_schema_2020_12_tool = replace(
    _any_contact,
    info=replace(_any_contact.info, name="json_schema_2020_12_tool", input_schema=CONTACT_SCHEMA),
)

TOOLS = [
    test_simple_text,  # Some scenarios call the first tool without arguments.
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_tool_with_logging,
    test_tool_with_progress,
    test_error_handling,
    test_logging_tool,
    test_reconnection,
    test_missing_capability,
    test_x_mcp_header,
    json_schema_2020_12_tool,
]
