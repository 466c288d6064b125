"""URIs of documents: what a user may write, and what is shown.

Covers `ragcommon.files.uris` too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragchat.uris import absolute_scope, name_globs, path_globs, references, short_location, short_uri


def test_a_document_may_be_named_by_its_id_its_uri_or_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a b.md"
    assert references(str(path)) == (str(path), path.resolve().as_uri())
    assert references("~nobody-has-this-name/x") == ("~nobody-has-this-name/x",)


def test_a_file_below_the_working_folder_is_shown_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my notes" / "ä.md"
    assert short_uri(path.as_uri()) == "my notes/ä.md"
    assert short_location(path.as_uri(), [(3, 9)]) == "my notes/ä.md:3–9"
    assert short_location(path.as_uri(), [(3, 3)]) == "my notes/ä.md:3"


def test_a_file_below_home_begins_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert short_uri((tmp_path / "notes.md").as_uri()) == "~/notes.md"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete a working folder")
def test_a_working_folder_that_was_deleted_shortens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert short_uri((tmp_path / "notes.md").as_uri()) == str(tmp_path / "notes.md")


def test_the_working_folder_has_its_whole_path_and_home_is_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path / "notes")
    assert short_uri(tmp_path.as_uri()) == "~"
    assert short_uri((tmp_path / "notes").as_uri()) == str(tmp_path / "notes")


def test_other_uris_stay_as_they_are_and_a_bare_hash_goes_by_its_title() -> None:
    assert short_uri("https://example.org/a b") == "https://example.org/a b"
    assert short_uri("sha256:" + "ab" * 32, "A letter") == "A letter"
    assert short_uri("sha256:" + "ab" * 32) == "sha256:abababababab"
    assert "\x1b" not in short_uri("note:\x1b[2J")


def test_a_text_that_only_begins_like_the_uri_of_a_file_is_shown_as_it_is() -> None:
    assert short_uri("file://[x/notes.md") == "file://[x/notes.md"


def test_what_a_model_wrote_is_named_so() -> None:
    assert short_location("ragchat:session/ab12", [(3, 9)]) == "chat with ragchat, ragchat:session/ab12:3–9"
    assert short_location("ragchat:report/ab12", [(3, 3)]) == "report by a model, ragchat:report/ab12:3"


def test_a_path_that_exists_does_not_depend_on_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    assert absolute_scope("papers") == str(tmp_path / "papers")
    assert absolute_scope("papers/*.md") == f"{tmp_path}/papers/*.md"
    for words in ("*.md", "a-tag", "file:///x/*", "~nobody-here/x", "a\0b"):
        assert absolute_scope(words) == words


def test_a_glob_has_the_bytes_of_a_file_name_as_its_uri_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "win32":
        assert name_globs("a\udcff.md") == ["*/[Aa]%FF.[Mm][Dd]"]
    # On Windows names are UTF-16, in which any surrogate may be alone.
    monkeypatch.setattr(os, "fsencode", lambda name: name.encode("utf-8", "surrogatepass"))
    assert path_globs("\ud800/*.md")[-1] == "*/%ED%A0%80/*.md"
