"""Search and reading without scripts: what a text browser gets."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest

from tests.support.browser import serving
from tests.support.program import program_in

HOSTILE = '# <script>alert(1)</script>\n\nThe samovar "hums" <img src=x onerror=alert(1)> & \x1b[2J sings.\n'
ROWS = "\n".join(f"Row {number} of many rows." for number in range(9_000))


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    program = program_in(tmp_path_factory.mktemp("plain"))
    (program.folder / "samovar.md").write_text(HOSTILE, "utf-8")
    (program.folder / "rows.txt").write_text(ROWS, "utf-8")
    assert program("inject", ".").code == 0
    async with serving(program) as web:
        with web.signed_in() as signed_in:
            yield signed_in


def links(page: str) -> dict[str, str]:
    """The addresses of the links, by their texts."""
    return {unescape(text): unescape(href) for href, text in re.findall(r'<a href="([^"]*)">(.*?)</a>', page)}


async def test_a_hit_leads_to_its_place_and_its_text_is_no_markup(client: Any) -> None:
    page = client.get("/search", params={"q": 'samovar "hums"'}).text
    assert 'value="samovar &quot;hums&quot;"' in page
    assert "<mark>samovar</mark>" in page
    for text in (page, client.get(links(page)["<script>alert(1)</script>"]).text):
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "␛[2J" in text


async def test_a_long_document_is_read_page_by_page(client: Any) -> None:
    address = links(client.get("/search", params={"q": "many rows", "in": "rows.txt"}).text)["rows.txt"]
    page = client.get(re.sub("&line.*", "", address)).text
    rows = re.findall(r'<li id="L\d+">(.*?)</li>', page)
    while following := links(page).get("Go on reading"):
        page = client.get(following).text
        rows += re.findall(r'<li id="L\d+">(.*?)</li>', page)
    assert "\n".join(rows) == ROWS
    assert links(page)["Beginning"] == re.sub("&line.*", "", address)


async def test_the_filters_are_kept_in_the_form(client: Any) -> None:
    page = client.get("/search", params={"q": "rows samovar", "kind": "txt", "after": "2020-01-01"}).text
    assert 'name="kind" type="text" value="txt"' in page
    assert 'name="after" type="date" value="2020-01-01"' in page
    assert "samovar.md" not in page


async def test_what_fails_is_said_with_its_status(client: Any) -> None:
    for path, status, sentence in (
        ("/document?id=none", 404, "There is no document of that id."),
        ("/search?q=tea&before=soon", 400, "before is not a date"),
        ("/search?q=tea&in=nowhere", 200, "nowhere"),
    ):
        response = client.get(path)
        assert response.status_code == status
        assert sentence in response.text
