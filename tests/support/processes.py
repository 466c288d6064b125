"""`ragmemory` as a real process, and a client of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ragmcp.client.client import Client, ToolCallResult
from ragmcp.stdio.stdio import open_stdio

MESSAGE_BYTES = 1 << 28
# Far more than anything takes that a test waits for, on a busy machine too; what hangs fails its test.
LONGEST_SECONDS = 60.0


class Held(subprocess.Popen[bytes]):
    """A process that does not outlive its `with`: a test that fails there fails, and waits for nobody."""

    def line(self) -> bytes:
        """The next line of its stdout; b"" where it has ended, or is killed because it says nothing."""
        assert self.stdout is not None
        patience = threading.Timer(LONGEST_SECONDS, self.kill)
        patience.start()
        try:
            return self.stdout.readline()
        finally:
            patience.cancel()

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
    folder: Path,
    *arguments: str,
    toolsets: str = "memory,documents",
    variables: dict[str, str] | None = None,
    log: Path | None = None,
) -> AsyncIterator[Client]:
    """A running `ragmemory` and its client; its log is `folder`/log, unless another is named."""
    command = memory_command(folder, "--toolsets", toolsets, *arguments)
    async with open_stdio(
        command,
        client_name="tests",
        client_version="1",
        message_bytes=MESSAGE_BYTES,
        stderr=log or folder / "log",
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
    return await client.call_tool(tool, arguments, timeout=LONGEST_SECONDS)


def uris(found: dict[str, Sequence[dict[str, Any]]]) -> list[str]:
    """The sources of what a Query found."""
    return [hit["uri"] for hit in found["hits"]]
