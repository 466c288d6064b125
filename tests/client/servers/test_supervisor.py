"""A server that dies and is there again.

Covers `ragmcp.backoff`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from ragchat.servers.supervisor import Supervised
from ragmcp.client.features import Client, EraName
from ragmcp.concurrency import background_task
from ragmcp.errors import ConnectionClosed, RequestTimedOut, ServerNotStarted, ServerUnreachable
from ragmcp.http.connect import open_http
from ragmcp.protocol.schema.tools import ToolCallResult
from ragmcp.stdio import process
from tests.support.forking import python_for
from tests.support.http_script import Heard, Said, Scripted, result
from tests.support.http_server import served
from tests.support.mcp_http import COMMAND
from tests.support.mcp_process import SERVER, gone, spawned
from tests.support.peers import running
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the tests kill with POSIX signals")


@asynccontextmanager
async def supervised(log: Path, *, command: list[str] | None = None) -> AsyncIterator[Supervised]:
    command = command or [python_for(os.environ), *SERVER[1:]]
    server = Supervised(lambda: spawned(command, stderr=log, era="modern"))
    async with background_task(server.run):
        yield server


async def called(
    server: Supervised, tool: str, *, repeatable: bool = False, timeout: float | None = None
) -> str:
    """The text of a tool's result."""

    def request(client: Client) -> Awaitable[ToolCallResult]:
        return client.call_tool(tool, timeout=None)

    return (await server.ask(tool, request, repeatable=repeatable, timeout=timeout)).text


async def pid_of(server: Supervised) -> int:
    return int(await called(server, "Pid", repeatable=True, timeout=LONGEST_SECONDS))


async def test_a_call_waits_for_the_first_start(tmp_path: Path) -> None:
    async with supervised(tmp_path / "log") as client:
        tools = await client.ask("tools/list", lambda listed: listed.list_tools())
        assert "Add" in {tool.name for tool in tools}


async def test_a_killed_server_is_started_again(tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with supervised(tmp_path / "log") as client:
            first = await pid_of(client)
            os.kill(first, signal.SIGKILL)
            second = await pid_of(client)
            assert second != first
            os.kill(second, signal.SIGKILL)
            assert await pid_of(client) not in (first, second)


async def test_a_repeatable_call_is_made_again_when_the_server_died_over_it(tmp_path: Path) -> None:
    first, second = anyio.Event(), anyio.Event()
    calls = iter([first, second])

    def wait(client: Client) -> Awaitable[ToolCallResult]:
        return client.call_tool(
            "Wait", {"progress": 1}, timeout=None, on_progress=lambda *_: next(calls).set()
        )

    with anyio.fail_after(LONGEST_SECONDS), anyio.CancelScope() as scope:
        async with supervised(tmp_path / "log") as client, anyio.create_task_group() as tasks:
            pid = await pid_of(client)
            tasks.start_soon(client.ask, "Wait", wait)
            await first.wait()
            os.kill(pid, signal.SIGKILL)
            await second.wait()
            assert await pid_of(client) != pid
            scope.cancel()
    assert scope.cancelled_caught


async def test_a_call_is_repeated_once_and_not_for_ever(tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with supervised(tmp_path / "log") as client:
            with pytest.raises(ConnectionClosed, match=r"before it answered Die: it ended with exit code 3"):
                await called(client, "Die", repeatable=True)
            assert await pid_of(client)


async def test_a_call_that_must_not_be_repeated_fails_with_what_happened(tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with supervised(tmp_path / "log") as client:
            before = await pid_of(client)
            with pytest.raises(ConnectionClosed, match=r"before it answered Die: it ended with exit code 3"):
                await called(client, "Die")
            assert await pid_of(client) != before


async def test_a_server_that_cannot_be_started_fails_every_call_with_the_reason(tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with supervised(tmp_path / "log", command=["/no/such/program"]) as client:
            for _ in range(3):
                with pytest.raises(ServerNotStarted, match="there is no such program"):
                    await called(client, "Echo")


async def test_a_server_that_ends_at_once_fails_the_call_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no licence')"]
    with anyio.fail_after(LONGEST_SECONDS):
        async with supervised(tmp_path / "log", command=command) as client:
            with pytest.raises(
                ConnectionClosed, match="exit code 1; the last line of its log is: no licence"
            ):
                await called(client, "Echo", repeatable=True)


async def test_the_timeout_includes_waiting_for_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.1)
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    async with supervised(tmp_path / "log", command=command) as client:
        with pytest.raises(RequestTimedOut, match=r"Echo within 0\.2 s"):
            await called(client, "Echo", timeout=0.2)


async def test_leaving_ends_the_server(tmp_path: Path) -> None:
    async with supervised(tmp_path / "log") as client:
        pid = await pid_of(client)
    await gone(pid)


async def test_after_leaving_a_call_fails_at_once(tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with supervised(tmp_path / "log") as client:
            await pid_of(client)
        with pytest.raises(ConnectionClosed):
            await called(client, "Echo")


async def test_what_the_body_raises_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with supervised(tmp_path / "log"):
            raise ZeroDivisionError


# Over HTTP


@asynccontextmanager
async def over_http(url: str, *, era: EraName | None = None) -> AsyncIterator[Supervised]:
    def opened() -> AbstractAsyncContextManager[Client]:
        return open_http(url, client_name="tests", client_version="0", message_bytes=10_000, era=era)

    server = Supervised(opened)
    async with background_task(server.run):
        yield server


@pytest.mark.parametrize("era", [None, "modern", "legacy"])
async def test_a_server_that_goes_and_comes_back_is_found_again(era: EraName | None, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    with anyio.fail_after(2 * LONGEST_SECONDS):
        async with over_http(f"http://127.0.0.1:{port}/mcp", era=era) as client:
            with pytest.raises(ServerUnreachable, match="nothing listens there"):
                await called(client, "Pid", timeout=LONGEST_SECONDS)
            pids = set()
            for _ in range(2):
                with running(COMMAND, log, port):
                    pids.add(await called(client, "Pid", timeout=LONGEST_SECONDS))
                with pytest.raises(ServerUnreachable):
                    await called(client, "Pid", timeout=LONGEST_SECONDS)
    assert len(pids) == 2


async def test_a_call_that_broke_over_http_is_repeated_once_if_it_may_be() -> None:
    said = [Said(pieces=[b":\n\n"], breaks=True), Said(pieces=[b":\n\n"], breaks=True)]

    def script(heard: Heard) -> Said:
        return said.pop() if said else Said(body=result(heard, content=[]))

    with anyio.fail_after(LONGEST_SECONDS):
        async with (
            served(server := Scripted(script)) as url,
            over_http(url, era="modern") as client,
        ):
            with pytest.raises(ConnectionClosed):
                await called(client, "once", timeout=5)
            await called(client, "again", repeatable=True, timeout=5)
    assert [heard.message["params"]["name"] for heard in server.heard] == ["once", "again", "again"]


async def test_a_call_after_the_end_fails_at_once(tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with served(Scripted(lambda heard: Said(body=result(heard, content=[])))) as url:
            async with over_http(url, era="modern") as remote, supervised(tmp_path / "log") as local:
                await called(remote, "t")
                await called(local, "Pid")
            for client in (remote, local):
                with pytest.raises(ConnectionClosed):
                    await called(client, "t")
