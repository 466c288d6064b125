"""Writes the pictures of the page in docs/screens: `python -m tests.docs.screenshots`.

The program is real; the library, a household's notes, and the model are invented.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from tests.docs.pages import DOCS
from tests.support.browser import Page, chromium_running, expect, serving, visiting
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import program_in

FOLDER = DOCS / "screens"
NAMES = ("web-chat", "web-why", "web-search", "web-library", "web-map")
WINDOW = {"width": 1280, "height": 800}
QUESTION = "How much water pressure does the boiler need?"
ANSWER = Reply(
    "The pressure has to stay **between 1.2 and 1.8 bar** [1]. When it is lower, the boiler is refilled with "
    "the blue valve under the sink:\n\n> Refill it with the blue valve under the sink. [1]\n\n"
    "Bleed the radiators first, from the lowest floor up [2]."
)
# Folders of an invented household, with the notes in each: the first line is the title.
LIBRARY = {
    "flat": (
        "Boiler\nPressure must stay between 1.2 and 1.8 bar. Refill it with the blue valve under the sink.",
        "Boiler service\nThe boiler is serviced in October. The burner was cleaned, the pump replaced.",
        "Radiators\nBleed the radiators in autumn, from the lowest floor up. Then check the pressure.",
        "Fuse box\nThe oven has two fuses of 16 A. The kitchen and the bathroom share a breaker.",
        "Bins\nPaper goes out every second Tuesday, glass on the first Friday of the month.",
        "Keys\nThe cellar key hangs behind the door. The neighbours on the second floor have a spare one.",
    ),
    "garden": (
        "Roses\nCut the roses in March, above an eye that points outwards. Feed them with compost in May.",
        "Lawn\nMow the lawn every ten days, not shorter than four centimetres. Water it in the morning.",
        "Tomatoes\nSow the tomatoes in March on the window sill, plant them out after the last frost in May.",
        "Water\nThe valve of the garden's water pipe is closed before the first frost, the pipe drained.",
        "Apple tree\nPrune the apple tree in February. Pick the apples in late September, store them cool.",
        "Compost\nTurn the compost twice a year. Leaves, peels and grass in thin layers, no cooked food.",
    ),
    "kitchen": (
        "Bread\nMix 500 g of flour, 350 g of water and 10 g of salt with sourdough. Bake it at 230 degrees.",
        "Sourdough\nFeed the sourdough with equal parts of flour and water. It doubles within six hours.",
        "Green tea\nGreen tea is brewed at 75 degrees for two minutes, a second time for three.",
        "Jam\nBoil the plums with half of their weight in sugar. Fill the jam into hot glasses.",
        "Lentil soup\nFry onions and carrots, add red lentils and stock, and cook the soup for 20 minutes.",
        "Pizza\nThe dough rests in the fridge for a day. Bake the pizza on the hottest setting, on steel.",
    ),
    "bicycles": (
        "Chain\nClean the chain every 300 km and oil each link. Replace it at 0.75 % wear.",
        "Tyres\nThe touring bicycle takes 4 bar in front and 4.5 bar behind, the city bicycle 3.5 bar.",
        "Brakes\nThe brake pads are worn at 1 mm. Bleed the hydraulic brakes with mineral oil.",
        "Tour to the lake\n64 km, flat, along the canal. The ferry takes bicycles until six o'clock.",
        "Gears\nTurn the barrel adjuster by a quarter when the chain does not climb to the next sprocket.",
        "Lights\nThe dynamo feeds the lamp; the rear light's cable runs inside the mudguard.",
    ),
}


async def take(folder: Path) -> AsyncIterator[tuple[str, bytes]]:
    """The pictures as PNG, with their names."""
    with OpenAIServer(rules={"boiler": ANSWER}, models=["local-model"]) as model:
        ragchat = program_in(
            folder, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="local-model"
        )
        for name, notes in LIBRARY.items():
            for note in notes:
                title, _, text = note.partition("\n")
                path = ragchat.folder / "notes" / name / f"{title.lower().replace(' ', '-')}.md"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
        ragchat("source", "add", "notes")
        ragchat("sync")
        async with (
            chromium_running() as browser,
            serving(ragchat) as web,
            visiting(browser, web, viewport=WINDOW, reduced_motion="reduce") as page,
        ):
            async for name in views(page, web.origin):
                yield name, await page.screenshot()


async def views(page: Page, origin: str) -> AsyncIterator[str]:
    """The names of the pictures, each while the page shows it."""
    await page.get_by_label("Question").fill(QUESTION)
    await page.keyboard.press("Enter")
    await page.locator(".turn .answer .chip").first.click()
    await expect(page.get_by_role("complementary", name="Source")).to_contain_text("Pressure must stay")
    yield "web-chat"
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Why").click()
    await page.locator(".why figure").first.scroll_into_view_if_needed()
    yield "web-why"
    await page.goto(origin + "/search?q=pressure")
    await expect(page.locator(".hits li").first).to_be_visible()
    yield "web-search"
    await page.goto(origin + "/library")
    await expect(page.locator(".documents > li").first).to_be_visible()
    yield "web-library"
    await page.emulate_media(color_scheme="dark")
    await page.goto(origin + "/map")
    await expect(page.locator("main canvas, main svg").first).to_be_visible()
    yield "web-map"


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async for name, png in take(Path(folder)):
            (FOLDER / f"{name}.png").write_bytes(png)


if __name__ == "__main__":
    anyio.run(main)
