"""The page in a browser: each view, by keyboard alone, in two tabs, with a server that is lost.

Of `page` and `site`.
"""

from __future__ import annotations

import re

import pytest

from tests.support.browser import (
    Browser,
    Page,
    Web,
    axe,
    expect,
    scrolls_sideways,
    serving,
    visiting,
)
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.ports import free_port
from tests.support.program import Program

pytestmark = pytest.mark.full

TEA = "# Tea\n\nGreen tea is brewed at 75 degrees for two minutes.\n"
# Words that cannot be broken, and a table, in a folder deep down.
WIDE = f"# {'Wide' * 60}\n\n{'w' * 400}\n\n| {' | '.join('abcdefgh' * 3 for _ in range(12))} |\n"
VIEWS = (
    "/",
    "/search?q=tea",
    "/library",
    "/library?show=folders",
    "/library?show=changes",
    "/map",
    "/setup",
)


@pytest.fixture
def tea(program: Program) -> Program:
    """A program with two documents."""
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    program("inject", "-", "--uri", f"{'deep/' * 30}wide.md", stdin=WIDE)
    return program


async def asked(page: Page, question: str) -> None:
    await page.get_by_label("Question").fill(question)
    await page.keyboard.press("Enter")


@pytest.mark.smoke
async def test_a_question_is_answered_from_the_memory(browser: Browser, tea: Program) -> None:
    async with serving(tea) as web, visiting(browser, web) as page:
        await asked(page, "How hot is green tea?")
        await expect(page.locator(".answer")).to_contain_text("75 degrees")
        await expect(page).to_have_url(re.compile("/sessions/[0-9a-f]+$"))
        assert not await scrolls_sideways(page)
        await axe(page)


async def shown(page: Page, web: Web, path: str) -> None:
    """Go to an address, and wait until its view is complete."""
    await page.goto(web.origin + path)
    await expect(page.locator("main :is(h1, form)").first).to_be_visible()
    await expect(page.locator("main > .error")).to_have_count(0)


async def test_every_view_fits_each_window_and_can_be_read_by_everyone(
    browser: Browser, tea: Program
) -> None:
    async with serving(tea) as web, visiting(browser, web) as page:
        for width in (360, 1920):
            await page.set_viewport_size({"width": width, "height": 800})
            await page.emulate_media(color_scheme="dark" if width > 1000 else "light")
            for path in VIEWS:
                await shown(page, web, path)
                assert not await scrolls_sideways(page), (path, width)
                await axe(page)


async def test_each_view_has_a_title_of_its_own(browser: Browser, tea: Program) -> None:
    async with serving(tea) as web, visiting(browser, web) as page:
        for name in ("Search", "Library", "Map", "Evaluation", "Set-up"):
            await page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
            await expect(page).to_have_title(name)


async def test_a_long_word_in_a_question_and_its_answer_stays_within_a_narrow_window(
    browser: Browser, tea: Program
) -> None:
    phone = {"width": 360, "height": 640}
    async with serving(tea) as web, visiting(browser, web, viewport=phone) as page:
        await asked(page, f"What is {'Wide' * 60}?")
        await expect(page.locator(".turn .answer")).to_contain_text("wwww")
        await page.get_by_role("button", name="Why").click()
        assert not await scrolls_sideways(page)
        await axe(page)


async def test_the_keyboard_is_enough(browser: Browser, tea: Program) -> None:
    async with serving(tea) as web, visiting(browser, web) as page:
        focused = page.locator(":focus")
        await expect(page.get_by_label("Question")).to_be_focused()
        await page.keyboard.type("How hot is green tea?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".turn .answer")).to_contain_text("75 degrees")
        chip = page.locator(".turn .chip").first
        for _ in range(40):  # From the question to the citation.
            await page.keyboard.press("Shift+Tab")
            if await chip.evaluate("(chip) => chip === document.activeElement"):
                break
        outline = "(element) => getComputedStyle(element).outlineStyle"
        assert await focused.evaluate(outline) != "none"
        await page.keyboard.press("Enter")
        source = page.get_by_role("complementary", name="Source")
        await expect(source).to_be_visible()
        await expect(source).to_contain_text("Green tea is brewed")
        await axe(page)
        await page.keyboard.press("Escape")
        await expect(source).to_be_hidden()
        await expect(chip).to_be_focused()
        # The first stop of each page skips its navigation.
        await shown(page, web, "/library")
        await page.locator("body").evaluate("() => document.activeElement.blur()")
        await page.keyboard.press("Tab")
        await expect(focused).to_have_text("Skip to the content")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        assert await focused.evaluate("(element) => Boolean(element.closest('main'))")


async def test_two_tabs_are_two_conversations_and_of_one_only_one_asks_at_a_time(
    browser: Browser, program: Program
) -> None:
    slow = Reply("Slowly, word by word, it comes.", hold_after=4)
    with OpenAIServer(rules={"slow": slow, "quick": Reply("Quickly.")}) as model:
        program.environ.update(
            OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
        )
        async with serving(program) as web, visiting(browser, web, expected=("409",)) as page:
            await asked(page, "A slow question")
            await expect(page.locator(".turn .answer")).to_contain_text("Slowly")
            other = await page.context.new_page()
            await other.goto(web.origin)
            await asked(other, "A quick question")
            await expect(other.locator(".turn .answer")).to_contain_text("Quickly.")
            slow.go.set()
            await expect(page.locator(".turn:not([aria-busy])")).to_have_count(1)
            await expect(page).to_have_url(re.compile("/sessions/"))
            assert page.url != other.url
            # The same conversation in both: the second one sees what the first one asks.
            await other.goto(page.url)
            await asked(page, "A quick question")
            await expect(page.locator(".turn:not([aria-busy])")).to_have_count(2)
            await asked(other, "A quick question, too")
            await expect(other.locator("main")).to_contain_text("A quick question")
            await other.reload()
            await expect(other.locator(".turn").nth(1)).to_contain_text("Quickly.")


async def test_a_lost_server_is_said_and_what_was_typed_is_kept(browser: Browser, tea: Program) -> None:
    port = f"{free_port()}"
    lost = ("ERR_", "Failed to fetch", "401", "network error")
    async with (
        serving(tea, "--port", port) as web,
        visiting(browser, web, expected=lost) as page,
    ):
        await expect(page.get_by_label("Question")).to_be_focused()
        await page.wait_for_load_state("networkidle")
        web.stop()
        await asked(page, "How hot is green tea?")
        await expect(page.get_by_role("alert")).to_contain_text("ragchat does not answer.")
        await expect(page.get_by_label("Question")).to_have_value("How hot is green tea?")
        await page.get_by_role("link", name="Library").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        async with serving(tea, "--port", port) as again:
            await page.goto(again.origin + "/library")
            await expect(page).to_have_url(again.origin + "/sign-in")
            await page.goto(again.url)
            await expect(page.get_by_label("Question")).to_be_focused()


async def test_the_back_button_leads_through_what_was_shown(browser: Browser, tea: Program) -> None:
    async with serving(tea) as web, visiting(browser, web) as page:
        await asked(page, "How hot is green tea?")
        await expect(page).to_have_url(re.compile("/sessions/"))
        conversation = page.url
        await page.get_by_role("link", name="Library").click()
        await expect(page.get_by_role("heading", name="Library")).to_be_visible()
        await page.get_by_role("link", name="Changes", exact=True).click()
        await expect(page).to_have_url(web.origin + "/library?show=changes")
        await page.go_back()
        await expect(page).to_have_url(web.origin + "/library")
        await page.go_back()
        await expect(page).to_have_url(conversation)
        await expect(page.locator(".turn .answer")).to_contain_text("75 degrees")
        await page.go_forward()
        await expect(page.get_by_role("heading", name="Library")).to_be_visible()


async def test_without_scripts_searching_and_reading_work(browser: Browser, tea: Program) -> None:
    async with serving(tea) as web, visiting(browser, web, java_script_enabled=False) as page:
        assert "This view needs scripts." in await page.locator("main").inner_text()
        await page.get_by_role("link", name="Search").click()
        await page.get_by_role("searchbox").fill("green tea")
        await page.keyboard.press("Enter")
        await expect(page.locator(".hits")).to_contain_text("Green tea is brewed at 75 degrees")
        assert (
            "\n" in await page.locator(".hits blockquote").first.inner_text()
        )  # the lines as they were written
        assert not await scrolls_sideways(page)
        await page.locator(".hits a").first.click()
        await expect(page.locator(".lines")).to_contain_text("for two minutes")
        assert not await scrolls_sideways(page)
