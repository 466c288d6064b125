"""The client under the official suite's eyes; the scenario is in the environment.

It does what the scenario's description asks of a client, through the same `open_http` as everybody.
"""

from __future__ import annotations

import json
import os
from typing import Any

import httpx2
from msgspec import UNSET

from ragmcp.client import core
from ragmcp.client.features import Client
from ragmcp.client.handlers import Handlers
from ragmcp.http.connect import open_http
from ragmcp.oauth.authorization import OAuth
from ragmcp.oauth.grants import Login, TokenRequest, TokenSource
from ragmcp.oauth.registration import Identity
from ragmcp.oauth.store import Registration
from ragmcp.oauth.web import Web
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Sample, SamplingResult
from tests.support.oauth_grants import Assertion, ClientCredentials

SECONDS = 20.0
# Printed by a client that did not fail.
ENDED = "the scenario is played to its end"
# The suite's authorization servers know it.
METADATA_URL = "https://conformance-test.local/client-metadata.json"
MESSAGE_BYTES = 2**24

# What the tools of the suite's servers take; all others take nothing.
ARGUMENTS: dict[str, dict[str, Any]] = {"add_numbers": {"a": 2, "b": 3}, "valid_tool": {"region": "north"}}

SCHEMA_TOOL, ECHO_TOOL = "json_schema_2020_12_tool", "json_schema_echo"


async def _accept(form: Elicit) -> ElicitResult:
    """As a user who confirms, and leaves the rest of the form as it is."""
    fields = (form.requested_schema or {}).get("properties", {})
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    confirmed = {"confirmed": True} if "confirmed" in fields else {}
    return ElicitResult(action="accept", content=content | confirmed)


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


class Agreeing:
    """A user who agrees to everything: the suite's pages redirect at once."""

    redirect_uri = "http://127.0.0.1:9876/callback"

    async def visit(self, url: str, state: str) -> str:
        """Where the page redirects to."""
        async with httpx2.AsyncClient() as client:
            return (await client.get(url)).headers["location"]


def token_source(scenario: str, context: dict[str, str]) -> TokenSource:
    """How the scenario wants us to get a token."""
    us = Registration(context.get("client_id", ""), context.get("client_secret", ""))
    match scenario:
        case "auth/client-credentials-jwt":
            return ClientCredentials(us, context["private_key_pem"], context["signing_algorithm"])
        case "auth/client-credentials-basic":
            return ClientCredentials(us)
        case "auth/wif-jwt-bearer":
            return Assertion(us, lambda *_: given(context["valid_jwt"]))
        case "auth/enterprise-managed-authorization":
            return Assertion(us, lambda web, wanted: exchange_identity(web, wanted, context))
    identity = Identity(
        name="ragmcp-conformance", registered=us if us.client_id else None, metadata_url=METADATA_URL
    )
    return Login(identity, Agreeing())


async def given(assertion: str) -> str:
    """The assertion of a workload, which its platform has given."""
    return assertion


async def exchange_identity(web: Web, wanted: TokenRequest, context: dict[str, str]) -> str:
    """The assertion that the company's identity provider gives for the user's login there."""
    answer = await web.post(
        context["idp_token_endpoint"],
        form={
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "audience": wanted.server.issuer,
            "resource": wanted.resource,
            "subject_token": context["idp_id_token"],
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "client_id": context["idp_client_id"],
        },
    )
    assertion: str = json.loads(answer.body)["access_token"]
    return assertion


async def main(url: str) -> None:
    """Play the scenario."""
    core.PROBE_SECONDS = SECONDS  # The suite answers slowly while it checks many clients.
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    play = SCENARIOS.get(scenario, use)
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    authorization = OAuth(url, token_source(scenario, context)) if "auth/" in scenario else None
    handlers = Handlers(elicit=_accept, sample=_say, list_roots=_no_roots)
    async with open_http(
        url,
        client_name="ragmcp-conformance",
        client_version="1",
        message_bytes=MESSAGE_BYTES,
        handlers=handlers,
        authorization=authorization,
    ) as client:
        await play(client)
    print(ENDED)
