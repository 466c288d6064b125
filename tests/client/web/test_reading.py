"""Reading documents and cited places over HTTP, from a real page; some of it in a browser.

Covers `ragchat.web.pages` and `ragchat.memory.opening`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.support.browser import Browser, axe, expect, scrolls_sideways, serving, visiting
from tests.support.documents import pdf
from tests.support.program import Program, program_in

FILLER = "\n".join(f"Line {number} is about nothing in particular." for number in range(30))
LIFTS = "The crane lifts at most 12 tonnes."
ZEPPELIN = "The zeppelin lands at noon in Friedrichshafen."
WORDS = " ".join(f"word{number % 977} lorem{number % 31}" for number in range(20_000))
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def rows(count: int) -> str:
    return "\n".join(f"Row {number} of many rows." for number in range(count))


class Desk:
    def __init__(self, program: Program, client: httpx2.Client) -> None:
        self.program = program
        self.client = client

    def get(self, path: str, **given: Any) -> Any:
        return self.client.get(path, params=given)

    def hit(self, question: str) -> dict[str, Any]:
        hit: dict[str, Any] = self.get("/api/search", q=question).json()["hits"][0]
        return hit

    def cited(self, question: str, quote: str, **given: Any) -> Any:
        """The source of a quotation in the best hit."""
        hit = self.hit(question)
        return self.get(
            "/api/source",
            **{
                "id": hit["document_id"],
                "line": hit["line"],
                "chunk": hit["chunk_id"],
                "quote": quote,
                **given,
            },
        ).json()


@pytest.fixture
async def desk(program: Program) -> AsyncIterator[Desk]:
    async with serving(program) as web:
        with web.signed_in() as client:
            yield Desk(program, client)


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    """With documents that no test changes."""
    program = program_in(tmp_path_factory.mktemp("reading"))
    folder = program.folder
    (folder / "crane.pdf").write_bytes(pdf([FILLER, f"{FILLER}\n{LIFTS}\n{FILLER}"]))
    (folder / "zeppelin.txt").write_text(f"{WORDS} {ZEPPELIN} {WORDS}\nThe second line.\n", "utf-8")
    (folder / "long.md").write_text(
        "\n".join(f"Row {number} of many rows." for number in range(9_000)), "utf-8"
    )
    assert program("inject", ".").code == 0
    (folder / "seal.png").write_bytes(PNG)
    (folder / "fake.png").write_text("<svg onload='alert(1)'/>", "utf-8")
    (folder / "link.png").symlink_to(folder / "seal.png")
    (folder / "sound.webp").write_bytes(b"RIFF\x24\0\0\0WAVEfmt ")
    for name in ("seal.png", "fake.png", "link.png", "sound.webp"):
        uri, text = (folder / name).as_uri(), f"A picture of {name.replace('.', ' ')}."
        assert program("inject", "-", "--uri", uri, stdin=text).code == 0
    async with serving(program) as web:
        with web.signed_in() as client:
            yield Desk(program, client)


def quoted(shown: Any) -> list[tuple[int, str]]:
    return [(one["line"], one["quoted"]) for one in shown["marked"]]


async def test_a_cited_place_is_shown_with_its_lines_and_its_page(shared: Desk) -> None:
    pytest.importorskip("pypdfium2", reason="the extra `pdf` is not installed")
    shown = shared.cited("How much does the crane lift?", LIFTS)
    [(line, text)] = quoted(shown)
    assert text == LIFTS.removesuffix(".")
    assert shown["lines"][line - shown["start_line"]] == LIFTS
    assert shown["place"].endswith("crane.pdf p. 2")
    assert shown["original"] == "page"
    page = shared.get("/api/original", id=shown["document_id"], page=2)
    assert page.headers["content-type"] == "image/png"
    assert page.content.startswith(b"\x89PNG")
    beyond = shared.get("/api/original", id=shown["document_id"], page=3)
    assert "has no page 3" in beyond.json()["error"]["message"]


async def test_a_quotation_in_the_middle_of_a_long_line_is_shown_without_the_rest(shared: Desk) -> None:
    shown = shared.cited("Where does the zeppelin land at noon?", ZEPPELIN)
    assert quoted(shown) == [(1, ZEPPELIN.removesuffix("."))]
    assert not shown["begins"]
    assert len("\n".join(shown["lines"])) < 40_000


async def test_a_document_is_read_to_its_end_in_parts_that_miss_nothing(shared: Desk) -> None:
    id, cursor, text = shared.hit("zeppelin")["document_id"], "", ""
    while True:
        response = shared.get("/api/document", id=id, cursor=cursor)
        assert len(response.content) < 100_000
        part = response.json()
        text += "\n".join(part["lines"]) + "\n" * part["ends"]
        if not (cursor := part["next"]):
            break
    assert text == f"{WORDS} {ZEPPELIN} {WORDS}\nThe second line.\n"


async def test_lines_are_read_from_any_number_on(shared: Desk) -> None:
    id = shared.hit("rows of many")["document_id"]
    part = shared.get("/api/document", id=id, line=8_000, end=8_002).json()
    assert (part["start_line"], part["next"]) == (8_000, "")
    assert part["lines"] == [f"Row {number} of many rows." for number in (7_999, 8_000, 8_001)]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"id": "/etc/passwd"}, 404),
        ({"id": "file:///etc/passwd"}, 404),
        ({"id": "0" * 16}, 409),
        ({"line": "-1"}, 400),
        ({"line": "9" * 30}, 400),
        ({"line": "1", "cursor": "x"}, 400),
        ({"line": "99999"}, 404),
        ({"line": "1", "cursor": "99999"}, 409),
        ({"line": "2", "cursor": "99999"}, 409),
    ],
)
async def test_what_is_not_in_memory_is_refused_in_a_sentence(
    shared: Desk, given: dict[str, str], status: int
) -> None:
    id = shared.hit("rows of many")["document_id"]
    response = shared.get("/api/document", **{"id": id, **given})
    assert response.status_code == status
    assert response.json()["error"]["message"].endswith(".")
    assert "get_document" not in response.text


async def test_a_part_after_one_of_another_text_is_no_line_that_is_missing(shared: Desk) -> None:
    id = shared.hit("rows of many")["document_id"]
    refused = shared.get("/api/document", id=id, line=2, cursor=99_999).json()["error"]
    assert refused["message"] == "The document has changed since the part before this one was shown."


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fake png", "is not an image"),
        ("sound webp", "is not an image"),
        ("link png", "cannot be read"),
        ("rows of many", "no file of this document"),
    ],
)
async def test_only_an_image_at_its_own_path_is_sent(shared: Desk, name: str, reason: str) -> None:
    response = shared.get("/api/original", id=shared.hit(name)["document_id"])
    assert response.status_code in (404, 409)
    assert reason in response.json()["error"]["message"]


async def test_an_image_that_is_a_document_is_sent(shared: Desk) -> None:
    response = shared.get("/api/original", id=shared.hit("seal png")["document_id"])
    assert (response.content, response.headers["content-type"]) == (PNG, "image/png")
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_a_quotation_is_found_where_it_is_now(desk: Desk) -> None:
    file = desk.program.folder / "boiler.md"
    sentence = "The pressure of the boiler is 1.5 bar."
    file.write_text(f"# Boiler\n\n{sentence}\n", "utf-8")
    desk.program("inject", ".")
    cited = desk.hit("pressure of the boiler")
    file.write_text(f"# New\n\n{FILLER}\n\n# Kettle\n\n{sentence} It hums.\n", "utf-8")
    desk.program("inject", ".")
    given = {"id": cited["document_id"], "line": 3, "chunk": cited["chunk_id"], "quote": sentence}
    shown = desk.get("/api/source", **given).json()
    assert quoted(shown) == [(36, sentence.removesuffix("."))]
    assert shown["note"].startswith("The document has changed since the answer")
    file.write_text("# Boiler\n\nSold.\n", "utf-8")
    desk.program("inject", ".")
    shown = desk.get("/api/source", **given).json()
    assert (quoted(shown), shown["note"]) == ([], "The document no longer holds the quotation.")
    os.utime(file, (4_000_000_000, 4_000_000_000))
    assert "boiler.md was written again on 2096" in desk.get("/api/document", id=given["id"]).json()["note"]
    file.unlink()
    assert desk.get("/api/document", id=given["id"]).json()["note"].endswith("boiler.md no longer exists.")
    desk.program("memory", "rm", "boiler.md")
    assert desk.get("/api/source", **given).status_code == 409


@pytest.mark.full
async def test_a_source_stands_beside_the_answer_and_a_long_document_grows(
    browser: Browser, program: Program
) -> None:
    (program.folder / "long.md").write_text(rows(30_000), "utf-8")
    assert program("inject", ".").code == 0
    async with serving(program) as web, visiting(browser, web) as page:
        id = await page.evaluate(
            "fetch('/api/search?q=rows').then((r) => r.json()).then((r) => r.hits[0].document_id)"
        )
        await page.goto(f"{web.origin}/document?id={id}#L9000")
        await expect(page.locator("#L9000")).to_be_in_viewport()
        await expect(page.locator("#L9000")).to_have_text("Row 8999 of many rows.")
        await expect(page.locator("#L8900")).to_have_count(1)  # loaded above, without moving the page
        await expect(page.locator("#L9000")).to_be_in_viewport()
        assert not await scrolls_sideways(page)
        await axe(page)
        for _ in range(12):
            last = await page.locator(".lines li").last.get_attribute("id")
            await page.locator(".lines li").last.scroll_into_view_if_needed()
            await page.wait_for_function(
                "(last) => [...document.querySelectorAll('.lines li')].at(-1).id !== last"
                " || [...document.querySelectorAll('.text > button')].at(-1).hidden",
                arg=last,
            )
        assert await page.locator(".part").count() <= 8
        await page.evaluate(
            """async (documentId) => {
              const { openSource } = await import("/static/source.js");
              const aside = document.createElement("aside");
              document.getElementById("main").replaceChildren(aside);
              const quote = "Row 500 of many rows";
              await openSource(aside, { documentId, title: "Rows", startLine: 490, endLine: 510,
                                        quoteStartLine: 501, quoteEndLine: 501, quote, chunkId: 0 });
            }""",
            id,
        )
        await expect(page.locator("aside mark")).to_have_text("Row 500 of many rows")
        await expect(page.locator("aside mark")).to_be_in_viewport()
        await page.get_by_role("button", name="More above").click()
        await expect(page.locator("aside #L400")).to_have_count(1)
        await axe(page)
