"""Hostile text in every field of documents, conversations, models and servers is shown, and does nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support import servers
from tests.support.browser import Browser, Page, Web, axe, expect, scrolls_sideways, serving, visiting
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import called, memory_process
from tests.support.program import Program, program_in
from tests.support.webchat import with_model

pytestmark = pytest.mark.full

ATTACKS = {
    "script": "<script>hacked = 1</script>",
    "image": "<img src=x onerror='hacked = 1'>",
    "svg": "<svg onload='hacked = 1'><animate onbegin='hacked = 1' attributeName=x dur=1s></svg>",
    "attribute": "\"' autofocus onfocus='hacked = 1' x='\"",
    "closing": "</title></textarea></style></template></noscript><script>hacked = 1</script>",
    "frame": "<iframe srcdoc='<script>top.hacked = 1</script>'></iframe>",
    "link": "[a](javascript:hacked=1) <javascript:hacked=1> [b](data:text/html,x)"
    " [c](&#106;avascript:hacked=1) [d](JaVaScRiPt:hacked=1) [e](java\tscript:hacked=1) [f](//evil.example) ![g](https://evil.example/g)",
    "template": "${hacked = 1} {{constructor.constructor('hacked = 1')()}} $main %s {0}",
    "bidi": "safe\u202egpj.exe\u2066 \u200bhidden\u001b]0;x\u0007\ufeff",
    "styled": "<style>*{display:none}</style><base href=//evil.example>"
    "<meta http-equiv=refresh content=0;//evil.example>",
}
EVERYTHING = " ".join(ATTACKS.values())


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return program_in(tmp_path, RAGCHAT_MEMORY=str(tmp_path / "memory.db"))


async def harmless(page: Page) -> None:
    """Fails if an attack did something. Violations of the policy, and requests, fail the test at its end."""
    assert await page.evaluate("typeof hacked") == "undefined"
    elements = "script, iframe, object, embed, base, meta, style, link, svg, img[src='x'], form[action*='//']"
    assert await page.locator(f"main :is({elements})").count() == 0
    schemes = await page.evaluate("[...document.links].map((link) => link.protocol)")
    assert set(schemes) <= {"http:", "https:", "mailto:"}
    names = "[...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"
    assert not [name for name in await page.evaluate(names) if name.startswith("on")]
    text = await page.locator("body").inner_text()
    assert not re.search(r"[\u202e\u2066\u0000\u001b]", text)
    assert await scrolls_sideways(page) == []


async def seen(page: Page, web: Web, path: str, text: str) -> None:
    await page.goto(web.origin + path)
    await expect(page.locator("main")).to_contain_text(text)
    await harmless(page)


async def test_hostile_documents_are_text_in_every_view(
    browser: Browser, program: Program, tmp_path: Path
) -> None:
    documents = []
    async with memory_process(tmp_path) as client:
        for attack in ATTACKS.values():
            rows = f"| tea {attack} |\n|---|\n| {attack} |\n\n`{attack}`\n\n{attack}\n"
            text = f"# Tea {attack}\n\nGreen tea {attack}\n\n{rows}"
            metadata = {"uri": f"file:///x/{attack}/tea.md", "title": f"Tea {attack}", "tags": [attack]}
            stored = await called(client, "Inject", text=text, metadata=metadata | {attack: attack})
            await called(client, "Inject", text=text + "More.", metadata=metadata)
            documents.append(stored["document_id"])
    narrow = {"width": 360, "height": 800}
    async with serving(program) as web, visiting(browser, web, viewport=narrow) as page:
        await page.get_by_label("Question").fill("How is green tea made?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".turn .answer")).to_contain_text("Green tea")
        await page.get_by_role("button", name="Why").click()
        await expect(page.locator(".why")).to_be_visible()
        await harmless(page)
        await page.locator(".turn .chip").first.click()
        await expect(page.get_by_role("complementary", name="Source")).to_contain_text("Green tea")
        await harmless(page)
        for path in ("/search?q=tea", "/library", "/library?show=changes", "/map"):
            await seen(page, web, path, "tea.md" if path.startswith("/library") else "")
        for document in documents:
            await seen(page, web, f"/document?id={document}", "Green tea")
            await seen(page, web, f"/library?document={document}", "Compare with current")


async def test_without_scripts_a_hostile_document_is_text(
    browser: Browser, program: Program, tmp_path: Path
) -> None:
    async with memory_process(tmp_path) as client:
        metadata = {"uri": f"file:///x/{EVERYTHING}.md", "title": f"Tea {EVERYTHING}", "tags": [EVERYTHING]}
        stored = await called(
            client, "Inject", text=f"# Tea {EVERYTHING}\n\nTea {EVERYTHING}", metadata=metadata
        )
    async with serving(program) as web, visiting(browser, web, java_script_enabled=False) as page:
        for path in (
            "/search?q=tea",
            f"/document?id={stored['document_id']}",
            f"/search?q={ATTACKS['attribute']}",
        ):
            await seen(page, web, path, "")


async def test_a_hostile_model_and_question_are_text_also_in_the_saved_file(
    browser: Browser, tmp_path: Path
) -> None:
    answer = "\n\n".join(ATTACKS.values()) + "\n\n" + "".join(f"# {one}\n" for one in ATTACKS.values())
    with OpenAIServer([Reply(answer, reasoning=EVERYTHING)], models=[EVERYTHING, "test-model"]) as model:
        program = program_in(
            tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
        )
        async with serving(program) as web, visiting(browser, web) as page:
            await page.get_by_label("Question").fill(EVERYTHING.replace("\t", " "))
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="Retry")).to_be_visible()
            await harmless(page)
            address = await page.get_by_role("link", name="Save as HTML").get_attribute("href")
            saved = await page.evaluate(
                "(address) => fetch(address).then((answer) => answer.text())", address
            )
            await page.reload()
            await expect(page.get_by_role("button", name="Retry")).to_be_visible()
            await harmless(page)
    file = tmp_path / "saved.html"
    file.write_text(saved, encoding="utf-8")
    context = await browser.new_context()
    requests: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    page = await context.new_page()
    await page.goto(file.as_uri())
    assert await page.evaluate("typeof hacked") == "undefined"
    assert await page.locator(":is(script, iframe, img, svg, object, base)").count() == 0
    assert requests == [file.as_uri()]
    await context.close()


async def test_the_names_and_errors_of_hostile_servers_are_text(browser: Browser, tmp_path: Path) -> None:
    program = program_in(tmp_path)
    complaint = f"import sys; sys.stderr.write({EVERYTHING!r}); sys.exit(3)"
    servers.write(
        program.home,
        **{name: {"command": "python3", "args": ["-c", complaint]} for name in ("a<b>", "c'\"onload=d")},
    )
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(web.origin + "/setup")
        await expect(page.locator("main h1")).to_be_visible()
        await expect(page.locator("main")).to_contain_text("a<b>")
        await harmless(page)


HOSTILE_SERVER = """
import json, sys
tools = [{"name": "<img src=x>", "title": text, "description": text, "inputSchema": {"type": "object"}}]
results = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": text, "version": text}, "instructions": text},
    "tools/list": {"tools": tools},
}
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        called = message["id"]
        send(id="page", method="elicitation/create",
             params={"mode": "url", "url": sys.argv[1], "message": text})
    elif message.get("id") == "page":
        send(id=called, result={"content": [{"type": "text", "text": text + line}], "isError": True})
    elif message.get("method") in results:
        send(id=message["id"], result=results[message["method"]])
    elif "method" in message and "id" in message:
        send(id=message["id"], error={"code": -32601, "message": text})
"""


async def test_a_hostile_tool_and_the_page_it_wants_to_be_visited_are_text(
    browser: Browser, tmp_path: Path
) -> None:
    call = Reply(tool_calls=[("evil___img_src_x_", {EVERYTHING: EVERYTHING})])
    with OpenAIServer([call, Reply("Done."), call, Reply("Done.")]) as model:
        program = with_model(program_in(tmp_path), model)
        script = tmp_path / "server.py"
        script.write_text(f"text = {EVERYTHING!r}\n{HOSTILE_SERVER}", encoding="utf-8")
        arguments = [str(script), f"{model.base_url}/models"]
        servers.write(program.home, evil={"command": sys.executable, "args": arguments})
        others = ["/v1/models", "favicon"]
        async with serving(program) as web, visiting(browser, web, expected=others) as page:
            for action in ("accept", "decline"):
                await page.get_by_label("Question").fill("Look at it.")
                await page.keyboard.press("Enter")
                await expect(page.get_by_role("dialog")).to_contain_text("Allow evil___img_src_x_?")
                await harmless(page)
                await page.get_by_role("button", name="Yes, once").click()
                await expect(page.get_by_role("dialog")).to_contain_text("wants you to open a page")
                await expect(page.get_by_role("dialog")).to_contain_text("Host: 127.0.0.1")
                await harmless(page)
                await axe(page)
                if action == "accept":
                    async with page.context.expect_page() as opened:
                        await page.get_by_role("button", name="Open it in a new tab").click()
                    visited = await opened.value
                    assert await visited.evaluate("opener") is None
                    await visited.close()
                    await page.get_by_role("button", name="Done").click()
                else:
                    await page.get_by_role("button", name="No", exact=True).click()
                await expect(page.locator(".turn .answer").last).to_contain_text("Done.")
                await harmless(page)
                assert f'"action":"{action}"' in model.requests[-1]["messages"][-1]["content"]


async def test_a_hostile_address_is_text(browser: Browser, program: Program) -> None:
    errors = (r"status of 4\d\d",)
    async with serving(program) as web, visiting(browser, web, expected=errors) as page:
        for path in (
            f"/search?q={ATTACKS['image']}",
            f"/document?id={ATTACKS['image']}",
            f"/library?in={ATTACKS['image']}&q={ATTACKS['script']}&sort={ATTACKS['attribute']}",
            f"/library?document={ATTACKS['image']}",
            "/library?show=constructor",
            "/library?show=__proto__",
            f"/map?{ATTACKS['image']}",
            f"/#{ATTACKS['image']}",
            "/document?id=javascript:hacked=1#javascript:hacked=1",
        ):
            await page.goto("about:blank")  # Another fragment alone would load nothing.
            await page.goto(web.origin + path)
            await expect(page.locator("main > *").first).to_be_visible()
            await harmless(page)


async def test_a_line_of_5_mb_is_searched_and_read(
    browser: Browser, program: Program, tmp_path: Path
) -> None:
    line = "Green tea is brewed at 75 degrees. " + "word " * 1_000_000
    path = tmp_path / "long.txt"
    path.write_text(line, encoding="utf-8")
    program("inject", str(path))
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(web.origin + "/search?q=green+tea")
        await expect(page.locator(".hits")).to_contain_text("75 degrees")
        await page.locator(".hits a").first.click()
        await expect(page.locator(".lines")).to_contain_text("75 degrees")
        assert await scrolls_sideways(page) == []
        assert len(await page.locator("main").inner_text()) < 1_000_000
