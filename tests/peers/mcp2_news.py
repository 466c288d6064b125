"""How a session of the SDK 2.x hears of changes, in both eras; fastmcp is built on the same sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp import ClientSession
from mcp.client.session import MessageHandlerFnT
from mcp.client.subscriptions import listen

from tests.peers.walk import Heard


def hearing(heard: Heard) -> MessageHandlerFnT:
    """A message handler: it is given what comes through subscriptions, too."""

    async def on_message(message: Any) -> None:
        match message:
            case types.ToolListChangedNotification():
                heard.hear("tools", "changed")
            case types.ResourceUpdatedNotification(params=params):
                heard.hear("resource", params.uri)

    return on_message


@asynccontextmanager
async def watching(session: ClientSession, uri: str) -> AsyncIterator[None]:
    """Be told of changes meanwhile."""
    if session.protocol_version == "2026-07-28":
        async with listen(session, tools_list_changed=True, resource_subscriptions=[uri]):
            yield
    else:
        subscribe = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        await session.send_request(subscribe, types.EmptyResult)
        yield
