"""Every link between the pages, and every path of the project that they name, leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import BLOCK, DOCS, PAGES, ROOT, name_of, read

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
# In a code span: a path below one of the project's folders, or a file of the root.
PATH = re.compile(r"`((?:client|server|shared|config|tests|docs|deploy)/[\w./*-]*|\.ci/run)`")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(BLOCK.sub("", read(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    lost = []
    for target in LINK.findall(BLOCK.sub("", read(page))):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    assert [path for path in PATH.findall(read(page)) if not [*ROOT.glob(path)]] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, new = set[Path](), {ROOT / "README.md"}
    while new:
        page = new.pop()
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(read(page))}
        new |= {target for target in targets if target in PAGES} - reached
    assert [name_of(page) for page in PAGES if page not in reached] == []


def test_every_picture_is_shown() -> None:
    shown = {(page.parent / link).resolve() for page in PAGES for link in LINK.findall(read(page))}
    assert {path.resolve() for path in DOCS.rglob("*.svg")} <= shown


def test_the_readme_is_short() -> None:
    assert len(read(ROOT / "README.md").splitlines()) <= 200
