"""The log of a server that writes much, and what is left of it when the server has ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from ragchat.log import LOG_BYTES
from ragchat.servers.bounded_log import bounded_log
from tests.support.processes import open_descriptors

posix = pytest.mark.skipif(sys.platform == "win32", reason="the length of logs is limited on POSIX")


@posix
async def test_the_last_line_is_known_when_the_server_has_ended(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with bounded_log(tmp_path / "server.log") as log:
            writer = log.writer()
            os.write(writer, b"starting\nno such file\n")
            os.close(writer)
            assert await log.last_line() == "no such file"
    assert (tmp_path / "server.log").stat().st_mode & 0o777 == 0o600


@posix
async def test_a_server_that_is_started_twice_writes_to_one_log(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with bounded_log(tmp_path / "server.log") as log:
            for said in (b"unknown request\n", b"no such file\n"):
                writer = log.writer()
                os.write(writer, said)
                os.close(writer)
            assert await log.last_line() == "no such file"
    assert "unknown request\n" in (tmp_path / "server.log").read_text("utf-8")


@posix
async def test_each_start_has_its_own_lines_in_the_log(tmp_path: Path) -> None:
    for said in (b"no such file\n", b""):
        with anyio.fail_after(60):
            async with bounded_log(tmp_path / "server.log") as log:
                writer = log.writer()
                os.write(writer, said)
                os.close(writer)
                assert await log.last_line() == said.decode().strip()
    blank, first, line, between, second, *_ = (tmp_path / "server.log").read_text("utf-8").split("\n")
    assert (blank, line, between) == ("", "no such file", "")
    assert first.startswith("--- started 20")
    assert second.startswith("--- started 20")


@posix
async def test_a_log_that_is_too_long_becomes_the_one_of_older_lines(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with bounded_log(tmp_path / "server.log") as log:
            (tmp_path / "server.log").write_text("x" * LOG_BYTES, encoding="utf-8")
            writer = log.writer()
            os.write(writer, b"a")
            while (tmp_path / "server.log").stat().st_size == LOG_BYTES:
                await anyio.lowlevel.checkpoint()
            os.write(writer, b"b")
            os.close(writer)
            assert await log.last_line() == "b"
    assert (tmp_path / "server.log.1").stat().st_size == LOG_BYTES + 1


@posix
async def test_a_log_that_no_server_was_given_is_closed(tmp_path: Path) -> None:
    before = open_descriptors()
    async with bounded_log(tmp_path / "server.log"):
        pass
    assert open_descriptors() <= before
