"""The page to which a browser is sent back."""

from __future__ import annotations

import socket
import struct

import anyio
import httpx2
from anyio.abc import SocketAttribute

from ragmcp.oauth.redirect import open_redirect
from tests.support.processes import LONGEST_SECONDS


async def test_the_address_with_the_code_is_returned_and_nothing_else() -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with open_redirect() as redirect, httpx2.AsyncClient() as browser:
            redirect.expect("s")
            icon = await browser.get(redirect.uri.replace("/callback", "/favicon.ico"))
            assert icon.status_code == 404
            page = await browser.get(f"{redirect.uri}?code=a%20b&state=s")
            assert (page.status_code, "close this page" in page.text) == (200, True)
            assert (await redirect.wait()).endswith("/callback?code=a%20b&state=s")
            assert (await browser.get(f"{redirect.uri}?code=other&state=s")).status_code == 200
            assert "code=a%20b" in await redirect.wait()


async def test_a_browser_that_comes_from_another_login_is_ignored() -> None:
    """Any page can send it here."""
    with anyio.fail_after(LONGEST_SECONDS):
        async with open_redirect() as redirect, httpx2.AsyncClient() as browser:
            assert (await browser.get(f"{redirect.uri}?code=early&state=")).status_code == 404
            for state in ("first", "second"):
                redirect.expect(state)
                for wrong in ("code=evil", "code=evil&state=", "code=evil&state=x", "error=no&state=%C3%A4"):
                    assert (await browser.get(f"{redirect.uri}?{wrong}")).status_code == 404
                assert (await browser.get(f"{redirect.uri}?code=c&state={state}")).status_code == 200
                assert (await redirect.wait()).endswith(f"code=c&state={state}")


async def test_a_connection_that_says_nothing_does_not_block_the_browser() -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with open_redirect() as redirect, httpx2.AsyncClient() as browser:
            redirect.expect("s")
            url = httpx2.URL(redirect.uri)
            async with await anyio.connect_tcp(url.host, url.port or 0):
                assert (await browser.get(f"{redirect.uri}?code=c&state=s")).status_code == 200


async def test_a_connection_that_is_reset_does_not_end_the_wait() -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with open_redirect() as redirect, httpx2.AsyncClient() as browser:
            redirect.expect("s")
            url = httpx2.URL(redirect.uri)
            async with await anyio.connect_tcp(url.host, url.port or 0) as stream:
                await stream.send(b"GET /callback?code=")
                # No lingering: closing it resets the connection.
                raw = stream.extra(SocketAttribute.raw_socket)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            assert (await browser.get(f"{redirect.uri}?code=c&state=s")).status_code == 200
            assert (await redirect.wait()).endswith("code=c&state=s")
