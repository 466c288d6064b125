"""The notes of running servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ragcommon.server_note import Note, find_note, kept, make_note, note_of

URL = "http://127.0.0.1:8765"


def note_in(folder: Path, url: str = URL, settings: str = "their hash") -> Note:
    """A new note of the memory in a folder."""
    return make_note(url, folder / "m.db", settings)


def found_in(folder: Path, settings: str = "their hash") -> Note | None:
    return find_note(folder / "m.db", settings, folder / "state")


def test_a_note_is_found_while_it_is_kept_and_is_private(tmp_path: Path) -> None:
    note, state = note_in(tmp_path), tmp_path / "state"
    with kept(note, state):
        assert found_in(tmp_path) == note_of(URL, state) == note
        [file] = (state / "servers").iterdir()
        if sys.platform != "win32":
            assert file.stat().st_mode & 0o777 == 0o600
            assert file.parent.stat().st_mode & 0o777 == 0o700
    assert found_in(tmp_path) is note_of(URL, state) is None
    assert not file.exists()


def test_a_server_of_another_memory_or_with_other_settings_is_not_ours(tmp_path: Path) -> None:
    with kept(note_in(tmp_path), tmp_path / "state"):
        assert found_in(tmp_path)
        assert found_in(tmp_path, "another hash") is None
        assert find_note(tmp_path / "other.db", "their hash", tmp_path / "state") is None


def test_a_server_that_ends_leaves_the_note_of_a_later_one(tmp_path: Path) -> None:
    first, second, state = note_in(tmp_path), note_in(tmp_path, "http://127.0.0.1:8766"), tmp_path / "state"
    with kept(second, state):
        with kept(first, state), kept(second, state):
            pass
        with kept(first, state):
            later = kept(second, state)
            later.__enter__()
        assert found_in(tmp_path) == second


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"url": 1}', b"x" * 20_000])
def test_a_broken_note_is_none(tmp_path: Path, content: bytes) -> None:
    with kept(note_in(tmp_path), tmp_path / "state"):
        [file] = (tmp_path / "state" / "servers").iterdir()
        file.write_bytes(content)
        assert found_in(tmp_path) is note_of(URL, tmp_path / "state") is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_a_note_that_others_may_write_is_none(tmp_path: Path) -> None:
    with kept(note_in(tmp_path), tmp_path / "state"):
        [file] = (tmp_path / "state" / "servers").iterdir()
        file.chmod(0o620)
        assert found_in(tmp_path) is None


def test_a_disk_that_cannot_be_written_does_not_stop_the_server(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file", "utf-8")
    with kept(note_in(tmp_path), tmp_path / "state"):
        assert found_in(tmp_path) is None


def test_only_the_key_and_the_memory_together_prove_a_server() -> None:
    note = Note(URL, "/m.db", "", "key")
    assert note.proves("challenge", note.proof("challenge"))
    assert not note.proves("another", note.proof("challenge"))
    assert not note.proves("challenge", Note(URL, "/m.db", "", "other").proof("challenge"))
    assert not note.proves("challenge", Note(URL, "/other.db", "", "key").proof("challenge"))
    assert not note.proves("challenge", "é")
