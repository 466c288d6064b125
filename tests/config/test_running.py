"""The notes of running servers, and bearer tokens."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ragconfig.errors import SettingsError
from ragconfig.running import Note, find_note, find_token, kept, make_note, note_of
from ragconfig.settings import Settings, load_settings

URL = "http://127.0.0.1:8765"


def settings_in(folder: Path, **flags: object) -> Settings:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return load_settings(None, dotted, {"RAGCHAT_HOME": str(folder)}, folder)


def test_a_note_is_found_while_it_is_kept_and_is_private(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    note = make_note(URL, settings, "1")
    with kept(note, settings.home):
        assert find_note(settings, "1") == note_of(URL, settings.home) == note
        [file] = (tmp_path / "state" / "servers").iterdir()
        if sys.platform != "win32":
            assert file.stat().st_mode & 0o777 == 0o600
            assert file.parent.stat().st_mode & 0o777 == 0o700
    assert find_note(settings, "1") is note_of(URL, settings.home) is None
    assert not file.exists()


def test_a_server_of_another_memory_version_or_embedder_is_not_ours(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with kept(make_note(URL, settings, "1"), settings.home):
        assert find_note(settings, "1")
        assert find_note(settings, "2") is None
        assert find_note(settings_in(tmp_path, memory__path=str(tmp_path / "other.db")), "1") is None
        assert find_note(settings_in(tmp_path, embedder__kind="openai"), "1") is None
        assert find_note(settings_in(tmp_path, memory__read_only=True), "1") is None
        # What only concerns other programs, or the chat, makes no difference.
        assert find_note(settings_in(tmp_path, memory__toolsets=["search"], retrieval__top_k=3), "1")


def test_a_server_that_ends_leaves_the_note_of_a_later_one(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    first, second = make_note(URL, settings, "1"), make_note("http://127.0.0.1:8766", settings, "1")
    with kept(second, settings.home):
        with kept(first, settings.home), kept(second, settings.home):
            pass
        with kept(first, settings.home):
            later = kept(second, settings.home)
            later.__enter__()
        assert find_note(settings, "1") == second


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"url": 1}', b"x" * 20_000])
def test_a_broken_note_is_none(tmp_path: Path, content: bytes) -> None:
    settings = settings_in(tmp_path)
    with kept(make_note(URL, settings, "1"), settings.home):
        [file] = (tmp_path / "state" / "servers").iterdir()
        file.write_bytes(content)
        assert find_note(settings, "1") is note_of(URL, settings.home) is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_a_note_that_others_may_write_is_none(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with kept(make_note(URL, settings, "1"), settings.home):
        [file] = (tmp_path / "state" / "servers").iterdir()
        file.chmod(0o620)
        assert find_note(settings, "1") is None


def test_a_disk_that_cannot_be_written_does_not_stop_the_server(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "state").write_text("a file", "utf-8")
    with kept(make_note(URL, settings, "1"), settings.home):
        assert find_note(settings, "1") is None


def test_only_the_key_and_the_memory_together_prove_a_server() -> None:
    note = Note(URL, "/m.db", "", "key")
    assert note.proves("challenge", note.proof("challenge"))
    assert not note.proves("another", note.proof("challenge"))
    assert not note.proves("challenge", Note(URL, "/m.db", "", "other").proof("challenge"))
    assert not note.proves("challenge", Note(URL, "/other.db", "", "key").proof("challenge"))
    assert not note.proves("challenge", "é")


def test_a_token_comes_from_its_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAGMEMORY_TOKEN", raising=False)
    assert find_token("") is None
    monkeypatch.setenv("RAGMEMORY_TOKEN", "secret")
    assert find_token("") == "secret"
    file = tmp_path / "token"
    file.write_text("two words\n", "utf-8")
    file.chmod(0o600)
    with pytest.raises(SettingsError, match="There is no bearer token in the file"):
        find_token(str(file))
