"""The page in Chromium: first paint, search as one types, a model's tokens through it, a long conversation.

And what a request of another program adds to its turn.

CHUNKS=10000 makes a smaller memory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import httpx2

from ragchat.sessions.store import SessionStore, sessions_path
from tests.benchmarks import million
from tests.benchmarks.corpus import write_folder
from tests.benchmarks.report import table
from tests.support.browser import Page, chromium_running, expect, web_process
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in
from tests.support.turns import settings_in, turn

CHUNKS = int(os.environ.get("CHUNKS", "100_000"))
TIMES = 7
TYPED = ("the memory of a process", "water pressure in pipes", "how lists are sorted", "flow over a wing")
WORDS = 4_000
TURNS, TURN_BYTES = 400, 100_000  # 40 MB
SESSION = "ab" * 16

# From each key to the frame in which other hits are shown, in milliseconds; called before the keys.
WATCH = """() => {
  window.spans = [];
  let began = 0;
  const list = document.querySelector(".hits");
  document.addEventListener("input", () => { began = performance.now(); }, true);
  new MutationObserver(() => {
    if (!began || !list.firstElementChild) return;
    const from = began;
    began = 0;
    requestAnimationFrame(() => spans.push(performance.now() - from));
  }).observe(list, { childList: true });
}"""
# Falsy until then.
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def run() -> None:
    anyio.run(_run)


async def _run() -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        OpenAIServer([Reply(("word " * 79 + "word.\n\n") * (WORDS // 80))]) as model,
    ):
        program = program_in(
            Path(name), OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
        )
        _load(program)
        await _long_session(program)
        async with chromium_running() as browser:
            with web_process(program, python=sys.executable) as web:
                page = await browser.new_page(bypass_csp=True)  # wait_for_function evaluates text.
                page.set_default_timeout(LONGEST_SECONDS * 1_000)
                await page.goto(web.url)
                await page.wait_for_url(web.origin + "/")
                await first_paint(page, web.origin)
                await searching(page, web.origin)
                await tokens(page, web.origin, model.base_url)
                await long_session(page, web.origin, web.process.pid)
                door(program, web.origin)


def _load(program: Program) -> None:
    notes = program.folder / "notes"
    notes.mkdir()
    write_folder(notes, -(-CHUNKS // million.CHUNKS_PER_FILE), million.PARAGRAPHS)
    command = [sys.executable, "-m", "ragchat", "inject", str(notes)]
    subprocess.run(command, env=program.variables, cwd=program.folder, capture_output=True, check=True)


async def _long_session(program: Program) -> None:
    answer = "\n\n".join(["A paragraph with **bold** words. " + "word " * 200] * (TURN_BYTES // 1_033))
    async with SessionStore(sessions_path(settings_in(program.home))) as store:
        for number in range(TURNS):
            one = turn(f"Question {number}?", answer, turn_id=f"{number:032x}", session_id=SESSION)
            await store.save_turn(one)


async def first_paint(page: Page, origin: str) -> None:
    rows = []
    for view, ready in (
        ("/", "textarea"),
        ("/search", "input[type=search]"),
        ("/library", ".documents > li"),
    ):
        painted, usable = [], []
        for _ in range(TIMES):
            began = time.perf_counter()
            await page.goto(origin + view)
            await page.locator(ready).first.wait_for()
            usable.append((time.perf_counter() - began) * 1e3)
            painted.append(await (await page.wait_for_function(PAINTED)).json_value())
        rows.append([view, f"{statistics.median(painted):.0f}", f"{statistics.median(usable):.0f}"])
    table(
        f"From the address to the page (medians of {TIMES}, ms)", ["view", "first paint", "can be used"], rows
    )


async def searching(page: Page, origin: str) -> None:
    await page.goto(origin + "/search")
    search = page.get_by_role("searchbox")
    for typed in TYPED:  # The first search loads the index.
        await search.fill(typed)
        await expect(page.locator(".hits li").first).to_be_visible(timeout=LONGEST_SECONDS * 1_000)
    await search.fill("")
    await page.evaluate(WATCH)
    for typed in TYPED:
        for end in range(3, len(typed) + 1):
            await search.fill(typed[: end - 1])
            await page.wait_for_timeout(250)
            before = await page.evaluate("spans.length")
            await search.press_sequentially(typed[end - 1])
            await page.wait_for_function(f"spans.length > {before}")
    spans = await page.evaluate("spans")
    asked = "(q) => { const began = performance.now(); return fetch('/api/search?q=' + encodeURIComponent(q))"
    served = [
        await page.evaluate(f"{asked}.then((a) => a.json()).then(() => performance.now() - began) }}", typed)
        for typed in TYPED * TIMES
    ]
    table(
        f"Search as one types, {CHUNKS:,} chunks (ms; goal 50)",
        ["from", "median", "95 %"],
        [
            ["a key to its hits on the screen", *_spread(spans)],
            ["the request to its answer", *_spread(served)],
        ],
    )


def _spread(spans: Sequence[float]) -> list[str]:
    return [f"{statistics.median(spans):.0f}", f"{statistics.quantiles(spans, n=20)[18]:.0f}"]


async def tokens(page: Page, origin: str, model: str) -> None:
    body = {"model": "test-model", "stream": True, "messages": [{"role": "user", "content": "Words"}]}
    began = time.perf_counter()
    with (
        httpx2.Client(timeout=LONGEST_SECONDS) as client,
        client.stream("POST", f"{model}/chat/completions", json=body) as answer,
    ):
        for _ in answer.iter_lines():
            pass
    alone = WORDS / (time.perf_counter() - began)
    rates = []
    for _ in range(3):
        await page.goto(origin + "/")
        await page.get_by_label("Question").fill("How are lists sorted?")
        await page.keyboard.press("Enter")
        await page.wait_for_function("document.querySelector('.turn .answer')?.textContent.includes('word')")
        began = time.perf_counter()
        await page.get_by_role("button", name="Retry").wait_for()
        rates.append(WORDS / (time.perf_counter() - began))
    table(
        f"An answer of {WORDS:,} tokens (tokens/s)",
        ["", "rate"],
        [
            ["the model alone", f"{alone:,.0f}"],
            ["on the page, from its first word", f"{statistics.median(rates):,.0f}"],
        ],
    )


def door(program: Program, origin: str) -> None:
    """What `/v1` adds to a turn. Both times are of the same requests."""
    token = (program.home / "data" / "web-token").read_text(encoding="utf-8").strip()
    rows, question = [], {"role": "user", "content": "How are lists sorted?"}
    with httpx2.Client(headers={"authorization": f"Bearer {token}"}, timeout=LONGEST_SECONDS) as client:
        for stream in (False, True):
            body = {"model": "ragchat", "messages": [question], "stream": stream}
            turns, whole = [], []
            for _ in range(TIMES):
                began = time.perf_counter()
                answer = client.post(f"{origin}/v1/chat/completions", json=body).raise_for_status().text
                whole.append((time.perf_counter() - began) * 1e3)
                turns.append(float(answer.rpartition('"total":')[2].partition("}")[0]) * 1e3)
            added = [all - turn for all, turn in zip(whole, turns, strict=True)]
            rows.append(
                [
                    "a stream" if stream else "in one piece",
                    *(f"{statistics.median(one):.1f}" for one in (turns, added)),
                ]
            )
    table(
        f"An answer of {WORDS:,} tokens for another program (medians of {TIMES}, ms)",
        ["", "the turn", "added by /v1"],
        rows,
    )


async def long_session(page: Page, origin: str, pid: int) -> None:
    devtools = await page.context.new_cdp_session(page)

    async def megabytes() -> float:
        await devtools.send("HeapProfiler.collectGarbage")
        used = await devtools.send("Runtime.getHeapUsage")
        return float(used["usedSize"]) / 1e6

    await page.goto(origin + "/")
    await page.get_by_label("Question").wait_for()
    empty = await megabytes()
    began = time.perf_counter()
    await page.goto(f"{origin}/sessions/{SESSION}")
    await page.get_by_role("heading", name=f"Question {TURNS - 1}?").wait_for()
    opened, used = time.perf_counter() - began, await megabytes()
    earlier = page.get_by_role("button", name="Earlier")
    while await earlier.is_visible():
        first = page.locator(".turn h2").first
        shown = await first.text_content()
        await earlier.click()
        await expect(first).not_to_have_text(shown or "", timeout=LONGEST_SECONDS * 1_000)
    through = await megabytes()
    table(
        f"A conversation of {TURNS} answers, {TURNS * TURN_BYTES / 1e6:.0f} MB",
        ["", "value"],
        [
            ["from its address to its last answer", f"{opened:.2f} s"],
            ["memory of the script: a new conversation", f"{empty:.1f} MB"],
            ["… this one, opened", f"{used:.1f} MB"],
            ["… this one, gone through to its start", f"{through:.1f} MB"],
            ["memory of `ragchat web`, at its peak", f"{_peak(pid):.0f} MB"],
        ],
    )


def _peak(pid: int) -> float:
    """The most megabytes that a process has had. Linux."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))
