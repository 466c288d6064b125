"""`deploy/smoke.py` on real processes: two servers of one memory in PostgreSQL, behind a proxy."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest

from ragmcp.protocol.eras import LEGACY_REVISIONS, MODERN_REVISIONS
from tests.support.http_memory import HttpMemory, http_memory
from tests.support.ports import free_port
from tests.support.postgres import postgres
from tests.support.processes import LONGEST_SECONDS, RAGMEMORY, Held
from tests.support.remote import qdrant_url
from tests.support.round_robin import round_robin

DEPLOY = Path(__file__).parents[2] / "deploy"
TOKEN = "a-token-of-the-team"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as url:
        yield url


@contextmanager
def servers(database: str, *folders: Path, index: str = "") -> Iterator[list[HttpMemory]]:
    """Servers of one new memory, each with its home in one of the folders; `index` is as in index.url."""
    memory = f"{database}&schema=test_{secrets.token_hex(6)}"
    command = [*RAGMEMORY, "--memory", memory, "http"]
    variables = {"RAGMEMORY_TOKEN": TOKEN, "RAGCHAT_INDEX_URL": index}
    with ExitStack() as stack:
        yield [stack.enter_context(http_memory(folder, command=command, **variables)) for folder in folders]


@asynccontextmanager
async def caddy(ports: list[int], folder: Path) -> AsyncIterator[str]:
    """`deploy/Caddyfile` in a real Caddy."""
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("there is no caddy here")
    config = (DEPLOY / "Caddyfile").read_text("utf-8")
    for number, port in enumerate(ports, 1):
        config = config.replace(f"ragmemory-{number}:8765", f"127.0.0.1:{port}")
    (folder / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\n{config}", "utf-8")
    root = f"http://127.0.0.1:{free_port()}"
    command = [program, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    variables = {**os.environ, "ADDRESS": root, "HOME": str(folder)}
    with Held(command, stderr=subprocess.PIPE, cwd=folder, env=variables) as process:
        while b"serving initial configuration" not in (line := process.error_line()):
            assert line, "caddy ended at its start"
        try:
            yield root
        finally:
            process.kill()
            sys.stderr.write(process.communicate()[1].decode())  # Shown if the test fails.


async def smoke(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    with anyio.fail_after(2 * LONGEST_SECONDS):
        return await anyio.run_process(
            [sys.executable, str(DEPLOY / "smoke.py"), *arguments],
            check=False,
            env={**os.environ, "RAGMEMORY_TOKEN": TOKEN},
        )


@pytest.mark.parametrize(
    ("proxy", "index"),
    [("round robin", ""), ("caddy", ""), ("round robin", "pgvector"), ("round robin", "qdrant")],
)
async def test_a_team_goes_on_when_one_of_its_servers_is_killed(
    tmp_path: Path, database: str, proxy: str, index: str
) -> None:
    # In Compose the servers share a home, in Kubernetes they do not.
    names = ("one", "one") if proxy == "round robin" else ("one", "two")
    for name in {*names}:
        (tmp_path / name).mkdir()
    folders = [tmp_path / name for name in names]
    async with AsyncExitStack() as stack:
        index = await qdrant_url(stack) if index == "qdrant" else index
        running = stack.enter_context(servers(database, *folders, index=index))
        ports = [httpx2.URL(server.root).port or 0 for server in running]
        proxied = round_robin(ports) if proxy == "round robin" else caddy(ports, tmp_path)
        root = await stack.enter_async_context(proxied)
        named = [word for server in running for word in ("--server", server.root)]
        done = await smoke(root, *named, "--kill", f"kill -9 {running[0].process.pid}")
    assert (done.returncode, done.stderr) == (0, b""), done.stdout.decode()
    revisions = [line.split()[2] for line in done.stdout.decode().splitlines() if " revision " in line]
    assert revisions == [f"{revision}:" for revision in (*MODERN_REVISIONS, *LEGACY_REVISIONS)]


async def test_the_first_step_that_fails_is_said_and_ends_the_walk(tmp_path: Path, database: str) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    with servers(database, tmp_path) as [running]:
        done = await smoke(running.root, "--server", nobody)
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.decode().splitlines()] == ["ok", "ok"]
    assert done.stderr.decode().startswith(f"GET {nobody}/health/live failed: ")
