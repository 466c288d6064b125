"""The end of a server on a socket: what it still answers ends before it does. Of `listening`."""

from __future__ import annotations

from functools import partial

import anyio
import httpx2
from starlette.types import Receive, Scope, Send

from ragcommon.listening import AddressUnusable, ConnectionLimits, Listener, bound
from ragmcp.concurrency import background_task


async def test_a_request_that_is_open_when_the_server_is_cancelled_ends_before_the_server() -> None:
    asked, ended = anyio.Event(), False

    async def app(_: Scope, __: Receive, ___: Send) -> None:
        nonlocal ended
        try:
            asked.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                ended = True

    async def request(port: int) -> None:
        async with httpx2.AsyncClient() as client:
            with anyio.fail_after(60):
                try:
                    await client.get(f"http://127.0.0.1:{port}/")
                except httpx2.RemoteProtocolError:
                    closed.set()

    closed = anyio.Event()
    with bound("127.0.0.1", 0) as listening:
        listener = Listener(app, ConnectionLimits(5, 65_536, 5, 5))
        async with anyio.create_task_group() as clients:
            async with background_task(partial(listener.run_on, listening)):
                await listener.started_listening.wait()
                clients.start_soon(request, listening.getsockname()[1])
                await asked.wait()
            assert ended
            await closed.wait()


def test_an_address_that_cannot_be_used_is_named() -> None:
    error = AddressUnusable("127.0.0.1", 80, "permission denied")
    assert str(error) == "The server cannot listen at 127.0.0.1, port 80: permission denied."
