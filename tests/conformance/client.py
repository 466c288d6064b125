"""The client under the official suite's eyes: `client.py URL`, with the scenario in the environment.

It does what the scenario's description asks of a client, through the same `open_http` as everybody.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
from msgspec import UNSET

from ragmcp.client.client import Client
from ragmcp.client.handlers import Handlers
from ragmcp.http.connect import open_http
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Sample, SamplingResult

SECONDS = 20.0
MESSAGE_BYTES = 2**24

# What the tools of the suite's servers take; all others take nothing.
ARGUMENTS: dict[str, dict[str, Any]] = {"add_numbers": {"a": 2, "b": 3}, "valid_tool": {"region": "north"}}

SCHEMA_TOOL, ECHO_TOOL = "json_schema_2020_12_tool", "json_schema_echo"


async def _accept(form: Elicit) -> ElicitResult:
    """As a user who confirms, and leaves the rest of the form as it is."""
    schema = form.requested_schema or {}
    confirmed = {"confirmed": True} if "confirmed" in schema.get("properties", {}) else {}
    return ElicitResult(action="accept", content=confirmed)


async def _say(_: Sample) -> SamplingResult:
    return SamplingResult(role="assistant", content={"type": "text", "text": "Yes."}, model="none")


async def _no_roots() -> list[Any]:
    return []


async def use(client: Client) -> None:
    """Everything once: each tool, each resource, each prompt."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, ARGUMENTS.get(tool.name, {}), timeout=SECONDS)
    if client.capabilities.resources is not UNSET:
        for resource in await client.list_resources():
            await client.read_resource(resource.uri)
    if client.capabilities.prompts is not UNSET:
        for prompt in await client.list_prompts():
            await client.get_prompt(prompt.name)


async def list_only(client: Client) -> None:
    """The suite's server has nothing to call."""
    await client.list_tools()


async def call_as_told(client: Client) -> None:
    """The calls stand in the context."""
    await client.list_tools()
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"], timeout=SECONDS)


async def echo_schema(client: Client) -> None:
    """Give a schema back as we understood it."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    schema = tools[SCHEMA_TOOL].input_schema
    await client.call_tool(ECHO_TOOL, {"schema": schema}, timeout=SECONDS)


SCENARIOS = {
    "json-schema-ref-no-deref": list_only,
    "http-custom-headers": call_as_told,
    "json-schema-2020-12-preservation": echo_schema,
}


async def main() -> None:
    """Play the scenario."""
    play = SCENARIOS.get(os.environ["MCP_CONFORMANCE_SCENARIO"], use)
    handlers = Handlers(elicit=_accept, sample=_say, list_roots=_no_roots)
    async with open_http(
        sys.argv[1],
        client_name="ragmcp-conformance",
        client_version="1",
        message_bytes=MESSAGE_BYTES,
        handlers=handlers,
    ) as client:
        await play(client)


if __name__ == "__main__":
    anyio.run(main)
