"""Web pages as documents: loaded, kept in step, and what they become when they are not there.

Covers `ragmemory.files.pages` and `ragmemory.web.fetching` too.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

from ragcommon.contract.files import FileOutcome
from ragmemory.errors import PagesNotAllowed
from ragmemory.files.formats import html
from ragmemory.service import MemoryService
from ragmemory.web.fetching import Web
from tests.support.memories import ORIGIN, service_for
from tests.support.pages import PageServer, page_server

NEWS = """<html><head><title>Tea prices rise | The Daily</title><meta name="author" content="Ann Lee">
<script type="application/ld+json">{"datePublished": "2024-05-01T10:00:00Z"}</script></head><body>
<div id="cookie-consent"><p>We and our partners use cookies on your device.</p><button>Accept</button></div>
<div class="top"><a href="/">Home</a> <a href="/w">World</a> <a href="/b">Business</a> <a>Sport</a></div>
<div class="content"><h1>Tea prices rise</h1><p>The price of tea rose by twelve percent in April, after a dry
spring.</p><div class="ad">Advertisement</div><h2>Exports fall</h2><p>Exports fell to 14,000 tonnes. Most of
it goes to Germany, where prices follow with a delay of two months.</p><img src="/tracker.png">
<div class="share-buttons">Share this</div></div>
<div class="related"><h3>More from Business</h3><p><a href="/1">Coffee futures slump</a></p></div>
<div class="footer">The Daily. Imprint.</div></body></html>"""
MAIN = """# Tea prices rise

Author: Ann Lee
Date: 2024-05-01

The price of tea rose by twelve percent in April, after a dry spring.

## Exports fall

Exports fell to 14,000 tonnes. Most of it goes to Germany, where prices follow with a delay of two months.
"""


@pytest.fixture
def server() -> Iterator[PageServer]:
    with page_server() as pages:
        yield pages


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryService]:
    service = service_for(tmp_path, roots=["*"])
    service.web = Web(private=True, pause=0.0)
    async with service:
        yield service


async def outcomes(memory: MemoryService, *sources: str, sync: bool = False) -> list[FileOutcome]:
    jobs = memory.ingestions
    with anyio.fail_after(30):
        if sync:
            job = await memory.sources.sync(sources, ORIGIN)
        else:
            job = await jobs.start(sources, prune=False, origin=ORIGIN)
        _, found = await jobs.status(job.job_id, wait_seconds=30)
    return sorted(found, key=lambda one: one.number)


async def test_only_the_main_text_of_a_page_is_stored_and_nothing_else_is_fetched(
    memory: MemoryService, server: PageServer
) -> None:
    address = server.add("/business/tea.html", NEWS)
    [outcome] = await outcomes(memory, address + "#exports")
    assert (outcome.uri, outcome.status) == (address, "added")
    found, text = await memory.documents.read(address)
    assert (found.title, text) == ("Tea prices rise | The Daily", MAIN)
    assert server.asked == ["/robots.txt", "/business/tea.html"]
    assert [one.status for one in await outcomes(memory, address)] == ["unchanged"]


async def test_other_formats_are_read_by_their_media_type(memory: MemoryService, server: PageServer) -> None:
    server.add("/notes", "# Notes\n\nTea.", content_type="text/markdown")
    server.add("/cyrillic", "<p>Чай".encode("cp1251"), content_type="text/html; charset=windows-1251")
    server.add("/false.html", "%PDF-1.4\n1 0 obj damaged", content_type="text/html")
    server.add("/picture", "GIF89a", content_type="image/gif")
    server.add("/empty", "<script>show()</script>")
    found = await outcomes(memory, *(f"{server.url}{path}" for path in server.pages))
    assert [(one.status, one.reason) for one in found] == [
        ("added", ""),
        ("added", ""),
        ("failed", "is a PDF file, not what its name says, and is a damaged PDF file, or not one at all"),
        ("failed", "is in a format that is not read (image/gif)"),
        ("failed", "holds no text"),
    ]
    assert (await memory.documents.read(f"{server.url}/cyrillic"))[1] == "Чай\n"


async def test_a_source_is_the_final_address_and_stays_in_step(
    memory: MemoryService, server: PageServer
) -> None:
    server.add("/tea", "<p>Green tea.", etag='"1"')
    [added] = await memory.sources.add([server.add("/old", "", 301, location="/tea")])
    address = f"{server.url}/tea"
    assert (added.uri, added.status) == (address, "added")
    assert [one.status for one in await outcomes(memory, sync=True)] == ["added"]
    assert [one.status for one in await outcomes(memory, sync=True)] == ["unchanged"]
    server.add("/tea", "<p>Black tea.", etag='"2"')
    assert [one.status for one in await outcomes(memory, sync=True)] == ["updated"]

    server.add("/tea", "", 503)
    [failed] = await outcomes(memory, sync=True)
    kept = "; memory keeps what it has of it"
    assert (failed.status, failed.reason) == ("failed", f"answers 503 Service Unavailable{kept}")
    server.add("/tea", "", 410)
    [missing] = await outcomes(memory, sync=True)
    assert (missing.uri, missing.status, missing.reason) == (address, "missing", "answers 410 Gone")
    [source] = await memory.sources.listed()
    assert (source.documents, source.outcome and source.outcome.files) == (1, {"missing": 1})
    assert (await memory.sources.remove(f"{address}#green", ORIGIN, forget=True)).documents == 1


async def test_a_password_in_an_address_is_neither_sent_nor_stored(
    memory: MemoryService, server: PageServer
) -> None:
    secret = server.add("/tea", "Tea.").replace("//", "//ann:secret@")
    [outcome] = await outcomes(memory, secret)
    assert "it contains a user name or password" in outcome.reason
    assert "secret" not in repr([outcome, await memory.ingestions.newest(1)])
    assert server.asked == []


async def test_a_process_of_other_callers_loads_no_page(tmp_path: Path, server: PageServer) -> None:
    async with service_for(tmp_path, roots=["*"]) as memory:
        with pytest.raises(PagesNotAllowed):
            await memory.ingestions.start([server.add("/tea", "Tea.")], prune=False, origin=ORIGIN)
        with pytest.raises(PagesNotAllowed):
            await memory.sources.add([f"{server.url}/tea"])
    assert server.asked == []


@pytest.mark.parametrize(
    "page",
    [
        "<div class=cookie>" * 100_000,
        "<p " + "class=ad " * 100_000 + ">",
        "<div id=ad>" + "<a href=x>x</a>" * 10_000,
        '<meta name="author" content="' + "x" * 1_000_000 + '">',
        '<script type="application/ld+json">' + '"author":{' * 50_000 + "</script>",
        "<a><b><i><table><tr><td>" * 20_000,
        "<!--" * 200_000,
        "<![CDATA[" * 100_000 + "\0\ud800",
    ],
    ids=list("12345678"),
)
def test_hostile_html_takes_no_longer_than_other_html(page: str) -> None:
    began = time.monotonic()
    data = f"<title>Tea</title><p>Tea.</p>{page}".encode(errors="surrogatepass")
    assert "Tea." in html.read(Path("tea.html"), data, is_page=True).text
    assert time.monotonic() - began < 10
