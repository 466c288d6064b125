"""The model in use: found when it is needed, changed by the user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from msgspec.structs import replace

from ragchat.llm.errors import ModelUnreachable, UnknownModel
from ragchat.llm.selection import ModelSelection
from ragchat.llm.types import OFFLINE
from tests.client.llm.test_client import settings
from tests.support.openai_server import OpenAIServer
from tests.support.ports import free_port


@asynccontextmanager
async def selection_at(base_url: str, name: str) -> AsyncGenerator[ModelSelection, None]:
    selection = ModelSelection(replace(settings(), name=name, base_url=base_url), {})
    try:
        yield selection
    finally:
        await selection.aclose()


async def test_the_model_is_found_when_it_is_needed_and_has_no_name_before() -> None:
    with OpenAIServer() as server:
        async with selection_at(server.base_url, "auto") as selection:
            assert selection.name == "auto"
            assert await selection.find() is await selection.find()
            assert selection.name == "test-model"


async def test_a_server_that_cannot_be_reached_is_tried_again() -> None:
    port = free_port()
    async with selection_at(f"http://127.0.0.1:{port}/v1", "auto") as selection:
        with pytest.raises(ModelUnreachable):
            await selection.find()
        with OpenAIServer(port=port):
            assert await selection.find() is not None


async def test_another_model_can_be_selected_and_a_wrong_name_changes_nothing() -> None:
    with OpenAIServer(models=["alpha", "beta"]) as server:
        async with selection_at(server.base_url, "alpha") as selection:
            assert await selection.choices() == ["alpha", "beta", "auto", "offline"]
            await selection.select("beta")
            assert selection.name == "beta"
            with pytest.raises(UnknownModel) as caught:
                await selection.select("betta")
            assert caught.value.near == ["beta"]
            assert selection.name == "beta"
            await selection.select(OFFLINE)
            assert (selection.name, await selection.find()) == (OFFLINE, None)


async def test_a_model_selected_while_another_is_looked_for_stays_selected() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await answer.wait()
        names = b'{"object": "list", "data": [{"id": "test-model", "object": "model"}]}'
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(names)}\r\n\r\n"
        writer.write(head.encode() + names)
        await writer.drain()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(slow, "127.0.0.1", port):
        url = f"http://127.0.0.1:{port}/v1"
        async with selection_at(url, "auto") as selection:
            looking = asyncio.create_task(selection.find())
            with anyio.fail_after(20):
                await asked.wait()
                await selection.select(OFFLINE)
                answer.set()
                assert await looking is None
            assert selection.name == OFFLINE
