"""Two descriptors as a stream: the same promises with the event loop and with threads.

Covers `opening`, `polled` and `threaded`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ragmcp.stdio.opening import PIPE_BYTES, open_pipes, widen
from ragmcp.stdio.pipes import Pipes
from ragmcp.stdio.polled import PolledPipes
from ragmcp.stdio.threaded import ThreadedPipes

Open = Callable[[int, int], AbstractAsyncContextManager[Pipes]]


def open_polled(read_fd: int, write_fd: int) -> AbstractAsyncContextManager[Pipes]:
    return PolledPipes(read_fd, write_fd).opened()


def open_threaded(read_fd: int, write_fd: int) -> AbstractAsyncContextManager[Pipes]:
    return ThreadedPipes(read_fd, write_fd).opened()


FORMS: list[Open] = [open_polled, open_threaded] if sys.platform != "win32" else [open_threaded]
both = pytest.mark.parametrize("form", FORMS, ids=["event loop", "threads"][-len(FORMS) :])


@asynccontextmanager
async def pair(form: Open) -> AsyncIterator[tuple[Pipes, Pipes]]:
    """Two streams that are each other's."""
    (read_a, write_b), (read_b, write_a) = os.pipe(), os.pipe()
    with anyio.fail_after(60):
        async with form(read_a, write_a) as here, form(read_b, write_b) as there:
            yield here, there
            here.end()
            there.end()


async def received(stream: Pipes, size: int) -> bytes:
    parts: list[bytes] = []
    while sum(map(len, parts)) < size:
        parts.append(await stream.receive())
        assert parts[-1]
    return b"".join(parts)


@both
async def test_lines_arrive_in_order_with_their_newlines(form: Open) -> None:
    async with pair(form) as (here, there):
        for number in range(100):
            here.write(b"line %d" % number)
            here.flush()
        expected = b"".join(b"line %d\n" % number for number in range(100))
        assert await received(there, len(expected)) == expected


@both
async def test_both_directions_carry_more_than_a_pipe_holds_at_once(form: Open) -> None:
    size = 5 * 2**20
    async with pair(form) as (here, there), anyio.create_task_group() as tasks:
        for stream, byte in ((here, b"a"), (there, b"b")):
            stream.write(byte * size)
            stream.flush()
        tasks.start_soon(received, here, size + 1)
        assert await received(there, size + 1) == b"a" * size + b"\n"


@both
async def test_the_end_comes_after_everything_that_was_written(form: Open) -> None:
    async with pair(form) as (here, there):
        here.write(b"last words")
        here.flush()
        await here.drain(0)
        here.end()
        assert await received(there, 11) == b"last words\n"
        assert await there.receive() == b""
        assert await there.receive() == b""


@both
async def test_drain_waits_until_somebody_reads(form: Open) -> None:
    size = 8 * 2**20
    async with pair(form) as (here, there):
        here.write(b"x" * size)
        here.flush()
        with anyio.move_on_after(0.05) as early:
            await here.drain(0)
        assert early.cancelled_caught
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(received, there, size + 1)
            await here.drain(0)


@both
async def test_writing_to_nobody_harms_nobody(form: Open) -> None:
    read_end, write_end = os.pipe()
    theirs, ours = os.pipe()
    os.close(read_end)
    with anyio.fail_after(60):
        async with form(theirs, write_end) as stream:
            stream.write(b"x" * 2**21)
            stream.flush()
            await stream.drain(0)
            os.close(ours)
            assert await stream.receive() == b""


async def test_a_cancelled_receiver_loses_nothing() -> None:
    async with pair(open_pipes) as (here, there):
        with anyio.move_on_after(0):
            await there.receive()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(there.receive)
            await anyio.lowlevel.checkpoint()
            here.write(b"kept")
            here.flush()
            tasks.cancel_scope.cancel()
        assert await there.receive() == b"kept\n"


async def test_files_are_read_through_threads(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    await anyio.Path(source).write_bytes(b"one\ntwo\n")
    read_fd, write_fd = os.open(source, os.O_RDONLY), os.open(target, os.O_CREAT | os.O_WRONLY)
    with anyio.fail_after(60):
        async with open_pipes(read_fd, write_fd) as stream:
            assert isinstance(stream, ThreadedPipes)
            assert await stream.receive() == b"one\ntwo\n"
            stream.write(b"three")
            stream.flush()
            await stream.drain(0)
    assert await anyio.Path(target).read_bytes() == b"three\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can widen a pipe")
def test_a_pipe_is_widened_and_what_is_no_pipe_left_alone(tmp_path: Path) -> None:
    import fcntl

    read_fd, write_fd = os.pipe()
    widen(write_fd)
    assert fcntl.fcntl(read_fd, 1032) == PIPE_BYTES  # F_GETPIPE_SZ
    with (tmp_path / "file").open("w") as file:
        widen(file.fileno())
    os.close(read_fd)
    os.close(write_fd)


@both
async def test_all_who_drain_go_on_once_somebody_reads(form: Open) -> None:
    size = 8 * 2**20
    async with pair(form) as (here, there):
        here.write(b"x" * size)
        here.flush()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here.drain)
            tasks.start_soon(here.drain)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(received, there, size + 1)


@pytest.mark.skipif(sys.platform == "win32", reason="asyncio polls no pipes there")
async def test_nobody_waits_for_what_the_end_has_left_unsent() -> None:
    async with pair(open_polled) as (here, _), anyio.create_task_group() as tasks:
        here.write(b"x" * 8 * 2**20)
        here.flush()
        tasks.start_soon(here.drain)
        await anyio.wait_all_tasks_blocked()
        here.end()


@pytest.mark.skipif(sys.platform == "win32", reason="asyncio polls no pipes there")
async def test_a_stream_without_memory_for_a_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: int) -> bytes:
        raise MemoryError

    async with pair(open_polled) as (here, there):
        monkeypatch.setattr("ragmcp.stdio.polled.os.read", read)
        here.write(b"x")
        here.flush()
        assert await there.receive() == b""
        monkeypatch.undo()
