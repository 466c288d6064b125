"""The conversation in a browser: sources, commands, dialogs, edits, tabs, a lost server, a long session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragchat.notebooks.definitions import Notebook, remove, save
from tests.client.web.test_sessions import store_of
from tests.support.browser import (
    Browser,
    Locator,
    Route,
    axe,
    chromium_running,
    expect,
    scrolls_sideways,
    serving,
    visiting,
)
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program
from tests.support.servers import GOOD, write
from tests.support.turns import turn
from tests.support.webchat import with_model

pytestmark = pytest.mark.full

# Servers of tools start slowly on a busy machine.
expect.set_options(timeout=LONGEST_SECONDS / 2 * 1_000)

TEA = "# Tea\n\nGreen tea is brewed at 75 degrees.\n"
ARABIC_TEA = "# شاي\n\nيحضر الشاي الأخضر بماء حرارته 75 درجة.\n"
# The edges of the first and the last character of an element.
ENDS = """(element) => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode()) if (walker.currentNode.data.trim()) texts.push(walker.currentNode);
  return [[texts[0], 0], [texts.at(-1), texts.at(-1).data.trimEnd().length - 1]].map(([text, at]) => {
    const range = document.createRange();
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    return range.getBoundingClientRect().left;
  });
}"""


async def test_a_source_opens_by_keyboard_and_escape_returns_to_its_chip(
    browser: Browser, program: Program
) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 360, "height": 740}) as page,
    ):
        await page.get_by_label("Question").fill("How hot is green tea?")
        await page.keyboard.press("Enter")
        chip = page.locator(".answer .chip")
        await chip.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("complementary", name="Source")).to_contain_text("75 degrees")
        await page.keyboard.press("Escape")
        await expect(chip).to_be_focused()
        await page.get_by_role("button", name="Why").click()
        await expect(page.get_by_role("region", name="How this answer was made")).to_contain_text("1 found")
        assert not await scrolls_sideways(page)
        await axe(page)


async def test_a_source_that_covers_the_page_keeps_the_keyboard_until_it_is_beside_the_answer(
    browser: Browser, program: Program
) -> None:
    program("inject", "-", "--uri", f"{'tea' * 60}.md", stdin="Green tea is brewed at 75 degrees.\n")
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 360, "height": 740}) as page,
    ):
        await page.get_by_label("Question").fill("How hot is green tea?")
        await page.keyboard.press("Enter")
        await page.locator(".answer .chip").click()
        source = page.get_by_role("complementary", name="Source")
        await expect(source.get_by_role("link", name="Whole document")).to_be_visible()
        assert await source.evaluate("(element) => element.scrollWidth <= element.clientWidth")
        for _ in range(8):
            await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.matches('body, .source *')")
        await page.set_viewport_size({"width": 1280, "height": 740})
        await page.get_by_label("Question").click()
        await page.set_viewport_size({"width": 360, "height": 740})
        await source.get_by_role("link", name="Whole document").click()
        await page.get_by_role("link", name="Library").click()
        await expect(page.get_by_role("heading", name="Library")).to_be_visible()


async def test_a_card_of_several_places_opens_the_one_that_it_names(
    browser: Browser, program: Program, tmp_path: Path
) -> None:
    filler = "\n".join(f"Line {number} is about nothing in particular." for number in range(30))
    cells = [
        f"# Rain\n\nWe fit a gamma distribution to the sums.\n\n{filler}",
        f"## Wet days\n\nThe shape parameter of the gamma fit is 0.734.\n\n{filler}",
    ]
    notebook = {"cells": [{"cell_type": "markdown", "source": cell} for cell in cells], "nbformat": 4}
    (tmp_path / "rain.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    program("inject", str(tmp_path / "rain.ipynb"))
    async with serving(program) as web, visiting(browser, web) as page:
        question = "What is the shape parameter of the gamma fit, and what do we fit to the sums?"
        await page.get_by_label("Question").fill(question)
        await page.keyboard.press("Enter")
        chip = page.locator(".card .chip").first
        await expect(chip).to_contain_text("rain.ipynb cell 2")
        await chip.click()
        source = page.get_by_role("complementary", name="Source")
        await expect(source).to_contain_text("rain.ipynb cell 2")


async def test_a_source_opens_at_its_marked_words_and_leaves_the_answer_where_it_is(
    browser: Browser, program: Program
) -> None:
    filler = [f"Line {number} is of no use, {'at length, ' * 12}again." for number in range(200)]
    text = "\n".join([*filler[:100], "The kettle of the harbour office needs 2,200 watts.", *filler[100:]])
    program("inject", "-", "--uri", "kettle.txt", stdin=text)
    async with serving(program) as web, visiting(browser, web) as page:
        await page.get_by_label("Question").fill("How many watts does the kettle of the harbour office need?")
        await page.keyboard.press("Enter")
        chip = page.locator(".answer .chip").first
        await chip.scroll_into_view_if_needed()
        top = await chip.evaluate("(chip) => chip.getBoundingClientRect().top")
        await chip.focus()
        await page.keyboard.press("Enter")
        source = page.get_by_role("complementary", name="Source")
        await expect(source.locator("mark").first).to_contain_text("2,200 watts")
        await expect(source.locator("mark").first).to_be_in_viewport(ratio=0.9)
        await page.wait_for_function(
            "([chip, top]) => Math.abs(chip.getBoundingClientRect().top - top) < 2",
            arg=[await chip.element_handle(), top],
        )


async def test_a_table_of_a_passage_is_a_table_and_copied_as_it_was_written(
    browser: Browser, program: Program
) -> None:
    rows = "| Device | Watts |\n|:-------|------:|\n| Kettle | 2,200 |\n| Pan | 1,800 |\n"
    program("inject", "-", "--uri", "devices.md", stdin=f"# Devices\n\n{rows}")
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 360, "height": 740}) as page,
    ):
        await page.get_by_label("Question").fill("How many watts does the kettle need?")
        await page.keyboard.press("Enter")
        table = page.locator(".card").get_by_role("table")
        await expect(table.get_by_role("columnheader", name="Watts")).to_be_visible()
        await expect(table.get_by_role("row")).to_have_count(3)
        copied = await table.evaluate(
            "(table) => (getSelection().selectAllChildren(table), `${getSelection()}`)"
        )
        assert re.sub(r"[^\S\n]", "", copied).strip() == re.sub(r"[^\S\n]", "", rows).strip()
        await axe(page)


async def test_long_code_of_an_answer_is_scrolled_by_keyboard_and_reasoning_has_lines(
    browser: Browser, program: Program
) -> None:
    reply = Reply(f"```python\nprint({'1 + ' * 40}1)\n```", reasoning="One and one is two. " * 20)
    with OpenAIServer([reply]) as model:
        async with (
            serving(with_model(program, model)) as web,
            visiting(browser, web, viewport={"width": 360, "height": 740}) as page,
        ):
            await page.get_by_label("Question").fill("What is tea?")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="Retry")).to_be_visible()
            code = page.locator(".answer pre")
            await code.focus()
            await page.keyboard.press("ArrowRight")
            await page.wait_for_function("(code) => code.scrollLeft > 0", arg=await code.element_handle())
            await page.get_by_text("Reasoning").click()
            reasoning = page.locator(".turn > details pre")
            assert await reasoning.evaluate("(text) => text.scrollWidth <= text.clientWidth")
            await axe(page)


async def test_the_outline_of_the_focus_is_not_cut_at_the_edge_of_an_answer_or_a_hit(
    browser: Browser, program: Program
) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 360, "height": 740}) as page,
    ):
        await page.get_by_label("Question").fill("How hot is green tea?")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Why").focus()
        # An outline of 3 px, 2 px away, within what content-visibility paints.
        room = """(element, around) => {
          const [inner, outer] = [element, element.closest(around)].map((one) => one.getBoundingClientRect());
          return Math.min(inner.left - outer.left, outer.right - inner.right);
        }"""
        assert await page.get_by_role("button", name="Why").evaluate(room, ".turn") >= 5
        edges = "(element) => [element.getBoundingClientRect().left, element.getBoundingClientRect().right]"
        assert await page.locator("form.ask").evaluate(edges) == await page.locator(".turn").evaluate(edges)
        await page.goto(f"{web.origin}/search?q=tea")
        hit = page.locator(".hits a").first
        await expect(hit).to_be_visible()
        assert await hit.evaluate(room, ".hits li") >= 5
        assert not await scrolls_sideways(page)


async def test_arabic_goes_from_right_to_left_and_other_text_does_not(
    browser: Browser, program: Program
) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    program("inject", "-", "--uri", "shai.md", stdin=ARABIC_TEA)
    async with serving(program) as web, visiting(browser, web) as page:
        for turn, (question, is_rtl) in enumerate(
            (("How hot is green tea?", False), ("كم حرارة ماء الشاي الأخضر؟", True))
        ):
            await page.get_by_label("Question").fill(question)
            await page.keyboard.press("Enter")
            shown = page.locator(".turn").nth(turn)
            for text in (shown.locator(".card .text").first, shown.get_by_role("heading").first):
                await text.scroll_into_view_if_needed()
                first, last = await text.evaluate(ENDS)
                assert (last < first) is is_rtl
            await shown.locator(".chip").first.click()
            line = page.get_by_role("complementary", name="Source").locator(".lines li").last
            first, last = await line.evaluate(ENDS)
            assert (last < first) is is_rtl
            await page.keyboard.press("Escape")


async def test_an_approval_is_a_dialog_that_escape_declines(browser: Browser, program: Program) -> None:
    write(program.home, mine=GOOD)
    call = Reply(tool_calls=[("mine__Echo", {"text": "<b>hello</b>"})])
    with OpenAIServer([call, Reply("Refused."), call, Reply("Done.")]) as model:
        async with serving(with_model(program, model)) as web, visiting(browser, web) as page:
            await page.get_by_label("Question").fill("Echo it.")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("dialog")).to_contain_text("Allow mine__Echo?")
            await axe(page)
            await page.keyboard.press("Escape")
            await expect(page.locator(".answer")).to_contain_text("Refused.")
            await page.keyboard.type("What next?")
            await expect(page.get_by_label("Question")).to_have_value("What next?")
            await page.get_by_role("button", name="Retry").click()
            await page.get_by_role("button", name="Yes, once").click()
            await expect(page.locator(".answer").last).to_contain_text("Done.")
            assert "<b>hello</b>" in model.requests[-1]["messages"][-1]["content"]
            await expect(page.locator(".turn")).to_have_count(1)


async def test_an_edited_question_goes_on_in_a_copy_and_back_returns(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        for question in ("What is tea?", "What is coffee?"):
            await page.get_by_label("Question").fill(question)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("heading", name=question, level=2)).to_be_visible()
            await expect(page.locator(".turn").last.get_by_role("button", name="Edit")).to_be_visible()
        before = page.url
        await page.locator(".turn").last.get_by_role("button", name="Edit").click()
        await page.get_by_label("Other wording").fill("What is cocoa?")
        await page.get_by_role("button", name="Ask in a copy").click()
        await expect(page.get_by_role("heading", name="What is cocoa?", level=2)).to_be_visible()
        await expect(page.get_by_role("heading", name="What is coffee?", level=2)).to_have_count(0)
        await expect(page).not_to_have_url(before)
        await page.go_back()
        await expect(page.get_by_role("heading", name="What is coffee?", level=2)).to_be_visible()


async def test_the_next_question_does_not_wait_for_the_list_of_conversations(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        held: list[Any] = []

        async def hold(route: Any) -> None:
            if route.request.method == "GET":
                held.append(route)
            else:
                await route.continue_()

        await page.route("**/api/sessions", hold)
        for question in ("What is tea?", "What is coffee?"):
            await page.get_by_label("Question").fill(question)
            await page.keyboard.press("Enter")
            await expect(page.locator(".turn").last.get_by_role("heading", name=question)).to_be_visible()
            await expect(page.locator(".turn").last.get_by_role("button", name="Edit")).to_be_visible()
        assert held
        for route in held:
            await route.continue_()


async def test_a_tab_that_was_left_behind_shows_the_session_as_it_is_now(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        await page.get_by_label("Question").fill("What is tea?")
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile("/sessions/"))
        await expect(page.locator(".turn:not([aria-busy])")).to_have_count(1)
        other = await page.context.new_page()
        await other.goto(page.url)
        await other.get_by_label("Question").fill("What is coffee?")
        await other.keyboard.press("Enter")
        await expect(other.locator(".turn:not([aria-busy])")).to_have_count(2)
        await page.get_by_label("Question").fill("What is cocoa?")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("gone on elsewhere")
        await expect(page.locator(".turn")).to_have_count(2)
        await expect(page.get_by_label("Question")).to_have_value("What is cocoa?")


async def test_an_answer_goes_on_through_a_reload(browser: Browser, program: Program) -> None:
    slow = Reply("One two three.", hold_after=2)
    with OpenAIServer([slow]) as model:
        async with serving(with_model(program, model)) as web, visiting(browser, web) as page:
            await page.get_by_label("Question").fill("What is tea?")
            await page.keyboard.press("Enter")
            await expect(page.locator(".answer")).to_contain_text("One")
            await page.reload()
            await expect(page.locator(".answer")).to_contain_text("One")
            await page.get_by_role("link", name="Library").click()
            await page.go_back()
            await expect(page.get_by_role("button", name="Stop")).to_be_visible()
            slow.go.set()
            await expect(page.locator(".answer")).to_contain_text("One two three.")
            await expect(page.get_by_role("button", name="Edit")).to_be_visible()
            await expect(page.locator(".turn")).to_have_count(1)


async def test_an_answer_to_a_question_below_a_found_one_goes_on_through_a_reload(
    browser: Browser, program: Program
) -> None:
    async with store_of(program) as store:
        await store.save_turn(turn("What is coffee?", turn_id="1", session_id="abc"))
    slow = Reply("One two three.", hold_after=2)
    with OpenAIServer([slow]) as model:
        async with serving(with_model(program, model)) as web, visiting(browser, web) as page:
            await page.goto(f"{web.origin}/sessions/abc?turn=1")
            await page.get_by_label("Question").fill("What is tea?")
            await page.keyboard.press("Enter")
            await expect(page.locator(".answer").last).to_contain_text("One")
            await page.reload()
            await expect(page.get_by_role("button", name="Stop")).to_be_enabled()
            slow.go.set()
            await expect(page.locator(".answer").last).to_contain_text("One two three.")


async def test_a_question_comes_back_when_the_server_is_lost(browser: Browser, program: Program) -> None:
    async with serving(program) as web, visiting(browser, web, expected=["ERR_", "Failed"]) as page:
        await expect(page.get_by_label("Model")).to_contain_text("as configured")
        web.stop()
        await page.get_by_label("Question").fill("What is tea?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".talk").get_by_role("alert")).to_contain_text("ragchat does not answer.")
        await expect(page.get_by_label("Question")).to_have_value("What is tea?")
        await page.get_by_label("Question").fill("//help me")
        await page.keyboard.press("Enter")
        await expect(page.locator(".failed").get_by_role("heading", name="/help me")).to_be_visible()
        await expect(page.get_by_label("Question")).to_have_value("//help me")


async def test_a_question_that_came_back_and_was_asked_does_not_come_back_again(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        question = page.get_by_label("Question")
        await question.fill("What is tea?")
        await page.get_by_role("link", name="Library").click()
        await page.go_back()
        await expect(question).to_have_value("What is tea?")
        await question.press("Enter")
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()
        await page.get_by_role("link", name="New conversation").click()
        await expect(page.get_by_role("heading", name="New conversation")).to_be_visible()
        await expect(question).to_have_value("")


async def test_a_browser_that_is_signed_out_keeps_the_question_and_goes_on_when_it_is_signed_in_again(
    browser: Browser, program: Program
) -> None:
    password = program.folder / "password"
    password.write_text("long enough to be one\n", encoding="utf-8")
    password.chmod(0o600)
    async with (
        serving(program, "--password-file", str(password)) as web,
        visiting(browser, web, expected=["401"]) as page,
    ):
        other = await page.context.new_page()
        await other.goto(f"{web.origin}/setup")
        await other.get_by_role("button", name="Sign out").click()
        await expect(other.get_by_label("Password")).to_be_visible()
        await page.get_by_label("Question").fill("What is tea?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".failed").get_by_role("alert")).to_contain_text("not signed in")
        await expect(page.get_by_label("Question")).to_have_value("What is tea?")
        async with page.context.expect_page() as opened:
            await page.get_by_role("link", name="Sign in").click()
        await (await opened.value).get_by_label("Password").fill("long enough to be one")
        await (await opened.value).keyboard.press("Enter")
        await expect((await opened.value).get_by_label("Question")).to_be_visible()
        await page.get_by_label("Question").press("Enter")
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()


async def test_a_question_without_an_answer_is_asked_again_after_the_server_was_started_again(
    browser: Browser, program: Program
) -> None:
    password = program.folder / "password"
    password.write_text("long enough to be one\n", encoding="utf-8")
    password.chmod(0o600)
    words = ("--password-file", str(password), "--port", str(free_port()))
    with OpenAIServer([Reply(""), Reply("Leaves.")]) as model:
        program = with_model(program, model)
        async with (
            serving(program, *words) as web,
            visiting(browser, web, expected=["ERR_", "401", "409"]) as page,
        ):
            await page.get_by_label("Question").fill("What is tea?")
            await page.keyboard.press("Enter")
            await expect(page.locator(".failed")).to_contain_text("empty answer")
            web.stop()
            async with serving(program, *words) as again:
                other = await page.context.new_page()
                await other.goto(again.url)
                await other.wait_for_url(again.origin + "/")
                await expect(page.get_by_label("Question")).to_have_value("What is tea?")
                await page.get_by_label("Question").press("Enter")
                await expect(page.locator(".answer")).to_contain_text("Leaves.")
                await expect(page.locator(".turn")).to_have_count(1)


async def test_a_model_is_chosen_while_a_server_of_models_is_still_waited_for(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        asked, go = anyio.Event(), anyio.Event()

        async def late(route: Route) -> None:
            asked.set()
            await go.wait()
            await route.continue_()

        await page.route("**/api/models", late)
        await page.reload()
        await asked.wait()
        await page.get_by_label("Question").fill("/model offline")
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Question")).to_have_value("")
        go.set()
        await expect(page.get_by_role("combobox", name="Model")).to_have_value("offline")


async def test_a_view_that_cannot_be_loaded_says_so_and_is_there_when_the_server_is(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web, expected=["ERR_"]) as page:
        await expect(page.get_by_label("Model")).to_contain_text("as configured")
        await page.context.set_offline(True)
        await page.get_by_role("link", name="Library").click()
        await expect(page.get_by_role("alert")).to_have_text(
            "ragchat does not answer. Is `ragchat web` still running?"
        )
        await page.context.set_offline(False)
        await page.get_by_role("link", name="Library").click()
        await expect(page.get_by_role("heading", name="Library")).to_be_visible()


async def test_a_failed_answer_leaves_the_last_one_to_be_asked_again(
    browser: Browser, program: Program
) -> None:
    with OpenAIServer([Reply("Hot."), Reply(""), Reply("Cold.")]) as model:
        async with serving(with_model(program, model)) as web, visiting(browser, web) as page:
            await page.get_by_label("Question").fill("What is tea?")
            await page.keyboard.press("Enter")
            await page.get_by_role("button", name="Retry").click()
            await expect(page.locator(".failed")).to_contain_text("empty answer")
            await expect(page.get_by_role("button", name="Retry")).to_be_visible()
            await page.get_by_label("Question").fill("/retry")
            await page.keyboard.press("Enter")
            await expect(page.locator(".answer").last).to_contain_text("Cold.")
            await expect(page.locator(".turn")).to_have_count(1)


async def test_a_question_that_was_typed_is_there_when_one_comes_back(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        question = page.get_by_label("Question")
        await question.fill("What is tea?")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()
        await question.fill("And what is")
        await page.get_by_role("link", name="Library").click()
        await page.go_back()
        await expect(question).to_have_value("And what is")
        await page.get_by_role("link", name="New conversation").click()
        await expect(page.get_by_role("heading", name="New conversation")).to_be_visible()
        await expect(question).to_have_value("")
        await page.go_back()
        await expect(question).to_have_value("And what is")
        await page.reload()
        await expect(question).to_have_value("And what is")
        await expect(page.locator(".turn")).to_have_count(1)
        await question.press("Enter")
        await expect(page.locator(".turn:not([aria-busy])")).to_have_count(2)
        await page.get_by_role("link", name="Library").click()
        await page.go_back()
        await expect(page.locator(".turn")).to_have_count(2)
        await expect(question).to_have_value("")


async def test_a_report_that_was_stopped_is_asked_again_as_a_report(
    browser: Browser, program: Program
) -> None:
    with OpenAIServer([Reply("One two three.", hold_after=0)]) as model:
        async with serving(with_model(program, model)) as web, visiting(browser, web) as page:
            await page.get_by_label("Question").fill("/research What is tea?")
            await page.keyboard.press("Enter")
            await page.get_by_role("button", name="Stop").click()
            await expect(page.locator(".failed")).to_contain_text("Stopped.")
            await expect(page.get_by_label("Question")).to_have_value("/research What is tea?")


async def test_in_a_low_window_the_question_leaves_room_to_read(browser: Browser, program: Program) -> None:
    async with store_of(program) as store:
        await store.save_turn(turn("What is tea?", "Leaves. " * 200, turn_id="1", session_id="abc"))
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 320, "height": 256}) as page,
    ):
        await page.goto(f"{web.origin}/sessions/abc")
        await expect(page.get_by_role("heading", name="What is tea?", level=2)).to_be_in_viewport()
        await expect(page.get_by_label("Question")).not_to_be_in_viewport()
        await page.get_by_label("Question").fill("And coffee?")
        await expect(page.get_by_label("Question")).to_be_in_viewport()


async def test_a_new_answer_that_is_longer_than_the_window_begins_at_its_top(
    browser: Browser, program: Program
) -> None:
    rows = "".join(f"| tea {number} | {number + 40} degrees |\n" for number in range(20))
    program("inject", "-", "--uri", "tea.md", stdin=f"# Tea\n\n| Tea | Heat |\n|---|---|\n{rows}")
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 360, "height": 640}) as page,
    ):
        await page.get_by_label("Question").fill("How hot is tea 7?")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Retry")).to_be_attached()
        await page.wait_for_function("() => document.querySelector('.turn').getBoundingClientRect().top < 40")


async def test_the_page_has_letters_of_the_size_that_the_browser_is_set_to(program: Program) -> None:
    async with (
        chromium_running("--blink-settings=defaultFontSize=32") as browser,
        serving(program) as web,
        visiting(browser, web) as page,
    ):
        for place in ("h1", "textarea", ".sessions"):
            element = page.locator(place).first
            assert await element.evaluate("(one) => parseFloat(getComputedStyle(one).fontSize)") >= 32


async def test_at_twice_the_size_the_options_leave_room_to_read(browser: Browser, program: Program) -> None:
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 640, "height": 400}) as page,
    ):
        assert await page.locator(".ask").evaluate("(form) => form.offsetHeight") < 160
        await page.get_by_text("Options").click()
        await expect(page.get_by_label("Mode", exact=True)).to_be_visible()


async def test_on_paper_are_answers_and_nothing_to_press(browser: Browser, program: Program) -> None:
    async with store_of(program) as store:
        await store.save_turn(turn("What is tea?", "Leaves.", turn_id="1", session_id="abc"))
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/sessions/abc")
        await expect(page.locator(".answer")).to_be_visible()
        await page.emulate_media(media="print")
        await expect(page.get_by_role("button")).to_have_count(0)
        await expect(page.get_by_label("Question")).to_be_hidden()
        await expect(page.locator(".answer")).to_be_visible()


async def test_a_document_is_asked_alone_from_where_it_is_read(browser: Browser, program: Program) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    program("inject", "-", "--uri", "coffee.md", stdin="# Coffee\n\nCoffee is brewed at 93 degrees.\n")
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/search?q=green+tea")
        await page.locator(".hits a").first.click()
        await page.get_by_role("link", name="Ask about this document").click()
        await expect(page.get_by_label("In", exact=True)).to_have_value("tea.md")
        await page.get_by_label("Question").fill("At how many degrees is coffee brewed?")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()
        await expect(page.locator(".answer")).not_to_contain_text("93 degrees")
        await page.get_by_role("button", name="Ask all").click()
        await page.get_by_role("button", name="Retry").click()
        await expect(page.locator(".answer").last).to_contain_text("93 degrees")


async def test_on_a_phone_commands_show_what_they_chose(browser: Browser, program: Program) -> None:
    name = f"{'tea' * 30}.md"
    program("inject", "-", "--uri", name, stdin=TEA)
    slow = Reply("One two three.", hold_after=2)
    with OpenAIServer([slow]) as model:
        async with (
            serving(with_model(program, model)) as web,
            visiting(browser, web, viewport={"width": 360, "height": 740}) as page,
        ):
            question, options = page.get_by_label("Question"), page.locator(".options summary")
            await question.fill(f"/in {name}")
            await question.press("Enter")
            await expect(options).to_have_text(f"Options: only {name}")
            assert not await scrolls_sideways(page)
            await question.fill("/in *")
            await question.press("Enter")
            await expect(options).to_have_text("Options")
            await question.fill("/model auto")
            await question.press("Enter")
            await expect(page.get_by_label("Model")).to_be_visible()
            await options.click()
            await question.fill("/model")
            await question.press("Enter")
            await expect(page.get_by_label("Model")).to_be_focused()
            await page.get_by_label("Model").select_option("")
            await options.click()
            await question.fill("/research")
            await question.press("Enter")
            await expect(page.get_by_label("Mode", exact=True)).to_be_visible()
            await page.get_by_label("Mode", exact=True).select_option("ask")
            await question.fill("How hot is green tea?")
            await question.press("Enter")
            await expect(page.get_by_role("button", name="Stop")).to_be_enabled()
            assert not await scrolls_sideways(page)
            slow.go.set()
            await expect(page.get_by_role("button", name="Retry")).to_be_visible()


async def test_a_file_that_is_dropped_on_the_chat_leads_to_the_library_and_text_stays_text(
    browser: Browser, program: Program
) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    dragging = """(element, item) => ["dragover", "drop"].map((kind) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(...item ?? [new File(["tea"], "tea.md")]);
      return element.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
    })"""
    text = ["tea", "text/plain"]
    async with serving(program) as web, visiting(browser, web) as page:
        await page.get_by_label("Question").fill("What is tea?")
        assert await page.get_by_label("Question").evaluate(dragging, text) == [True, True]
        assert await page.get_by_label("Question").evaluate(dragging) == [False, False]
        await expect(page.get_by_role("region", name="Load files")).to_contain_text("Drop files")
        assert await page.get_by_label("Filter").evaluate(dragging, text) == [True, True]
        await page.go_back()
        await expect(page.get_by_label("Question")).to_have_value("What is tea?")


async def test_asking_all_documents_lasts(browser: Browser, program: Program) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/?in=tea.md")
        chosen = page.get_by_label("In", exact=True)
        await page.reload()
        await expect(chosen).to_have_value("tea.md")
        await page.get_by_role("button", name="Ask all").click()
        await expect(page).to_have_url(f"{web.origin}/")
        await page.reload()
        await expect(page.get_by_label("Question")).to_be_focused()
        await expect(chosen).to_have_value("")


async def test_what_a_command_opens_is_scrolled_into_view(browser: Browser, program: Program) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 900, "height": 600}) as page,
    ):
        await page.get_by_label("Question").fill("How hot is green tea?")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Why")).to_be_visible()
        await page.get_by_label("Question").fill("/why")
        await page.keyboard.press("Enter")
        why = page.get_by_role("region", name="How this answer was made")
        await expect(why).to_be_in_viewport()
        await page.wait_for_function(
            "(why) => why.getBoundingClientRect().top < innerHeight / 2", arg=await why.element_handle()
        )


async def test_commands_are_offered_and_those_of_the_terminal_named_as_such(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        await page.get_by_label("Question").press_sequentially("/wh")
        await expect(page.locator(".commands")).to_contain_text("/why")
        await page.get_by_label("Question").fill("/open notes")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("/open is not on this page.")
        await expect(page.locator(".turn")).to_have_count(0)


async def test_what_an_answer_from_an_empty_memory_advises_works_on_the_page(
    browser: Browser, program: Program
) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        await page.get_by_label("Question").fill("What is tea?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer")).to_contain_text("Load documents with /inject")
        await page.get_by_label("Question").fill("/inject")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Choose files")).to_be_visible()
        await page.get_by_role("link", name="Folders").click()
        await expect(page.get_by_label("Folder of this machine, or web page")).to_be_visible()


async def test_the_words_of_a_command_are_used_or_refused(browser: Browser, program: Program) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    async with serving(program) as web, visiting(browser, web, expected=["409"]) as page:

        async def type(text: str) -> None:
            await page.get_by_label("Question").fill(text)
            await page.keyboard.press("Enter")

        await type("/export")
        await expect(page.locator("form.ask").get_by_role("alert")).to_contain_text("no answer to save")
        await type("How hot is green tea?")
        good = page.get_by_role("button", name="Good")
        await expect(good).to_be_visible()
        for typed, refused in (
            ("/good 9", "no source of this number"),
            ("/why 7", "/why takes no words here."),
            ("/model nosuch", "There is no model nosuch. There are auto, offline."),
            ("/constructor", "/constructor is not on this page."),
        ):
            await type(typed)
            await expect(page.locator("form.ask").get_by_role("alert")).to_contain_text(refused)
        await expect(good).to_have_attribute("aria-pressed", "false")
        await type("/good 1")
        await expect(good).to_have_attribute("aria-pressed", "true")
        await page.context.grant_permissions(["clipboard-write"])
        for _ in range(2):
            await type("/copy")
            await expect(page.get_by_role("button", name="Copied")).to_be_visible()
            await expect(page.get_by_label("Question")).to_have_value("")
            await expect(page.locator("form.ask").get_by_role("alert")).to_have_count(0)
        await type("/model auto")
        await expect(page.get_by_label("Model")).to_have_value("auto")
        await type("/sessions green")
        await expect(page.get_by_role("searchbox")).to_have_value("green")
        await type("//etc/hosts?")
        await expect(page.get_by_role("heading", name="/etc/hosts?", level=2, exact=True)).to_be_visible()


async def test_a_session_of_40_mb_is_shown_in_pages_and_takes_little_memory(
    browser: Browser, program: Program
) -> None:
    async with store_of(program) as store:
        for number in range(400):
            text = f"Answer {number}. " + "Long words without end. " * 4_300
            await store.save_turn(turn(f"Question {number}?", text, turn_id=f"{number}", session_id="abc"))
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/sessions/abc")
        await expect(page.get_by_role("heading", name="Question 399?", level=2)).to_be_visible()
        assert await page.locator(".turn").count() == 20
        for shown in (40, 60, 60):
            await page.get_by_role("button", name="Earlier").click()
            await expect(page.locator(".turn")).to_have_count(shown)
        await expect(page.get_by_role("heading", name="Question 320?", level=2)).to_have_count(1)
        await expect(page.get_by_role("button", name="Later")).to_be_visible()
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("HeapProfiler.collectGarbage")
        assert (await devtools.send("Runtime.getHeapUsage"))["usedSize"] < 100e6
        await page.get_by_label("Question").fill("What is tea?")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="What is tea?", level=2)).to_be_visible()
        await expect(page.locator(".turn").last.get_by_role("button", name="Edit")).to_be_visible()


async def test_waiting_and_stopping_are_said_and_leave_the_focus_in_the_question(
    browser: Browser, program: Program
) -> None:
    slow, reloaded = Reply("One two three.", hold_after=2), Reply("Four five six [9].", hold_after=2)
    with OpenAIServer([slow, reloaded]) as model:
        async with serving(with_model(program, model)) as web, visiting(browser, web) as page:
            question, status = page.get_by_label("Question"), page.locator("#status")
            await question.fill("What is tea?")
            await page.keyboard.press("Enter")
            await expect(page.locator(".answer")).to_contain_text("One")
            await question.fill("And coffee?")
            await page.keyboard.press("Enter")
            await expect(page.locator("form.ask").get_by_role("alert")).to_be_visible()
            await page.get_by_role("button", name="Stop").press("Enter")
            await expect(status).to_contain_text("The answer was stopped.")
            await expect(page.get_by_role("alert")).to_have_count(0)
            await expect(question).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.locator(".answer").last).to_contain_text("Four")
            await page.reload()
            await expect(page.locator(".answer").last).to_contain_text("Four")
            reloaded.go.set()
            await expect(status).to_contain_text("The answer cites [9], but no such passage was given.")


async def test_a_conversation_opens_at_its_newest_answer(browser: Browser, program: Program) -> None:
    async with store_of(program) as store:
        for number in range(20):
            text = "Long words without end. " * (2_000 if number == 15 else 2)
            await store.save_turn(turn(f"Question {number}?", text, turn_id=f"{number}", session_id="abc"))
    slow = Reply("One two three.", hold_after=2)
    with OpenAIServer([slow]) as model:
        async with (
            serving(with_model(program, model)) as web,
            visiting(browser, web, viewport={"width": 360, "height": 740}) as page,
        ):
            await page.goto(f"{web.origin}/sessions/abc")
            await expect(page.get_by_role("heading", name="Question 19?", level=2)).to_be_in_viewport()
            await page.get_by_label("Question").fill("What is tea?")
            await page.keyboard.press("Enter")
            asked = page.get_by_role("heading", name="What is tea?", level=2)
            await expect(page.locator(".answer").last).to_contain_text("One")
            await page.reload()
            await expect(asked).to_be_in_viewport()
            slow.go.set()
            await expect(page.get_by_role("button", name="Retry")).to_be_visible()
            await expect(asked).to_be_in_viewport()


async def at_rest(element: Locator) -> float:
    """The distance of an element from the top of the window, when nothing scrolls any more."""
    before, now = None, await element.evaluate("(one) => one.getBoundingClientRect().top")
    while now != before:
        await element.page.wait_for_timeout(200)
        before, now = now, await element.evaluate("(one) => one.getBoundingClientRect().top")
    return float(now)


async def test_earlier_and_later_answers_leave_the_reader_where_they_are(
    browser: Browser, program: Program
) -> None:
    async with store_of(program) as store:
        for number in range(90):
            text = "Long words without end. " * (number % 7 * 100 + 1)
            await store.save_turn(turn(f"Question {number}?", text, turn_id=f"{number}", session_id="abc"))
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/sessions/abc")
        for name, count, number in (
            ("Earlier", 40, 70),
            ("Earlier", 60, 50),
            ("Earlier", 60, 30),
            ("Later", 60, 69),
        ):
            reading = page.get_by_role("heading", name=f"Question {number}?", level=2)
            button = page.get_by_role("button", name=name)
            await button.scroll_into_view_if_needed()
            await reading.scroll_into_view_if_needed()
            before = await at_rest(reading)
            await page.locator("#status").evaluate("(status) => status.replaceChildren()")
            await button.evaluate("(button) => button.click()")  # without scrolling
            await expect(page.locator("#status")).to_contain_text(f"{name.lower()} answers.")
            await expect(page.locator(".turn")).to_have_count(count)
            assert abs(await at_rest(reading) - before) < 2


async def test_a_conversation_is_renamed_and_deleted(browser: Browser, program: Program) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        await page.get_by_label("Question").fill("What is tea?")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Rename").click()
        await page.get_by_role("textbox", name="Name").fill("<i>Tea</i>")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("<i>Tea</i>")
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page).to_have_url(web.origin + "/")
        await expect(page.get_by_role("link", name="Tea")).to_have_count(0)


async def test_with_the_keyboard_one_stays_where_one_was(browser: Browser, program: Program) -> None:
    async with serving(program) as web, visiting(browser, web) as page:
        await page.get_by_label("Question").fill("What is tea?")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Rename").press("Enter")
        await expect(page.get_by_role("textbox", name="Name")).to_be_focused()
        await page.keyboard.type("Tea")  # instead of the old name
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Tea")
        await expect(page.get_by_role("button", name="Rename")).to_be_focused()
        await page.get_by_role("button", name="Edit").press("Enter")
        await expect(page.get_by_label("Other wording")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Edit")).to_be_focused()
        await page.get_by_role("button", name="Retry").press("Enter")
        await expect(page.get_by_label("Question")).to_be_focused()


async def test_a_notebook_is_a_place_with_conversations_of_its_own(
    browser: Browser, program: Program
) -> None:
    folder = program.home / "config" / "notebooks"
    save(folder, Notebook("thesis", "bees.md", "<b>Be brief.</b>"))
    async with store_of(program) as store:
        await store.save_turn(turn("What is tea?", session_id="abc"))
        async with serving(program) as web, visiting(browser, web) as page:
            listed = page.get_by_role("navigation", name="Conversations")
            await expect(listed).to_contain_text("What is tea?")
            await page.get_by_role("list", name="Notebooks").get_by_role("link", name="thesis").click()
            await page.wait_for_url(web.origin + "/notebooks/thesis")
            await expect(page.locator(".about")).to_contain_text("<b>Be brief.</b>")
            await expect(listed).not_to_contain_text("What is tea?")
            await page.get_by_label("Question").fill("How hot is green tea?")
            await page.keyboard.press("Enter")
            await expect(listed).to_contain_text("How hot is green tea?")
            await page.reload()
            await expect(page.locator(".about")).to_contain_text("Notebook thesis: bees.md")
            await axe(page)
            remove(folder, "thesis")
            await store.release("thesis")
            await page.get_by_label("Question").fill("How hot is black tea?")
            await page.keyboard.press("Enter")
            await expect(page.locator(".answer")).to_have_count(2)
