"""The official SDK 2.x as a client: `python -m tests.peers.mcp2_client TARGETS`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.peers.mcp2_news import hearing, watching
from tests.peers.walk import WALK_SECONDS, Heard, Host, OnProgress, Target, main


class Connected:
    """A `Client` as the walk wants it."""

    cancels = True

    def __init__(self, client: Client, longest: int) -> None:
        self._client = client
        self.longest = longest
        self.revision = client.protocol_version
        self.server = client.server_info.name if client.server_info else ""
        self.instructions = client.instructions

    async def tools(self) -> Any:
        return await self._client.list_tools()

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        timeout: float = WALK_SECONDS,
        on_progress: OnProgress | None = None,
    ) -> Any:
        return await self._client.call_tool(tool, arguments, timeout, on_progress)

    async def resources(self, cursor: str | None) -> Any:
        return await self._client.list_resources(cursor=cursor)

    async def templates(self) -> Any:
        return await self._client.list_resource_templates()

    async def read(self, uri: str) -> Any:
        return await self._client.read_resource(uri)

    async def prompts(self) -> Any:
        return await self._client.list_prompts()

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self._client.get_prompt(name, arguments)

    async def complete(self, prompt: str, argument: str, typed: str) -> Any:
        reference = types.PromptReference(name=prompt)
        return await self._client.complete(reference, {"name": argument, "value": typed})

    def watching(self, uri: str) -> AbstractAsyncContextManager[None]:
        return watching(self._client.session, uri)


@asynccontextmanager
async def connect(target: Target, heard: Heard) -> AsyncIterator[Host]:
    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        heard.hear("log", params)

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Zoë"})

    async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        text = types.TextContent(text="four")
        return types.CreateMessageResult(role="assistant", model="tiny", content=text)

    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///home/zoe"}]})

    async with Client(
        transport(target),
        mode=target["mode"],
        message_handler=hearing(heard),
        log_level="info",
        logging_callback=on_log,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
    ) as client:
        # httpx2 reads no event of more than 1 MiB, and the old transport's client does not tell it otherwise.
        yield Connected(client, longest=2**19 if target["transport"] == "sse" else 2**20)


@asynccontextmanager
async def transport(target: Target) -> AsyncIterator[Any]:
    if target["transport"] == "http":
        async with streamable_http_client(target["url"]) as streams:
            yield streams
    elif target["transport"] == "sse":
        async with sse_client(target["url"]) as streams:
            yield streams
    else:
        command, *arguments = target["command"]
        parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        with Path(target["log"]).open("w", encoding="utf-8") as log:
            async with stdio_client(parameters, log) as streams:
                yield streams


if __name__ == "__main__":
    main(connect)
