"""A real memory without a process: the service on its SQLite file, behind MCP, in the test's event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio

from ragchat.memory.client import MemoryClient
from ragchat.servers.memory.process import TOOLSETS
from ragchat.servers.supervisor import time_limit
from ragconfig.prompt_files import FOLDER
from ragconfig.settings import load_settings
from ragmcp.client.features import Client
from ragmcp.server.core import Server
from ragmemory.app import make_service
from ragmemory.mcp.prompts import Prompts
from ragmemory.mcp.resources import Resources
from ragmemory.mcp.server import OnDemand, completer, make_server
from ragmemory.mcp.toolsets import make_tools
from ragmemory.service import MemoryService
from tests.support.in_memory import open_memory as open_pair
from tests.support.memories import SwitchableEmbedder, settings_for

T = TypeVar("T")


class Direct:
    """A connection whose server never dies."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(
        self,
        what: str,
        request: Callable[[Client], Awaitable[T]],
        *,
        repeatable: bool = True,  # noqa: ARG002
        timeout: float | None = None,
    ) -> T:
        with time_limit(what, timeout):
            return await request(self.client)


@asynccontextmanager
async def memory_of(folder: Path, documents: Mapping[str, str]) -> AsyncIterator[MemoryClient]:
    """A memory that holds these texts, by their paths below /notes."""
    async with memory_in(folder) as memory:
        for name, text in documents.items():
            await memory.inject(text, {"uri": f"file:///notes/{name}"})
        yield memory


@asynccontextmanager
async def memory_in(folder: Path, embedder: SwitchableEmbedder | None = None) -> AsyncIterator[MemoryClient]:
    """A client of the memory in `folder`, with all its tools."""
    settings = load_settings(
        environ={"RAGCHAT_HOME": str(folder)}, flags={"memory.roots": ["*"]}, folder=folder
    )
    async with make_service(settings, embedder) as service:

        async def opened() -> MemoryService:
            return service

        documents, prompts = Resources(opened), Prompts(opened, settings.home.config / FOLDER)
        server = Server(
            "ragmemory",
            "test",
            tools=make_tools(opened, TOOLSETS.split(",")),
            resources=documents,
            prompts=prompts,
            complete=completer(documents, prompts),
        )
        async with open_pair(server, era="modern") as connection:
            yield MemoryClient(Direct(connection))


@asynccontextmanager
async def memory_server(
    folder: Path,
    toolsets: str = "memory,documents,history,maintenance",
    roots: Sequence[Path] = (),
    **flags: object,
) -> AsyncIterator[Client]:
    """A client of the server of `folder`/memory.db, which is built as `ragmemory` builds it."""
    settings = settings_for(
        folder,
        memory__path=str(folder / "memory.db"),
        memory__toolsets=toolsets.split(","),
        memory__roots=[str(root) for root in roots],
        **flags,
    )
    memory = OnDemand(settings)
    server = make_server(settings, memory)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            memory.tasks = tasks
            server.allow_tasks(tasks)
            async with open_pair(server, era="modern") as client:
                yield client
            tasks.cancel_scope.cancel()
