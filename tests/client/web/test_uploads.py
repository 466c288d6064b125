"""Where the copies of dropped files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragchat.web.errors import BadRequest
from ragchat.web.uploads import copy_path

FOLDER = Path("/data/memory.db-files")


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("tea.md", "tea.md"),
        ("notes/green tea.md", "notes/green tea.md"),
        ("../../etc/passwd", "%2E%2E/%2E%2E/etc/passwd"),
        ("..\\..\\boot.ini", "%2E.%5C..%5Cboot.ini"),
        ("C:\\x", "C%3A%5Cx"),
        (".gitignore", "%2Egitignore"),
        ("a%2Eb", "a%25 2Eb".replace(" ", "")),
        ("end.", "end%2E"),
        ("nul\0\n", "nul%00%0A"),
        ("\u202egnp.exe", "%E2%80%AEgnp.exe"),
        ("cafe\u0301.md", "caf\u00e9.md"),
    ],
)
def test_a_name_is_data_and_never_leads_out_of_the_folder(name: str, copy: str) -> None:
    path = copy_path(FOLDER, name)
    assert path == FOLDER.joinpath(copy)
    assert path.is_relative_to(FOLDER)
    assert ".." not in path.parts


@pytest.mark.parametrize("name", ["", "/", "/etc/passwd", "a//b", "a/", "ä" * 101])
def test_a_name_without_a_file_or_too_long_is_refused(name: str) -> None:
    with pytest.raises(BadRequest):
        copy_path(FOLDER, name)
