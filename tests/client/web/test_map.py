"""The map on the page. Covers `ragchat.web.map`."""

from __future__ import annotations

import re

import pytest

from tests.support.browser import Browser, Web, axe, expect, scrolls_sideways, serving, visiting
from tests.support.program import Program

pytestmark = pytest.mark.full

TOPICS = {
    "tea": "Steep green tea leaves in the teapot for two minutes, then pour the tea into cups.",
    "boats": "The sailing boat left the harbour; its sails and its mast stood high over the sailors.",
}


def fill(program: Program) -> None:
    notes = program.folder / "notes"
    notes.mkdir()
    for topic, text in TOPICS.items():
        for number in range(6):
            path = notes / f"{topic}{number}.md"
            path.write_text(f"# {topic} {number}\n\n{text}", encoding="utf-8")
    program("inject", "notes")


def points_of(web: Web) -> dict[str, list[dict[str, object]]]:
    with web.signed_in() as client:
        found: dict[str, list[dict[str, object]]] = client.get("/api/map").raise_for_status().json()
        return found


async def test_what_the_map_shows_can_be_searched_by_keyboard(browser: Browser, program: Program) -> None:
    fill(program)
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/map")
        await expect(page.get_by_role("img")).to_have_accessible_name(
            "Map of 12 documents in 2 groups. Documents about the same are near each other."
            " The list below has the same."
        )
        assert not await scrolls_sideways(page)
        await axe(page)
        group = page.locator("summary").filter(has_text="tea")
        await group.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("link", name="tea 3")).to_be_visible()
        await page.keyboard.press("Tab")
        searching = page.locator("a:focus")
        await expect(searching).to_have_attribute("href", re.compile(r"^/search\?q=.*tea"))


NARROW = {"width": 360, "height": 800}


async def test_a_click_on_a_group_searches_for_its_words(browser: Browser, program: Program) -> None:
    program("inject", "-", "--uri", "tea.md", stdin=f"# Tea\n\n{TOPICS['tea']}")
    async with (
        serving(program) as web,
        visiting(browser, web, viewport=NARROW) as page,
    ):
        await page.goto(f"{web.origin}/map")
        box = await page.locator("canvas").bounding_box()
        assert box is not None
        assert not await scrolls_sideways(page)
        # The label, in the middle, covers the point.
        await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        await page.wait_for_url("**/search?q=*tea*")


async def test_hostile_titles_are_text(browser: Browser, program: Program) -> None:
    title = "<svg onload=alert(1)> \u202eabc"
    program("inject", "-", "--uri", "evil.md", stdin=f"# {title}\n\n{TOPICS['tea']}")
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/map")
        await page.locator("summary").click()
        shown = await page.get_by_role("listitem").inner_text()
        assert shown == "<svg onload=alert(1)> \ufffdabc"


def test_an_empty_memory_has_an_empty_map(program: Program) -> None:
    from tests.support.browser import web_process

    with web_process(program) as web:
        found = points_of(web)
    assert found == {"points": [], "clusters": [], "documents": 0}
