"""Images and sounds of servers, as files and as data URLs."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path

import pytest

from ragchat.servers.media import MAX_BYTES, MAX_FILES, MediaFiles, image_url

LARGE = b64encode(bytes(MAX_BYTES + 1)).decode()


def test_a_file_has_the_content_and_a_name_of_its_own(tmp_path: Path) -> None:
    files = MediaFiles(tmp_path / "media")
    path = files.keep("image/png", "QUJD")
    assert path is not None
    assert path.read_bytes() == b"ABC"
    assert path.suffix == ".png"
    assert files.keep("image/png", "QUJD") == path
    assert files.keep("audio/wav", "QUJD") == path.with_suffix(".wav")
    assert files.keep("image/png", "QUJF") != path


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("image/svg+xml", "QUJD"),
        ("text/html", "QUJD"),
        ("../png", "QUJD"),
        ("image/png", "not base64!"),
        ("image/png", ""),
        ("image/png", LARGE),
    ],
    ids=["svg", "page", "path", "malformed", "empty", "large"],
)
def test_what_a_program_could_run_and_what_is_malformed_or_large_is_not_kept(
    tmp_path: Path, kind: str, data: str
) -> None:
    assert MediaFiles(tmp_path).keep(kind, data) is None
    assert image_url(kind, data) == ""
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "media").write_text("a file")
    assert MediaFiles(tmp_path / "media").keep("image/png", "QUJD") is None


def test_only_the_newest_files_stay(tmp_path: Path) -> None:
    files = MediaFiles(tmp_path)
    kept: list[Path] = []
    for number in range(MAX_FILES + 1):
        path = files.keep("image/png", b64encode(bytes([number])).decode())
        assert path is not None
        os.utime(path, (number, number))
        kept.append(path)
    (tmp_path / "mine.txt").write_text("not ours")
    files.keep("image/png", "QUJD")
    assert not kept[0].exists()
    assert not kept[1].exists()
    assert kept[2].exists()
    assert (tmp_path / "mine.txt").exists()


def test_an_image_is_a_data_url_and_nothing_else_is() -> None:
    assert image_url("image/png", "QUJD") == "data:image/png;base64,QUJD"
    assert image_url("audio/wav", "QUJD") == ""
