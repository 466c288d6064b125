"""Notes without what the programs that wrote them keep there for themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcommon.files.decoding import EmptyText
from ragmemory.files.formats import bundles
from ragmemory.files.formats.text import read
from tests.support.documents import archive

ID = "0f8c2b7e4d1a4c6fb5a9d3e2c1b0a998"
RECORD = (
    f"id: {ID}\nparent_id: {ID}\ncreated_time: 2024-01-06T12:34:33.720Z\nis_conflict: 0\nauthor: \n"
    "source: joplin-desktop\ntype_: "
)


def test_a_note_of_joplin_has_its_title_and_text_without_the_record() -> None:
    note = f"Pond\n\nThe pump is off in winter.\n\n{RECORD}1"
    found = read(Path(f"{ID}.md"), note.encode())
    assert (found.title, found.text.rstrip()) == ("Pond", "# Pond\n\nThe pump is off in winter.")
    assert found.text.count("\n") == note.count("\n")


@pytest.mark.parametrize("record", [f"Garden\n\n{RECORD}2", f"garden\n\n{RECORD}5", f"{RECORD}6"])
def test_records_of_joplin_that_are_no_notes_are_empty(record: str) -> None:
    with pytest.raises(EmptyText, match="is a record of Joplin"):
        read(Path(f"{ID}.md"), record.encode())


@pytest.mark.parametrize("body", ["---\ntags: x\n---\nDeep.", "# Pond\n\nDeep.", "\n\nDeep."])
def test_only_a_plain_first_line_of_a_note_of_joplin_becomes_its_heading(body: str) -> None:
    found = read(Path(f"{ID}.md"), f"{body}\n\n{RECORD}1".encode())
    assert found.text.rstrip() == body
    assert found.title in ("Pond", f"{ID}.md")


def test_an_archive_of_joplin_has_its_notes_below_their_titles() -> None:
    files = {f"{ID}.md": f"Pond\n\nDeep.\n\n{RECORD}1", "b.md": f"Garden\n\n{RECORD}2"}
    found = bundles.read(Path("notes.jex"), archive(files))
    assert found.text == "# Pond\n\n## Pond\n\nDeep.\n"
    assert (found.places, found.note) == ([(1, "Pond")], "")


@pytest.mark.parametrize("title", ["Upgrade to Node 18.2", "todo.csv"])
def test_a_title_of_joplin_says_nothing_about_the_kind_of_a_note(title: str) -> None:
    found = bundles.read(Path("notes.jex"), archive({f"{ID}.md": f"{title}\n\na,b\n1,2\n\n{RECORD}1"}))
    assert found.text == f"# {title}\n\n## {title}\n\na,b\n1,2\n"


def test_notes_of_joplin_without_a_title_of_their_own_are_called_by_their_files() -> None:
    other = ID[::-1]
    files = {f"{ID}.md": f"Pond\n\nDeep.\n\n{RECORD}1", f"{other}.md": f"Pond\n\nDry.\n\n{RECORD}1"}
    found = bundles.read(Path("notes.jex"), archive(files))
    assert [place for _, place in found.places] == ["Pond", f"{other}.md"]
    found = bundles.read(Path("notes.jex"), archive({f"{ID}.md": f"\n\nDeep.\n\n{RECORD}1"}))
    assert found.text == f"# {ID}.md\n\nDeep.\n"


def test_pages_of_notion_in_an_archive_that_have_one_name_keep_their_identifiers() -> None:
    other = ID[::-1]
    files = {f"Rules {ID}.md": "Bins.\n", f"Rules {other}.md": "Pets.\n"}
    found = bundles.read(Path("Export.zip"), archive(files))
    assert [place for _, place in found.places] == ["Rules.md", f"Rules {other}.md"]


def test_an_archive_of_notion_has_the_names_of_its_pages_without_identifiers() -> None:
    found = bundles.read(Path("Export.zip"), archive({f"Flat {ID}/Rules {ID}.md": "Bins on Tuesday.\n"}))
    assert (found.text, found.places) == ("# Flat/Rules.md\n\nBins on Tuesday.\n", [(1, "Flat/Rules.md")])


@pytest.mark.parametrize(
    "text",
    [
        *(RECORD + "1 is the end of it", f"id: {ID}\ntype_: unknown", "type_: 1"),
        f"# Records of Joplin\n\nThey end so:\n\nid: {ID}\nparent_id: 5\ntype_: 2",
    ],
)
def test_a_text_like_a_record_of_joplin_stays(text: str) -> None:
    assert read(Path("a.md"), text.encode()).text == text


def test_a_drawing_of_excalidraw_has_its_texts_alone() -> None:
    top = "---\nexcalidraw-plugin: parsed\n---\n"
    drawing = (
        "==⚠  Switch to EXCALIDRAW VIEW. ⚠==\n\n# Excalidraw Data\n\n## Text Elements\nband saw ^Xk2mQ9aB\n\n"
        "%%\n## Drawing\n```compressed-json\nN4KAkARALgngDgUwgLgAQQQDwMYEMA\n```\n%%\n"
    )
    found = read(Path("Shed.excalidraw.md"), f"{top}{drawing}".encode())
    assert (found.title, found.text.split("---\n")[2].strip()) == ("Shed.excalidraw.md", "band saw")
    assert found.text.count("\n") == f"{top}{drawing}".count("\n")
    assert read(Path("a.md"), drawing.encode()).text == drawing


def test_properties_of_blocks_that_logseq_writes_are_blank_lines() -> None:
    outline = (
        "- Hive A\n  id:: 6f336f77-63ed-d7d6-2298-6bc69ae178e1\n  collapsed:: true\n\t- queen:: yellow\n"
        "- DONE acid\n  :LOGBOOK:\n  CLOCK: [2023-12-27 Wed 11:02:10]\n  :END:\n- id:: mine\n"
    )
    found = read(Path("Bees.md"), outline.encode()).text
    assert found == "- Hive A\n\n\n\t- queen:: yellow\n- DONE acid\n\n\n\n- id:: mine\n"
    marked = "- Wax\n  ls-type:: annotation\n  hl-page:: 4\n  hl-color:: yellow\n  hl-stamp:: 1688157093843\n"
    assert read(Path("hls__wax.md"), marked.encode()).text == "- Wax\n\n  hl-page:: 4\n\n\n"
    clock = "- TODO order\n\t:LOGBOOK:\n\tCLOCK: [2024-05-03 Fri 09:15:02]\n\t:END:\n"
    assert read(Path("2024_05_03.md"), clock.encode()).text == "- TODO order\n\n\n\n"
    assert read(Path("bees.txt"), outline.encode()).text == outline


def test_what_logseq_notion_and_joplin_would_write_stays_in_code() -> None:
    kept = f"  id:: 6f336f77-63ed-d7d6-2298-6bc69ae178e1\n  collapsed:: true\n  [Pond](:/{ID})\n"
    text = f"- Blocks of Logseq:\n  ```yaml\n{kept}  ```\n- ~~~\n{kept}  ~~~\n- a link, `[Pond](:/{ID})`\n"
    assert read(Path("a.md"), text.encode()).text == text
    assert read(Path("a.md"), f"{text}\n[Pond](:/{ID})\n".encode()).text == f"{text}\n[Pond]\n"
    card = "- card\n  background-color:: red\n  collapsed:: partly\n"
    assert read(Path("a.md"), card.encode()).text == card


@pytest.mark.parametrize("address", [f"file:///home/a%20{ID}.md", f"ftp://example.org/a%20{ID}"])
def test_a_link_with_a_scheme_keeps_its_address(address: str) -> None:
    assert read(Path("a.md"), f"[a]({address})\n".encode()).text == f"[a]({address})\n"


def test_links_of_joplin_and_notion_to_their_own_notes_keep_their_names() -> None:
    assert read(Path("a.md"), f"[Pond](:/{ID}) ![plan](:/{ID}#p2)\n".encode()).text == "[Pond] ![plan]\n"
    text = f"[Rules](Flat%20{ID}/Rules%20{ID}.md), [site](https://example.org/a%20{ID}), [b](b%20c.md)\n"
    shown = f"[Rules], [site](https://example.org/a%20{ID}), [b](b%20c.md)\n"
    assert read(Path("a.md"), text.encode()).text == shown


def test_elements_for_styles_and_anchors_are_left_out_but_not_of_code() -> None:
    text = '<a id="a"></a>\n1. <span class="x" id="1">Kites</span> <font color=red>fly</font>, `<span>` not\n'
    text += "\\<span> neither\n"
    shown = "\n1. Kites fly, `<span>` not\n\\<span> neither\n"
    assert read(Path("a.md"), text.encode()).text == shown
    assert read(Path("a.html.txt"), text.encode()).text == text
    kept = 'See <a href="#a">this</a>.\n'
    assert read(Path("a.md"), kept.encode()).text == kept
