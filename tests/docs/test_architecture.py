"""docs/architecture.md names the folders and files that there are."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT, read
from tests.test_house import PACKAGES

ARCHITECTURE = DOCS / "architecture.md"
# A code span that is a path of a file or folder; it may be relative to a package.
PATH = re.compile(r"`([\w./-]+(?:/|\.(?:py|toml|md)))`")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_a_package_has_a_line_in_its_table(package: str) -> None:
    section = read(ARCHITECTURE).partition(f"### `{package}/`")[2].partition("\n### ")[0]
    named = re.findall(r"^\| `([\w/]+)/` \|", section, re.MULTILINE)
    folders = {path.parent.relative_to(ROOT / package).as_posix() for path in (ROOT / package).rglob("*.py")}
    assert sorted(named) == sorted(folders - {"."})


def test_every_path_that_the_map_names_exists() -> None:
    roots = [ROOT, *(ROOT / package for package in PACKAGES)]
    named = PATH.findall(read(ARCHITECTURE))
    assert len(named) > 20
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []
