"""Web pages: how fast they are fetched from a server on loopback and stored, and a long one is read."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import anyio

from ragmemory.files.formats import html
from ragmemory.web.fetching import Web
from tests.support.memories import ORIGIN, service_for
from tests.support.pages import PageServer, page_server

PAGES = 100
REPEATS = 5
PARAGRAPH = (
    "<h2>Part {0}</h2><p>Paragraph {0} about tea and coffee, with <b>bold</b> words and <a>links</a>.</p>"
)


def run() -> None:
    with page_server() as server:
        seconds = anyio.run(_load, server)
    print(f"web pages: {PAGES / seconds:.0f} a second, fetched, read and stored, without the pause")
    page = "<article>" + "".join(map(PARAGRAPH.format, range(10_000)))
    data = page.encode()[: 1 << 20]
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        html.read(Path("page.html"), data, is_page=True)
        times.append(time.perf_counter() - began)
    print(f"web pages: {statistics.median(times):.2f} s to read the main text of 1 MiB of HTML")


async def _load(server: PageServer) -> float:
    texts = ("".join(map(PARAGRAPH.format, range(number, number + 20))) for number in range(PAGES))
    addresses = [server.add(f"/{number}", text) for number, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        service = service_for(Path(folder), roots=["*"])
        service.web = Web(private=True, pause=0.0)
        async with service:
            began = time.perf_counter()
            job = await service.ingestions.start(addresses, prune=False, origin=ORIGIN)
            job, _ = await service.ingestions.status(job.job_id, wait_seconds=300)
            assert job.added == PAGES
            return time.perf_counter() - began
