"""The official SDK 1.x as a client: `python -m tests.peers.mcp1_client TARGETS`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.peers.walk import WALK_SECONDS, Heard, Host, OnProgress, Target, main

# Type checkers see the SDK 2.x of our own environment, where these modules differ.
mcp: Any = import_module("mcp")
types: Any = import_module("mcp.types")
stdio: Any = import_module("mcp.client.stdio")
http: Any = import_module("mcp.client.streamable_http")
sse: Any = import_module("mcp.client.sse")


class Session:
    """A `ClientSession` as the walk wants it."""

    # Its send_request raises when it has waited long enough, and says nothing to the server.
    cancels = False
    longest = 2**20

    def __init__(self, session: Any, hello: Any) -> None:
        self._session = session
        self.revision = hello.protocolVersion
        self.server = hello.serverInfo.name
        self.instructions = hello.instructions

    async def tools(self) -> Any:
        return await self._session.list_tools()

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        timeout: float = WALK_SECONDS,
        on_progress: OnProgress | None = None,
    ) -> Any:
        return await self._session.call_tool(tool, arguments, timedelta(seconds=timeout), on_progress)

    async def resources(self, cursor: str | None) -> Any:
        return await self._session.list_resources(params=types.PaginatedRequestParams(cursor=cursor))

    async def templates(self) -> Any:
        return await self._session.list_resource_templates()

    async def read(self, uri: str) -> Any:
        return await self._session.read_resource(uri)

    async def prompts(self) -> Any:
        return await self._session.list_prompts()

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self._session.get_prompt(name, arguments)

    async def complete(self, prompt: str, argument: str, typed: str) -> Any:
        reference = types.PromptReference(type="ref/prompt", name=prompt)
        return await self._session.complete(reference, {"name": argument, "value": typed})

    @asynccontextmanager
    async def watching(self, uri: str) -> AsyncIterator[None]:
        await self._session.subscribe_resource(uri)
        yield
        await self._session.unsubscribe_resource(uri)


@asynccontextmanager
async def connect(target: Target, heard: Heard) -> AsyncIterator[Host]:
    async def on_message(message: Any) -> None:
        match getattr(message, "root", None):
            case types.ToolListChangedNotification():
                heard.hear("tools", "changed")
            case types.ResourceUpdatedNotification(params=params):
                heard.hear("resource", str(params.uri))

    async def on_log(params: Any) -> None:
        heard.hear("log", params)

    async def elicit(_: Any, __: Any) -> Any:
        return types.ElicitResult(action="accept", content={"name": "Zoë"})

    async def sample(_: Any, __: Any) -> Any:
        text = types.TextContent(type="text", text="four")
        return types.CreateMessageResult(role="assistant", model="tiny", content=text)

    async def roots(_: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/zoe")])

    async with (
        transport(target) as streams,
        mcp.ClientSession(
            *streams[:2],
            message_handler=on_message,
            logging_callback=on_log,
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
        ) as session,
    ):
        hello = await session.initialize()
        await session.send_ping()
        yield Session(session, hello)


@asynccontextmanager
async def transport(target: Target) -> AsyncIterator[Any]:
    if target["transport"] == "http":
        async with http.streamable_http_client(target["url"]) as streams:
            yield streams
    elif target["transport"] == "sse":
        async with sse.sse_client(target["url"]) as streams:
            yield streams
    else:
        command, *arguments = target["command"]
        parameters = mcp.StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        with Path(target["log"]).open("w", encoding="utf-8") as log:
            async with stdio.stdio_client(parameters, log) as streams:
                yield streams


if __name__ == "__main__":
    main(connect)
