"""The address on this machine to which a browser is sent back after a login. Source: RFC 8252, 7.3."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import anyio
from anyio.abc import SocketAttribute, SocketStream

HOST = "127.0.0.1"
PATH = "/callback"
# The longest request that is read; a code takes far less.
LARGEST_BYTES = 2**16
REQUEST_SECONDS = 10.0

_PAGE = "<!doctype html><meta charset=utf-8><title>{title}</title><p>{title}"
DONE = "You can close this page and go back to the terminal."
UNKNOWN = "There is nothing here."


class Redirect:
    """Waits at `uri` for one browser."""

    def __init__(self, port: int) -> None:
        self.uri = f"http://{HOST}:{port}{PATH}"
        self._returned = ""
        self._arrived = anyio.Event()

    async def wait(self) -> str:
        """The address with which the browser came, once it has come."""
        await self._arrived.wait()
        return self._returned

    async def _serve(self, stream: SocketStream) -> None:
        async with stream:
            with anyio.move_on_after(REQUEST_SECONDS):
                target = await _target(stream)
                # Browsers also ask for an icon.
                is_ours = target.partition("?")[0] == PATH
                with suppress(anyio.BrokenResourceError):  # It has closed the connection.
                    await stream.send(_response(is_ours))
                if is_ours and not self._arrived.is_set():
                    self._returned = f"http://{HOST}{target}"
                    self._arrived.set()


@asynccontextmanager
async def open_redirect(port: int = 0) -> AsyncIterator[Redirect]:
    """Listen on this machine (0: on any free port). Raises OSError."""
    listener = await anyio.create_tcp_listener(local_host=HOST, local_port=port)
    async with listener, anyio.create_task_group() as tasks:
        redirect = Redirect(listener.extra(SocketAttribute.local_port))
        tasks.start_soon(listener.serve, redirect._serve)
        yield redirect
        tasks.cancel_scope.cancel()


async def _target(stream: SocketStream) -> str:
    """The target in the first line of a request; "" for anything else."""
    request = b""
    try:
        while b"\r\n\r\n" not in request and len(request) < LARGEST_BYTES:
            request += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return ""
    verb, _, rest = request.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    return rest.partition(" ")[0] if verb == "GET" else ""


def _response(is_ours: bool) -> bytes:
    status = HTTPStatus.OK if is_ours else HTTPStatus.NOT_FOUND
    body = _PAGE.format(title=DONE if is_ours else UNKNOWN).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/html; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
