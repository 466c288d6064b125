"""One side of a live connection: how requests share its workers, and what cancelling one does to others.

Covers `streams`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ragmcp.concurrency import background_task
from ragmcp.errors import ConnectionClosed, MethodNotFound, WireError
from ragmcp.peer import LINES_AT_ONCE, Peer, Waiter
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.connection import Connection
from ragmcp.protocol.jsonrpc import Notification, Request
from tests.support.in_memory import memory_pair

# Notifications, all in one portion.
FLOOD = 500
Handle = Callable[[Request], Coroutine[Any, Any, Any]]


@asynccontextmanager
async def peers(handle: Handle) -> AsyncIterator[tuple[Peer, Peer]]:
    """Two peers; the second answers with `handle`."""

    async def refuse(request: Request) -> None:
        raise MethodNotFound(request.method)

    here, there = memory_pair()
    asking = Peer(here, Connection[Waiter](10_000, refuses=False), refuse)
    answering = Peer(there, Connection[Waiter](10_000, refuses=True), handle)
    with anyio.fail_after(10):
        async with background_task(asking.run), background_task(answering.run):
            yield asking, answering


async def test_requests_that_need_not_wait_are_answered_by_one_worker_in_order() -> None:
    workers: set[int] = set()

    async def handle(request: Request) -> str:
        workers.add(anyio.get_current_task().id)
        return request.method

    async with peers(handle) as (asking, _):
        answers = [json.loads(bytes(await asking.request(f"m{n}", {}))) for n in range(50)]
    assert answers == [f"m{n}" for n in range(50)]
    assert len(workers) == 1


async def test_requests_that_wait_do_not_hold_each_other_up() -> None:
    all_arrived = anyio.Event()
    arrived: list[str] = []
    answers: list[str] = []

    async def handle(request: Request) -> str:
        arrived.append(request.method)
        if len(arrived) == 100:
            all_arrived.set()
        await all_arrived.wait()
        return request.method

    async def ask(method: str) -> None:
        answers.append(json.loads(bytes(await asking.request(method, {}))))

    methods = [f"m{number}" for number in range(100)]
    async with peers(handle) as (asking, _), anyio.create_task_group() as tasks:
        for method in methods:
            tasks.start_soon(ask, method)
    assert arrived == methods
    assert sorted(answers) == sorted(methods)


async def test_workers_are_used_again() -> None:
    workers: set[int] = set()

    async def handle(_: Request) -> int:
        workers.add(anyio.get_current_task().id)
        await anyio.lowlevel.checkpoint()
        return 0

    async with peers(handle) as (asking, _):
        for _number in range(100):
            await asking.request("m", {})
    assert len(workers) <= 3


async def test_scopes_and_groups_work_within_a_request() -> None:
    async def handle(_: Request) -> str:
        with anyio.move_on_after(0.01) as scope:
            await anyio.sleep_forever()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.lowlevel.checkpoint)
        return "late" if scope.cancelled_caught else "early"

    async with peers(handle) as (asking, _):
        for _number in range(3):
            assert bytes(await asking.request("m", {})) == b'"late"'


async def test_a_cancelled_request_takes_no_other_along() -> None:
    begun, ended = anyio.Event(), anyio.Event()

    async def handle(request: Request) -> str:
        if request.method == "quick":
            await anyio.lowlevel.checkpoint()
            return "done"
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    async with peers(handle) as (asking, _):
        for _number in range(3):
            begun, ended = anyio.Event(), anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(asking.request, "slow", {})
                await begun.wait()
                tasks.cancel_scope.cancel()
            assert bytes(await asking.request("quick", {})) == b'"done"'
            await ended.wait()


async def test_an_unforeseen_failure_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def handle(_: Request) -> None:
        raise RuntimeError("an internal secret")

    async with peers(handle) as (asking, _):
        with pytest.raises(WireError, match="its log says more"):
            await asking.request("m", {})
    assert "an internal secret" in caplog.text


async def test_a_flood_of_notifications_lets_others_have_their_turn() -> None:
    heard: list[int] = []
    done = anyio.Event()

    def note(_: Notification) -> None:
        heard[-1] += 1
        if sum(heard) == FLOOD:
            done.set()

    async def take_turns() -> None:
        while True:
            heard.append(0)
            await anyio.lowlevel.checkpoint()

    async def never(request: Request) -> None:
        raise MethodNotFound(request.method)

    here, there = memory_pair()
    listening = Peer(here, Connection[Waiter](10_000, refuses=False), never, note)
    for number in range(FLOOD):
        there.write(jsonrpc.encode_notification("n", {"number": number}))
    with anyio.fail_after(10):
        async with background_task(take_turns), background_task(listening.run):
            there.flush()
            await done.wait()
    assert max(heard) < 2 * LINES_AT_ONCE


async def test_both_sides_can_ask() -> None:
    async def handle(_: Request) -> str:
        with pytest.raises(WireError, match="Unknown method 'back'"):
            await answering.request("back", {})
        return "asked back"

    async with peers(handle) as (asking, answering):
        assert bytes(await asking.request("m", {})) == b'"asked back"'


async def test_after_the_end_nothing_can_be_asked() -> None:
    async def handle(_: Request) -> str:
        return ""

    here, there = memory_pair()
    there.close()
    peer = Peer(here, Connection[Waiter](10_000, refuses=False), handle)
    with anyio.fail_after(5):
        await peer.run()
    with pytest.raises(ConnectionClosed):
        await peer.request("m", {})
