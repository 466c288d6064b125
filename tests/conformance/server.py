"""The server that the official conformance suite tests.

Names and texts are those the suite expects (its src/scenarios/server/).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
import msgspec
from msgspec import UnsetType

from ragmcp.errors import ResourceNotFound
from ragmcp.http.asgi import Endpoint
from ragmcp.protocol.pagination import page
from ragmcp.protocol.schema.completion import Reference
from ragmcp.protocol.schema.content import EmbeddedResource, ImageContent, ResourceContents, TextContent
from ragmcp.protocol.schema.prompts import PromptMessage
from ragmcp.protocol.schema.resources import ResourceInfo, ResourceTemplate
from ragmcp.protocol.schema.subscriptions import list_changed
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import tool
from tests.conformance import content, jobs, questions
from tests.conformance.content import PNG
from tests.support.http_server import LIMITS, served
from tests.support.prompts import prompt


class Fixtures:
    """What there is to read."""

    resources = (
        ResourceInfo(uri="test://static-text", name="static-text", mime_type="text/plain"),
        ResourceInfo(uri="test://static-binary", name="static-binary", mime_type="image/png"),
        ResourceInfo(uri="test://watched-resource", name="watched-resource", mime_type="text/plain"),
    )
    templates: Sequence[ResourceTemplate] = (
        ResourceTemplate(
            uri_template="test://template/{id}/data", name="template", mime_type="application/json"
        ),
    )

    async def page(self, cursor: str | UnsetType) -> tuple[list[ResourceInfo], str | UnsetType]:
        """All of them."""
        return page(self.resources, cursor)

    async def read(self, call: Call, uri: str) -> list[ResourceContents]:
        """Raises ResourceNotFound."""
        match uri.removeprefix("test://").split("/"):
            case ["static-text"]:
                text = "This is the content of the static text resource."
                return [ResourceContents(uri=uri, mime_type="text/plain", text=text)]
            case ["static-binary"]:
                return [ResourceContents(uri=uri, mime_type="image/png", blob=PNG)]
            case ["watched-resource"]:
                text = "Watched resource content"
                return [ResourceContents(uri=uri, mime_type="text/plain", text=text)]
            case ["template", id, "data"]:
                data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
                text = msgspec.json.encode(data).decode()
                return [ResourceContents(uri=uri, mime_type="application/json", text=text)]
        raise ResourceNotFound(uri)


@prompt(title="Simple Test Prompt")
async def test_simple_prompt(call: Call) -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt(describe={"arg1": "First test argument", "arg2": "Second test argument"})
async def test_prompt_with_arguments(call: Call, arg1: str, arg2: str) -> str:
    """A prompt with required arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt(describe={"resourceUri": "URI of the resource to embed"})
async def test_prompt_with_embedded_resource(call: Call, resourceUri: str) -> list[PromptMessage]:
    """A prompt that carries a resource."""
    resource = ResourceContents(
        uri=resourceUri, mime_type="text/plain", text="Embedded resource content for testing."
    )
    return [
        PromptMessage(role="user", content=EmbeddedResource(resource=resource)),
        PromptMessage(role="user", content=TextContent(text="Please process the embedded resource above.")),
    ]


@prompt()
async def test_prompt_with_image(call: Call) -> list[PromptMessage]:
    """A prompt that carries an image."""
    return [
        PromptMessage(role="user", content=ImageContent(data=PNG, mime_type="image/png")),
        PromptMessage(role="user", content=TextContent(text="Please analyze the image above.")),
    ]


@tool()
async def test_trigger_tool_change(call: Call) -> str:
    """Tells all who listen that the tools have changed."""
    server.announce(list_changed("tools"))
    return "Mutation triggered"


@tool()
async def test_trigger_prompt_change(call: Call) -> str:
    """Tells all who listen that the prompts have changed."""
    server.announce(list_changed("prompts"))
    return "Mutation triggered"


async def complete(_: Reference, __: str, typed: str, ___: Mapping[str, str]) -> Sequence[str]:
    """Words that begin with what is typed."""
    return [word for word in ("paris", "park", "party", "test", "testing") if word.startswith(typed)]


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """The server at a loopback port; its URL."""
    async with (
        anyio.create_task_group() as tasks,
        Endpoint(server, LIMITS) as endpoint,
        served(endpoint) as url,
    ):
        server.allow_tasks(tasks)
        yield f"{url}/mcp"
        tasks.cancel_scope.cancel()


server = Server(
    "ragmcp-conformance",
    "1.0.0",
    [*content.TOOLS, *questions.TOOLS, *jobs.TOOLS, test_trigger_tool_change, test_trigger_prompt_change],
    resources=Fixtures(),
    prompts=[
        test_simple_prompt,
        test_prompt_with_arguments,
        test_prompt_with_embedded_resource,
        test_prompt_with_image,
        questions.test_input_required_result_prompt,
    ],
    complete=complete,
    logs=True,
)
