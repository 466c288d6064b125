"""Search as one types: the hits of a real page over HTTP, and its view in a browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragchat.web.search import FIRST, find
from tests.client.web.test_markup import elements, text_of
from tests.support.browser import Browser, Web, axe, expect, scrolls_sideways, serving, visiting
from tests.support.memory import memory_of
from tests.support.program import Program, program_in

TEA = "# Tea\n\nGreen tea is brewed at 75 degrees for two minutes.\n"
HOSTILE = (
    '# <script>alert(1)</script>\n\nThe samovar <img src=x onerror=alert(1)> hums. \u202egnp.exe \x1b[2J "\n'
)


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    program = program_in(tmp_path_factory.mktemp("search"))
    write(program, "notes/tea.md", TEA)
    write(program, "notes/old/COFFEE.TXT", "Espresso is pressed at nine bar.\n")
    write(program, "samovar.md", HOSTILE)
    assert program("inject", ".").code == 0
    async with serving(program) as running:
        yield running


@pytest.fixture(scope="module")
def client(web: Web) -> Iterator[Any]:
    with web.signed_in() as signed_in:
        yield signed_in


def write(program: Program, name: str, text: str) -> Path:
    path = program.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def found(client: Any, **given: str) -> list[str]:
    response = client.get("/api/search", params=given)
    assert response.status_code == 200
    return [hit["place"].rpartition("/")[2] for hit in response.json()["hits"]]


def marked(hit: dict[str, Any]) -> list[str]:
    return [text_of([mark]) for mark in elements("mark", hit["nodes"])]


async def test_more_is_offered_until_all_that_is_shown_was_asked_for(tmp_path: Path) -> None:
    notes = {f"note:{number}": f"The quokka of island {number} sleeps." for number in range(FIRST)}
    async with memory_of(tmp_path, notes) as memory:
        first, all_of_them = (
            await find(memory, {"q": "quokka"}),
            await find(memory, {"q": "quokka", "more": "1"}),
        )
    assert [(len(one.hits), one.more) for one in (first, all_of_them)] == [(FIRST, True), (FIRST, False)]


async def test_a_hit_has_its_place_and_the_words_of_the_query_marked(client: Any) -> None:
    hit = client.get("/api/search", params={"q": "How is green tea brewed?"}).json()["hits"][0]
    assert (hit["title"], hit["line"]) == ("Tea", 1)
    assert text_of(hit["nodes"]) == TEA.strip("\n")
    assert marked(hit) == ["Tea", "Green", "tea", "brewed"]


async def test_a_word_that_is_still_being_typed_is_found_by_its_beginning(client: Any) -> None:
    hit = client.get("/api/search", params={"q": "espre"}).json()["hits"][0]
    assert "Espresso" in marked(hit)


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({"in": "notes/"}, {"COFFEE.TXT:1", "tea.md:1–3"}),
        ({"in": "notes/", "kind": "txt"}, {"COFFEE.TXT:1"}),
        ({"kind": ".md"}, {"tea.md:1–3", "samovar.md:1–3"}),
        ({"after": "2999-01-01"}, set[str]()),
        ({"before": "2000-01-01"}, set[str]()),
        ({"tag": "none such"}, set[str]()),
        ({"in": "no such folder/"}, set[str]()),
    ],
)
async def test_filters_limit_the_hits(client: Any, given: dict[str, str], places: set[str]) -> None:
    assert set(found(client, q="tea espresso samovar", **given)) == places


async def test_a_date_that_is_none_is_named(client: Any) -> None:
    response = client.get("/api/search", params={"q": "tea", "after": "soon"})
    assert response.status_code == 400
    assert "after is not a date" in response.json()["error"]["message"]


async def test_the_filters_offer_what_is_in_memory(client: Any) -> None:
    offered = client.get("/api/filters").json()
    assert offered["kinds"] == [["md", 2], ["txt", 1]]
    assert offered["folders"] == [["./", 1], ["notes/", 1], ["notes/old/", 1]]


async def test_control_characters_of_a_hit_are_shown(client: Any) -> None:
    hit = client.get("/api/search", params={"q": "samovar"}).json()["hits"][0]
    text = text_of(hit["nodes"])
    assert "␛[2J" in text
    assert "\u202e" not in text


@pytest.mark.full
async def test_one_types_and_opens_a_hit_by_keyboard_and_the_back_button_returns(
    browser: Browser, program: Program
) -> None:
    write(program, "tea.md", TEA)
    write(program, "samovar.md", HOSTILE)
    assert program("inject", ".").code == 0
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/search")
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await page.keyboard.type("samovar", delay=5)
        await expect(page.locator(".hits a").first).to_have_text("<script>alert(1)</script>")
        await expect(page).to_have_url(re.compile(r"\?q=samovar$"))
        assert not await scrolls_sideways(page)
        await axe(page)
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("<script>alert(1)</script>")
        await expect(page.locator(".lines mark").first).to_be_visible()
        await axe(page)
        await page.go_back()
        await expect(page.get_by_role("searchbox")).to_have_value("samovar")
        await expect(page.locator(".hits a").first).to_be_focused()


@pytest.mark.full
async def test_a_click_opens_the_hit_below_the_one_that_was_reached_by_keyboard(
    browser: Browser, program: Program
) -> None:
    for name in ("green", "black"):
        lines = "".join(f"Line {number} of the {name} tea.  \n" for number in range(30))
        write(program, f"{name}.md", f"# {name}\n\n{lines}")
    assert program("inject", ".").code == 0
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/search?q=green+tea")
        await expect(page.locator(".passage").first).to_contain_text("Line 29 of the green")
        await page.keyboard.press("ArrowDown")
        await expect(page.locator(".hits a").first).to_be_focused()
        whole = await page.locator(".passage").first.bounding_box()
        shortened = await page.locator(".passage").nth(1).bounding_box()
        assert whole
        assert shortened
        assert whole["height"] > 2 * shortened["height"]
        await page.locator(".hits a").nth(1).click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("black")


@pytest.mark.full
async def test_a_late_answer_never_replaces_a_newer_one(browser: Browser, program: Program) -> None:
    write(program, "tea.md", TEA)
    write(program, "coffee.md", "# Coffee\n\nEspresso is pressed at nine bar.\n")
    assert program("inject", ".").code == 0
    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/search")
        held: list[Any] = []

        async def hold(route: Any) -> None:
            if "espresso" in route.request.url:
                held.append(route)
            else:
                await route.continue_()

        await page.route("**/api/search*", hold)
        box = page.get_by_role("searchbox")
        async with page.expect_request("**/api/search?q=espresso*"):
            await box.fill("espresso")
        await box.fill("green tea")
        await expect(page.locator(".hits a").first).to_have_text("Tea")
        for route in held:
            await route.abort()
        await expect(page.locator(".hits a").first).to_have_text("Tea")
        await expect(page.locator(".error")).to_have_count(0)
