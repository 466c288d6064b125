"""fastmcp as a client: `python -m tests.peers.fastmcp_client TARGETS`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

from tests.peers.mcp2_news import hearing, watching
from tests.peers.walk import WALK_SECONDS, Heard, Host, OnProgress, Target, main


class Connected:
    """A `Client` as the walk wants it."""

    cancels = True

    def __init__(self, client: Any, longest: int) -> None:
        self._client = client
        self.longest = longest
        self.revision = client.protocol_version
        self.server = client.server_info.name if client.server_info else ""
        self.instructions = client.instructions

    async def tools(self) -> Any:
        return await self._client.list_tools_mcp()

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        timeout: float = WALK_SECONDS,
        on_progress: OnProgress | None = None,
    ) -> Any:
        return await self._client.call_tool_mcp(tool, arguments, on_progress, timeout)

    async def resources(self, cursor: str | None) -> Any:
        return await self._client.list_resources_mcp(cursor=cursor)

    async def templates(self) -> Any:
        return await self._client.list_resource_templates_mcp()

    async def read(self, uri: str) -> Any:
        return await self._client.read_resource_mcp(uri)

    async def prompts(self) -> Any:
        return await self._client.list_prompts_mcp()

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self._client.get_prompt_mcp(name, arguments)

    async def complete(self, prompt: str, argument: str, typed: str) -> Any:
        reference = types.PromptReference(name=prompt)
        return await self._client.complete_mcp(reference, {"name": argument, "value": typed})

    def watching(self, uri: str) -> AbstractAsyncContextManager[None]:
        return watching(self._client.session, uri)


@asynccontextmanager
async def connect(target: Target, heard: Heard) -> AsyncIterator[Host]:
    async def on_log(params: Any) -> None:
        heard.hear("log", params)

    async def elicit(*_: Any) -> Any:
        return {"name": "Zoë"}

    async def sample(*_: Any) -> Any:
        text = types.TextContent(text="four")
        return types.CreateMessageResult(role="assistant", model="tiny", content=text)

    async with Client(
        transport(target),
        mode=target["mode"],
        message_handler=hearing(heard),
        log_handler=on_log,
        elicitation_handler=elicit,
        sampling_handler=sample,
        roots=["file:///home/zoe"],
    ) as client:
        # httpx2 reads no event of more than 1 MiB, and the old transport's client does not tell it otherwise.
        yield Connected(client, longest=2**19 if target["transport"] == "sse" else 2**20)


def transport(target: Target) -> Any:
    if target["transport"] == "http":
        return StreamableHttpTransport(target["url"])
    if target["transport"] == "sse":
        return SSETransport(target["url"])
    command, *arguments = target["command"]
    log = Path(target["log"])
    return StdioTransport(command, arguments, dict(os.environ), keep_alive=False, log_file=log)


if __name__ == "__main__":
    main(connect)
