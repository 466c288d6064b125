"""Live and ready, as a load balancer asks. The memory is in a file, and in a database behind a proxy."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import anyio
import httpx2
import pytest

from ragmemory.errors import DatabaseUnavailable
from ragmemory.http import health
from ragmemory.http.health import Readiness
from ragmemory.service import MemoryService
from tests.support.database_proxy import database_proxy
from tests.support.http_memory import PLAIN_HTTP, http_memory
from tests.support.memories import service_for
from tests.support.processes import LONGEST_SECONDS

WARMING_UP = "The server has just been started, and reads the memory."


def once_warm(url: str) -> httpx2.Response:
    """The answer of a server that has warmed up."""
    while (answer := httpx2.get(url, **PLAIN_HTTP)).json().get("reason") == WARMING_UP:
        assert answer.status_code == 503
    return answer


def test_the_process_is_live_and_ready_without_a_token(tmp_path: Path) -> None:
    with http_memory(tmp_path, RAGMEMORY_TOKEN="a-secret-nobody-guesses") as server:
        for path in ("/health/live", "/health/ready"):
            answer = once_warm(server.root + path)
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_memory_that_cannot_be_read_is_live_but_not_ready(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("no database " * 99, encoding="utf-8")
    with http_memory(tmp_path) as server:
        assert httpx2.get(f"{server.root}/health/live", **PLAIN_HTTP).status_code == 200
        answer = once_warm(f"{server.root}/health/ready")
        assert answer.status_code == 503
        assert answer.json() == {
            "status": "unavailable",
            "reason": "The memory cannot be read (NOT_A_MEMORY). The log of the server says why.",
        }


async def test_a_server_that_is_shutting_down_is_not_ready(memory: MemoryService) -> None:
    async def opened() -> MemoryService:
        return memory

    assert await Readiness(opened, lambda: False, lambda: True).why_not() == ""
    assert await Readiness(opened, lambda: True, lambda: True).why_not() == "The server is shutting down."
    assert await Readiness(opened, lambda: False, lambda: False).why_not() == WARMING_UP


async def test_the_log_says_why_it_is_not_ready_once_for_each_change(
    memory: MemoryService, caplog: pytest.LogCaptureFixture
) -> None:
    errors = [DatabaseUnavailable("postgresql://db/notes", "connection refused")] * 3

    async def opened() -> MemoryService:
        if errors:
            raise errors.pop()
        return memory

    readiness = Readiness(opened, lambda: False, lambda: True)
    answers = [await readiness.why_not() for _ in range(5)]
    assert answers[2:] == [
        "The memory cannot be read (MEMORY_UNAVAILABLE). The log of the server says why.",
        "",
        "",
    ]
    assert caplog.messages == [
        "Not ready: The memory postgresql://db/notes is not available: connection refused. "
        "Check that the server runs, and store.url; "
        "a password is read from PGPASSWORD or ~/.pgpass (mode 600).",
        "Ready again.",
    ]


async def test_an_error_of_the_system_is_a_reason_too(caplog: pytest.LogCaptureFixture) -> None:
    async def opened() -> MemoryService:
        raise PermissionError(13, "Permission denied", "/srv/memory.db")

    reason = await Readiness(opened, lambda: False, lambda: True).why_not()
    assert reason == "The memory cannot be read (INTERNAL_ERROR). The log of the server says why."
    assert caplog.messages == ["Not ready: /srv/memory.db: permission denied."]


def test_the_log_says_why_a_memory_cannot_be_read_also_where_nothing_probes(tmp_path: Path) -> None:
    (tmp_path / "memory.db").mkdir()
    end = time.monotonic() + LONGEST_SECONDS
    with http_memory(tmp_path) as server:
        while "Not ready" not in (log := server.log.read_text(encoding="utf-8")):
            assert time.monotonic() < end
    assert f"Not ready: The memory {tmp_path / 'memory.db'} cannot be used: it is a folder." in log


@pytest.mark.full
async def test_a_database_that_is_away_or_silent_is_not_ready_within_a_bounded_time(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{database}&schema=test_{secrets.token_hex(6)}"
    with anyio.fail_after(60):
        async with database_proxy(url) as proxy, service_for(tmp_path, url=proxy.url) as memory:

            async def opened() -> MemoryService:
                return memory

            async def reason() -> str:
                return await readiness.why_not()

            readiness = Readiness(opened, lambda: False, lambda: True)

            assert await reason() == ""
            await proxy.go_down()
            assert await reason() == (
                "The memory cannot be read (MEMORY_UNAVAILABLE). The log of the server says why."
            )
            await proxy.come_up()
            assert await reason() == ""
            monkeypatch.setattr(health, "READY_SECONDS", 0.1)
            proxy.stop_passing()
            assert await reason() == "The memory did not answer within 0.1 seconds."
