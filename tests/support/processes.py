"""`ragmemory` as a real process, and a client of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ragmcp.client import Client, ToolCallResult
from ragmcp.transports.stdio import open_stdio

MESSAGE_BYTES = 1 << 28


class Held(subprocess.Popen[bytes]):
    """A process that does not outlive its `with`: a test that fails there fails, and waits for nobody."""

    def __exit__(self, *error: Any) -> None:
        self.kill()
        super().__exit__(*error)


def memory_command(folder: Path, *arguments: str) -> list[str]:
    """The command line for a memory in `folder`/memory.db."""
    return [sys.executable, "-m", "ragmemory", "--memory", str(folder / "memory.db"), *arguments]


def memory_environment(folder: Path, **variables: str) -> dict[str, str]:
    """Ours, with everything the program keeps under `folder`, and without what would change its settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAGCHAT", "OPENAI"))}
    return kept | {"RAGCHAT_HOME": str(folder / "home")} | variables


@asynccontextmanager
async def memory_process(
    folder: Path, *arguments: str, toolsets: str = "memory,documents", variables: dict[str, str] | None = None
) -> AsyncIterator[Client]:
    """A running `ragmemory` and its client; its log is `folder`/log."""
    command = memory_command(folder, "--toolsets", toolsets, *arguments)
    async with open_stdio(
        command,
        client_name="tests",
        client_version="1",
        message_bytes=MESSAGE_BYTES,
        stderr=folder / "log",
        env=memory_environment(folder, **(variables or {})),
        era="modern",
    ) as client:
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured result of a call that must not fail."""
    result = await attempt(client, tool, **arguments)
    assert not result.is_error, result.text
    return result.structured


async def attempt(client: Client, tool: str, **arguments: Any) -> ToolCallResult:
    """The result of a call that may fail."""
    return await client.call_tool(tool, arguments, timeout=60)


def uris(found: dict[str, Sequence[dict[str, Any]]]) -> list[str]:
    """The sources of what a Query found."""
    return [hit["uri"] for hit in found["hits"]]
