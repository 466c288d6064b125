"""Programs made with the TypeScript SDK: its inspector as a client, and servers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.mcp_process import ENV, ROOT
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS, Held

MODULES = ROOT / ".peers" / "typescript" / "node_modules"
NODE = str(MODULES / "node" / "bin" / "node")
INSPECTOR = str(MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js")


def server(package: str) -> str:
    """The program of one of the servers that are installed with it."""
    if package == "tavily-mcp":
        return str(MODULES / package / "build" / "index.js")
    return str(MODULES / "@modelcontextprotocol" / package / "dist" / "index.js")


def sdk_server(transport: str) -> list[str]:
    """The command of a server written with the SDK 2.x: `stdio`, or `http`, which prints its port."""
    return [NODE, str(ROOT / "tests" / "peers" / "typescript_server.mjs"), str(MODULES), transport]


EVERYTHING = server("server-everything")

STDIO_SERVER = [NODE, EVERYTHING, "stdio"]


def need() -> None:
    """Skip the test where they are not installed."""
    if not (ROOT / ".peers" / "typescript" / ".done").exists():
        pytest.skip(
            "the TypeScript SDK's programs are not here; `make test` installs them where there is npm"
        )


async def inspect(home: Path, target: Sequence[str], method: str, era: str, *options: str) -> Any:
    """What the inspector prints: {"result": …}. `target` is a command, or the options that name a URL."""
    command = [NODE, INSPECTOR, "--cli", *target, "--method", method, *options]
    settings = ["--protocol-era", era, "--format", "json", "--quiet"]
    with anyio.fail_after(LONGEST_SECONDS):
        done = await anyio.run_process(
            [*command, *settings], check=False, cwd=ROOT, env={**ENV, "HOME": str(home)}
        )
    said = done.stdout or done.stderr
    return json.loads(said.splitlines()[-1])


@contextmanager
def everything(mode: str, log: Path) -> Iterator[str]:
    """The server in the mode `streamableHttp` or `sse`; its URL without a path."""
    port = free_port()
    with (
        log.open("wb") as other,
        Held(
            [NODE, EVERYTHING, mode],
            stdin=subprocess.DEVNULL,
            stdout=other,
            stderr=subprocess.PIPE,
            env={**os.environ, "PORT": str(port)},
        ) as process,
    ):
        while str(port).encode() not in (line := process.error_line()):
            assert line, log.read_text(encoding="utf-8")
        yield f"http://127.0.0.1:{port}"
