"""The page in a browser: each view, by keyboard alone, in two tabs, with a server that is lost."""

from __future__ import annotations

import re

import pytest

from tests.support.browser import Browser, axe, expect, scrolls_sideways, serving, visiting
from tests.support.program import Program

pytestmark = pytest.mark.full

TEA = "# Tea\n\nGreen tea is brewed at 75 degrees for two minutes.\n"


@pytest.mark.smoke
async def test_a_question_is_answered_from_the_memory(browser: Browser, program: Program) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=TEA)
    async with serving(program) as web, visiting(browser, web) as page:
        await page.get_by_label("Question").fill("How hot is green tea?")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer")).to_contain_text("75 degrees")
        await expect(page).to_have_url(re.compile("/sessions/[0-9a-f]+$"))
        assert not await scrolls_sideways(page)
        await axe(page)
