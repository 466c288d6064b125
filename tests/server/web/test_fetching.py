"""Fetching web pages: what is refused before and at the connection, robots.txt, and bounds on what comes.

Covers `ragmemory.web.fetching`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import anyio
import httpx2
import pytest

from ragmemory.web import fetching
from ragmemory.web.fetching import NotFetched, Page, Web
from tests.support.internet import PUBLIC, Internet
from tests.support.pages import PageServer, page_server

# Forms of this machine, of private and link-local networks, and of other protocols and names.
REFUSED = """
http://127.0.0.1/ http://127.1/ http://127.0.0.1./ http://2130706433/ http://0x7f000001/ http://0x7f.1/
http://017700000001/ http://0177.0.0.1/ http://127.255.255.254/ http://0.0.0.0/ http://0/ http://[::]/
http://[::1]/ http://[0:0:0:0:0:0:0:1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/
http://[::127.0.0.1]/ http://[64:ff9b::127.0.0.1]/ http://[64:ff9b::a00:1]/ http://[64:ff9b:1::1]/
http://[2002:7f00:1::]/ http://[fe80::1]/ http://[fc00::1]/ http://[fec0::1]/ http://10.0.0.1/
http://172.16.0.1/ http://192.168.1.1/ http://100.64.0.1/ http://169.254.169.254/latest/meta-data/
http://[fd00:ec2::254]/ http://224.0.0.1/ http://240.0.0.1/ http://255.255.255.255/ http://localhost/
http://localhost./ http://LOCALHOST/ http://%6c%6fcalhost/ https://127.0.0.1/ http://127.0.0.1:22/
http://user@example.org/ http://user:password@example.org/ http://example.org@127.0.0.1/
http://127.0.0.1\\@example.org/ http://127.0.0.1%2f@example.org/ http://①②⑦.⓪.⓪.①/ http://127。0。0。1/
file://localhost/etc/passwd ftp://example.org/ gopher://127.0.0.1:70/ dict://127.0.0.1/ jar:http://127.0.0.1/
data://text/plain,x http:///etc/passwd http://[::1 http://example.org:99999/
""".split()  # noqa: SIM905


@pytest.fixture
def server() -> Iterator[PageServer]:
    with page_server() as pages:
        yield pages


async def no_stamp(_: str) -> str:
    return ""


async def fetched(address: str, **options: Any) -> Page:
    options = {"private": True, "pause": 0.0, **options}
    with anyio.fail_after(20):
        return await Web(**options).fetch(address, no_stamp)


async def reason(address: str, **options: Any) -> str:
    with pytest.raises(NotFetched) as error:
        await fetched(address, **options)
    return str(error.value)


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    return Internet(monkeypatch)


@pytest.mark.parametrize("address", REFUSED)
async def test_no_form_of_a_private_address_is_connected_to(address: str, internet: Internet) -> None:
    await reason(address, private=False)
    assert internet.connected == []


async def test_a_name_that_changes_its_address_after_the_check_is_not_connected_to(
    internet: Internet,
) -> None:
    internet.names["example.org"] = [[PUBLIC], ["127.0.0.1"]]
    assert "(127.0.0.1) is on this machine" in await reason("http://example.org/", private=False)
    assert internet.connected == []


async def test_only_the_public_addresses_of_a_name_are_connected_to(
    server: PageServer, internet: Internet
) -> None:
    internet.names["example.org"], internet.ours = [["10.0.0.1", PUBLIC, "::1"]], {PUBLIC}
    server.add("/tea", "Tea.")
    page = await fetched(f"{server.url.replace('127.0.0.1', 'example.org')}/tea", private=False)
    assert page.data == b"Tea."
    assert {*internet.connected} == {PUBLIC}


@pytest.mark.parametrize(
    "target",
    ["http://169.254.169.254/", "http://[::ffff:10.0.0.1]/", "file:///etc/passwd", "http://a:b@example.org/"],
)
async def test_every_redirect_is_checked(target: str, server: PageServer, internet: Internet) -> None:
    internet.names["example.org"], internet.ours = [[PUBLIC]], {PUBLIC}
    public = server.url.replace("127.0.0.1", "example.org")
    server.add("/a", "", 302, location=target)
    assert "is not loaded" in await reason(f"{public}/a", private=False)
    server.add("/robots.txt", "", 302, location=target)
    assert "is not loaded" in await reason(f"{public}/b", private=False)
    assert server.asked == ["/robots.txt", "/a", "/robots.txt"]
    assert {*internet.connected} == {PUBLIC}


async def test_redirects_lead_to_the_final_address_and_end_in_a_circle(server: PageServer) -> None:
    server.add("/tea", "Tea.")
    page = await fetched(server.add("/old", "", 301, location="/tea#green"))
    assert (page.address, page.data, page.media_type) == (f"{server.url}/tea", b"Tea.", "text/html")
    assert await reason(server.add("/c", "", 302, location="/c")) == "redirects more than 5 times"
    assert server.asked.count("/c") == 6


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(b"tea " * 16_384)


def nested(times: int) -> bytes:
    data = bytes(20 << 20)
    for _ in range(times):
        data = gzip.compress(data, 1)
    return data


async def test_no_body_is_larger_than_the_limit(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MAX_PAGE_BYTES", 1 << 20)
    server.pages["/endless"] = endless
    assert await reason(f"{server.url}/endless") == "is larger than 1 MiB"
    assert await reason(server.add("/bomb", nested(1), content_encoding="gzip")) == "is larger than 1 MiB"
    for encoding, body in {
        "gzip, gzip": nested(2),
        "br": b"\x1b\xff\xff",
        "zstd": b"(\xb5/\xfd",
        "deflate": zlib.compress(b"tea"),
    }.items():
        assert "although only gzip was asked for" in await reason(
            server.add("/other", body, content_encoding=encoding)
        )
    assert "not compressed as its server says" in await reason(
        server.add("/false", b"text", content_encoding="gzip")
    )
    cut = gzip.compress(b"tea " * 1000)[:-9]
    assert await reason(server.add("/cut", cut, content_encoding="gzip")) == "ends too early"
    page = await fetched(server.add("/good", gzip.compress(b"tea"), content_encoding="gzip"))
    assert page.data == b"tea"


async def test_slow_and_silent_servers_are_left(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def dripping(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while not server.stopping.wait(0.02):
            request.wfile.write(b".")

    def silent(_: BaseHTTPRequestHandler) -> None:
        server.stopping.wait()

    server.pages |= {"/slow": dripping, "/silent": silent}
    monkeypatch.setattr(fetching, "ANSWER_SECONDS", 0.3)
    assert await reason(f"{server.url}/slow") == "did not answer in time"
    assert await reason(f"{server.url}/silent") == "did not answer in time"


async def test_robots_txt_is_obeyed_also_where_it_cannot_be_read(server: PageServer) -> None:
    address = server.add("/drafts/tea.html", "Tea.")
    server.add("/robots.txt", "User-agent: ragchat\nDisallow: /drafts/*.html$\nAllow: /drafts/*.html?full")
    assert f"{server.url}/robots.txt excludes it" in await reason(address)
    server.add("/robots.txt", "", 503)
    assert f"{server.url}/robots.txt answers 503" in await reason(address)
    server.add("/robots.txt", "", 404)
    assert (await fetched(address)).data == b"Tea."


async def test_requests_to_one_host_are_a_pause_apart(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(round(seconds, 1))

    server.add("/robots.txt", "User-agent: *\nCrawl-delay: 7")
    web, address = Web(private=True), server.add("/tea", "Tea.")
    with monkeypatch.context() as patch:
        patch.setattr(anyio, "sleep", wait)
        await web.fetch(address, no_stamp)
        await web.fetch(address, no_stamp)
    first, second, third = waits
    assert (first, second) == (0.0, 1.0)
    assert 7.0 < third <= 8.0


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        ("[Errno -3] Temporary failure in name resolution", "Temporary failure in name resolution"),
        ("[WinError 1225] The connection was refused", "The connection was refused"),
        ("[Errno 101] No route to [::1] at all", "No route to [::1] at all"),
    ],
)
async def test_an_unknown_host_is_an_error_without_its_number(
    monkeypatch: pytest.MonkeyPatch, stated: str, shown: str
) -> None:
    async def unknown(*_: object, **__: object) -> httpx2.Response:
        raise httpx2.ConnectError(stated)

    monkeypatch.setattr(httpx2.AsyncClient, "send", unknown)
    assert (await reason("http://nowhere.example/tea")).endswith(f"cannot be reached ({shown})")
