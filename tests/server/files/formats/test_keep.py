"""Notes of Google Keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragcommon.files.decoding import EmptyText
from ragmemory.files.formats.detection import read

NOTE = {
    **{"color": "DEFAULT", "isTrashed": False, "isPinned": False, "title": "Cottage"},
    **{"textContentHtml": '<p dir="ltr">x</p>', "userEditedTimestampUsec": 1690866308447000},
}


def noted(**values: object) -> bytes:
    return json.dumps({**NOTE, **values}).encode()


def test_a_note_has_its_title_and_text_without_its_state() -> None:
    found = read(Path("Cottage.json"), noted(textContent="Seal-Rock\n# 9", labels=[{"name": "wifi"}]))
    assert (found.title, found.text, found.tags) == ("Cottage", "# Cottage\n\nSeal-Rock\n    # 9\n", ["wifi"])


def test_a_list_has_its_items_as_tasks() -> None:
    items = [
        {"text": "gas", "isChecked": True},
        {"text": "tea", "textHtml": "<p>tea</p>", "isChecked": False},
    ]
    assert read(Path("a.json"), noted(title="", listContent=items)).text == "- [x] gas\n- [ ] tea\n"


def test_the_links_that_are_saved_with_a_note_have_their_titles_and_addresses() -> None:
    link = {"description": "", "source": "WEBLINK", "title": "Ferry times", "url": "https://example.org/f"}
    found = read(Path("a.json"), noted(textContent=None, annotations=[link, {"url": "https://example.org"}]))
    assert found.text == "# Cottage\n\n- Ferry times https://example.org/f\n- https://example.org\n"


def test_a_note_in_the_trash_is_not_read() -> None:
    with pytest.raises(EmptyText, match="is in the trash of Google Keep"):
        read(Path("a.json"), noted(isTrashed=True, textContent="old"))


def test_a_list_of_notes_that_another_program_wrote_is_read_record_by_record() -> None:
    found = read(Path("a.json"), b"[" + noted(textContent="one") + b"," + noted(textContent="two") + b"]")
    assert [place for _, place in found.places] == ["record 1", "record 2"]
