"""The page of a real `ragchat web` in a real Chromium.

    async def test_it_finds(browser: Browser, program: Program) -> None:
        program("inject", "-", "--uri", "tea.md", stdin="# Tea")
        async with serving(program) as web, visiting(browser, web) as page:
            …

`browser` and `program` are fixtures of tests/client/web/conftest.py. Import Playwright's names from
here: the tests are skipped where there is none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

pytest.importorskip("playwright", reason="Playwright has no wheel for this machine")

from playwright.async_api import Browser as Browser
from playwright.async_api import ConsoleMessage, Request, async_playwright
from playwright.async_api import Locator as Locator
from playwright.async_api import Page as Page
from playwright.async_api import Route as Route
from playwright.async_api import expect as expect

from tests.support.mcp_process import ROOT
from tests.support.processes import LONGEST_SECONDS, Held
from tests.support.program import Program

AXE = ROOT / ".peers" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
# No name but loopback is resolved: a request to another host fails, and is reported, without leaving here.
_LOOPBACK_ONLY = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"

_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > width)
    .map((one) => `${one.outerHTML.slice(0, 80)} … ends at ${one.getBoundingClientRect().right}`);
}"""
_WAIT_MS = LONGEST_SECONDS / 2 * 1_000
expect.set_options(timeout=_WAIT_MS)


@dataclass(frozen=True)
class Web:
    """A running page. `url` is its address with a key, which lets one browser in, once."""

    url: str
    process: Held

    @property
    def origin(self) -> str:
        address = urlsplit(self.url)
        return f"{address.scheme}://{address.netloc}"

    def stop(self) -> None:
        """As Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(LONGEST_SECONDS)

    @contextmanager
    def signed_in(self, **options: Any) -> Iterator[httpx2.Client]:
        """A client that has the cookie and sends the page's origin. The key is used for it."""
        headers = {"origin": self.origin}
        with httpx2.Client(
            base_url=self.origin, headers=headers, timeout=LONGEST_SECONDS, **options
        ) as client:
            client.get(self.url).raise_for_status()
            yield client


@contextmanager
def web_process(program: Program, *words: str, python: str = "") -> Iterator[Web]:
    """`ragchat web` with more arguments, until leaving; forked, unless `python` is given."""
    with program.started("web", "--json", "--no-open", *words, python=python) as process:
        printed = b""
        while not printed.endswith(b"}\n"):
            line = process.line()
            if not line:
                assert process.stderr is not None
                pytest.fail(f"ragchat web ended: {process.stderr.read().decode()}")
            printed += line
        announced = json.loads(printed)
        web = Web(announced.get("url", announced["api"]), process)
        try:
            yield web
        finally:
            if process.poll() is None:
                web.stop()


@asynccontextmanager
async def serving(program: Program, *words: str) -> AsyncIterator[Web]:
    """`web_process`, beside what a test waits for with `async with`."""
    with web_process(program, *words) as web:
        yield web


def chromium() -> str:
    """Debian's Chromium, the one without windows if it is there. Skips the test where there is none."""
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        pytest.skip("there is no Chromium here; `apt-get install chromium-headless-shell` installs it")
    return path


@asynccontextmanager
async def chromium_running(*arguments: str) -> AsyncIterator[Browser]:
    """A browser, headless. It ends with this process, however that ends."""
    path = chromium()
    # As root, and in containers, there are no user namespaces for its sandbox.
    sandbox = hasattr(os, "geteuid") and os.geteuid() != 0
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=[_LOOPBACK_ONLY, *arguments], chromium_sandbox=sandbox
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def visiting(
    browser: Browser, web: Web, *, expected: Sequence[str] = (), **options: Any
) -> AsyncIterator[Page]:
    """A signed-in page in a context of its own; `options` are those of Browser.new_context.

    Fails on leaving if any tab of it logged an error (a violation of the content security policy is one),
    raised one in a script, or asked another host for something. `expected` are patterns of problems that the
    test provokes.
    """
    context = await browser.new_context(**options)
    context.set_default_timeout(_WAIT_MS)
    problems: list[str] = []

    def logged(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(f"{message.text} ({message.location['url']})")

    def asked(request: Request) -> None:
        if not request.url.startswith((web.origin + "/", "data:", "blob:")):
            problems.append(f"a request to {request.url}")

    context.on("console", logged)
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on("request", asked)
    try:
        page = await context.new_page()
        await page.goto(web.url)
        await page.wait_for_url(web.origin + "/")
        yield page
    finally:
        await context.close()
    unexpected = [one for one in problems if not any(re.search(pattern, one) for pattern in expected)]
    assert not unexpected, "\n".join(unexpected)


@cache
def _axe() -> str:
    if not AXE.exists():
        pytest.skip("axe is not here; `make test` installs it where there is npm")
    return AXE.read_text(encoding="utf-8")


async def axe(page: Page) -> None:
    """Fails if axe finds a serious or critical fault of accessibility in what the page shows now."""
    # Evaluated by the debugger, to which the content security policy of the page does not apply.
    await page.evaluate(_axe())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        f"{fault['id']} ({fault['impact']}): {fault['help']}: "
        + "; ".join(" ".join(map(str, node["target"])) for node in fault["nodes"])
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert not serious, "\n".join(serious)


async def scrolls_sideways(page: Page) -> list[str]:
    """The elements that make the page wider than its window."""
    return list(await page.evaluate(_WIDE))
