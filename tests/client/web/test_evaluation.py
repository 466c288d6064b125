"""Answers judged on the page, their chart, and the marks of changed documents."""

from __future__ import annotations

import pytest

from tests.support.browser import Browser, axe, expect, serving, visiting
from tests.support.program import Program

pytestmark = pytest.mark.full

TEA = "# Tea\n\nGreen tea is steeped at 75 degrees.\n"


async def test_an_answer_is_judged_asked_again_and_marked(browser: Browser, program: Program) -> None:
    program("inject", "-", "--uri", "note:tea", stdin=TEA)
    async with serving(program) as web, visiting(browser, web, expected=["409"]) as page:
        await page.get_by_label("Question").fill("How is green tea steeped?")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Good").click()
        await expect(page.get_by_role("status")).to_contain_text("Saved: the answer is in note:tea:3")
        await page.get_by_role("button", name="Bad").click()
        place = page.get_by_label("The right place, if you know it")
        await place.fill("nosuch.md")
        await place.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("There is no document nosuch.md")
        await place.fill("note:tea:3")
        await place.press("Enter")
        await expect(page.get_by_role("button", name="Bad")).to_have_attribute("aria-pressed", "true")

        program("inject", "-", "--uri", "note:tea", stdin=TEA.replace("75", "80"))
        await page.reload()
        await expect(page.get_by_text("Changed since this answer: note:tea:3")).to_be_visible()
        await expect(page.get_by_role("button", name="Bad")).to_have_attribute("aria-pressed", "true")

        await page.get_by_role("link", name="Evaluation").click()
        await page.get_by_role("button", name="Ask all again").click()
        await expect(page.get_by_text("0 of 1 right · 0 of 1 on the screen")).to_be_visible()
        await expect(page.get_by_role("cell", name="note:tea:3", exact=True)).to_be_visible()
        await axe(page)
        await page.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("There are no cases yet.")).to_be_visible()
