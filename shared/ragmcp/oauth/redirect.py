"""The loopback address to which a browser is redirected after a login. Source: RFC 8252, 7.3."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream

HOST = "127.0.0.1"
PATH = "/callback"
# The maximum length of a request; a code takes far less.
MAX_REQUEST_BYTES = 2**16
REQUEST_SECONDS = 10.0

_PAGE = "<!doctype html><meta charset=utf-8><title>{title}</title><p>{title}"
DONE = "You can close this page and go back to the terminal."
UNKNOWN = "There is nothing here, or it belongs to another login."


class Redirect:
    """Waits at `uri` for the browser of one login at a time."""

    def __init__(self, port: int) -> None:
        self.uri = f"http://{HOST}:{port}{PATH}"
        self._state = ""
        self._returned = ""
        self._arrived = anyio.Event()

    def expect(self, state: str) -> None:
        """Accept only the login with this `state`: any web page can send the browser here."""
        self._state, self._arrived = state, anyio.Event()

    async def wait(self) -> str:
        """Wait for the redirect of the expected login; returns its address."""
        await self._arrived.wait()
        return self._returned

    async def serve(self, stream: SocketStream) -> None:
        """Answer one request of a browser."""
        async with stream:
            with anyio.move_on_after(REQUEST_SECONDS):
                target = await _target(stream)
                address = f"http://{HOST}{target}"
                # Browsers also ask for an icon.
                is_ours = target.partition("?")[0] == PATH and has_state(address, self._state)
                with suppress(anyio.BrokenResourceError):  # The browser has disconnected.
                    await stream.send(_response(is_ours))
                if is_ours and not self._arrived.is_set():
                    self._returned = address
                    self._arrived.set()


def has_state(address: str, state: str) -> bool:
    """Whether a redirect address has this `state`."""
    given = parse_qs(urlsplit(address).query).get("state", [""])[0]
    return bool(state) and hmac.compare_digest(given.encode(), state.encode())


@asynccontextmanager
async def open_redirect(port: int = 0) -> AsyncIterator[Redirect]:
    """Listen on this machine (0: on any free port). Raises OSError."""
    listener = await anyio.create_tcp_listener(local_host=HOST, local_port=port)
    async with listener, anyio.create_task_group() as tasks:
        redirect = Redirect(listener.extra(SocketAttribute.local_port))
        tasks.start_soon(listener.serve, redirect.serve)
        yield redirect
        tasks.cancel_scope.cancel()


async def _target(stream: SocketStream) -> str:
    """The target of a GET request; "" for anything else."""
    request = b""
    try:
        while b"\r\n\r\n" not in request and len(request) < MAX_REQUEST_BYTES:
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
