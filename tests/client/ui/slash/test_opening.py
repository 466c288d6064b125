"""/open, on a real memory; programs of the test play the pager, the editor and the viewer.

Covers `ragchat.ui.viewer`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from ragchat.memory.client import Mirror
from tests.client.ui.slash.test_table import Room, open_room
from tests.support.documents import archive, odt_members, pdf

pytestmark = pytest.mark.skipif(os.name == "nt", reason="scripts of POSIX play the programs")

FILLER = "\n".join(f"Line {number} is about nothing in particular." for number in range(30))


class Desk:
    """A chat at a terminal, with an editor, a pager and a viewer that note what they are given."""

    def __init__(self, room: Room, folder: Path) -> None:
        self.room = room
        self.folder = folder
        self._noted = folder / "noted"
        for name in ("vim", "less", "xdg-open"):
            self.add_program(name)

    def add_program(self, name: str, body: str = "") -> None:
        """A program that notes its name and arguments; a file that is in a temporary folder with its text."""
        script = self.folder / "bin" / name
        script.parent.mkdir(exist_ok=True)
        noted = f'for last; do :; done; {{ printf "%s|" {name} "$@"; case "$last" in *ragchat-open-*)'
        noted += f' printf "\\n"; ls -ld "${{last%/*}}" | cut -c1-10; cat "$last";; esac; }} > {self._noted}'
        script.write_text(f"#!/bin/sh\n{body or noted}\n", encoding="utf-8")
        script.chmod(0o755)

    async def open(self, argument: str) -> tuple[str, str]:
        """What /open shows, and what the program noted."""
        self._noted.unlink(missing_ok=True)
        shown = await self.room.say(f"/open {argument}")
        return shown, self._noted.read_text("utf-8") if self._noted.exists() else ""

    async def cite(self, name: str, content: bytes, question: str) -> None:
        (self.folder / name).write_bytes(content)
        await self.room.run(f"/inject {name}")
        shown = await self.room.say(question)
        assert f"[1] {name}" in shown


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("PAGER", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.setenv("VISUAL", "vim")
    async with open_room(tmp_path) as room:
        room.context.interactive = True
        yield Desk(room, tmp_path)


def parts(noted: str) -> tuple[str, str, list[str]]:
    """The line that a pager was given, the mode of the folder, and the lines of the file."""
    arguments, mode, *lines = noted.split("\n")
    name, line, _, _ = arguments.split("|")
    assert name == "less"
    return line.removeprefix("+"), mode, lines


async def test_a_citation_of_a_pdf_opens_its_text_at_the_place_and_leaves_nothing(desk: Desk) -> None:
    pages = [FILLER, f"{FILLER}\nThe crane lifts at most 12 tonnes.\n{FILLER}"]
    await desk.cite("crane.pdf", pdf(pages), "How much does the crane lift?")
    _, noted = await desk.open("1")
    line, mode, lines = parts(noted)
    assert mode == "drwx------"
    assert lines[0] == "crane.pdf p. 2"
    assert "12 tonnes" in lines[int(line) - 1]
    file = Path(noted.partition("\n")[0].split("|")[2])
    assert file.name == "crane.pdf p. 2.txt"
    assert not file.parent.exists()


async def test_a_card_of_several_places_opens_at_the_one_that_it_names(desk: Desk) -> None:
    texts = [f"# Rain\n\nWe fit a gamma distribution to the sums.\n\n{FILLER}"]
    texts += [f"## Wet days\n\nThe shape parameter of the gamma fit is 0.734.\n\n{FILLER}"]
    cells = [{"cell_type": "markdown", "source": text} for text in texts]
    await desk.cite(
        "rain.ipynb",
        json.dumps({"cells": cells, "nbformat": 4}).encode(),
        "What is the shape parameter of the gamma fit, and what do we fit to the sums?",
    )
    shown = await desk.room.run("/sources")
    assert "rain.ipynb cell 2" in shown
    _, noted = await desk.open("1")
    line, _, lines = parts(noted)
    assert lines[0] == "rain.ipynb cell 2"
    assert "0.734" in lines[int(line) - 1]


@pytest.mark.parametrize("name", ["page.html", "report.odt"])
async def test_a_citation_of_a_converted_text_opens_where_it_stands(desk: Desk, name: str) -> None:
    sentence = "Copper boils at 2,562 degrees."
    filler = "".join(f"<p>Paragraph {number}.</p>" for number in range(9))
    page = f"<title>Metals</title><h1>Metals</h1>{filler}<p>{sentence}</p>".encode()
    body = f"<text:p>Metals in brief.</text:p><text:p>{sentence}</text:p>"
    await desk.cite(
        name,
        page if name == "page.html" else archive(odt_members(body)),
        "At how many degrees does copper boil?",
    )
    _, noted = await desk.open("[1]")
    line, _, lines = parts(noted)
    assert lines[0].startswith(name)
    assert lines[int(line) - 1] == sentence


async def test_a_text_file_opens_in_the_editor_where_the_passage_is_now(desk: Desk) -> None:
    text = "# Boiler\n\nThe pressure of the boiler is 1.5 bar.\n"
    await desk.cite("flat.md", text.encode(), "What is the pressure of the boiler?")
    assert (await desk.open("1"))[1] == f"vim|+3|{desk.folder}/flat.md|"
    (desk.folder / "flat.md").write_text(f"# New\n\nAn introduction.\n\n{text}", "utf-8")
    assert (await desk.open("1"))[1] == f"vim|+7|{desk.folder}/flat.md|"


async def test_a_file_that_is_gone_or_changed_opens_as_memory_has_it(desk: Desk) -> None:
    sentence = "The pressure of the boiler is 1.5 bar."
    await desk.cite("flat.md", f"# Boiler\n\n{sentence}\n".encode(), "What is the pressure of the boiler?")
    (desk.folder / "flat.md").write_text("# Boiler\n\nSold.\n", "utf-8")
    shown, noted = await desk.open("1")
    assert "flat.md does not hold the passage as memory has it." in shown
    line, _, lines = parts(noted)
    assert (lines[0], lines[int(line) - 1]) == ("flat.md:3", sentence)
    (desk.folder / "flat.md").unlink()
    assert "flat.md no longer exists." in (await desk.open("1"))[0]
    assert "no longer exists" in (await desk.open("1 --original"))[0]
    (desk.folder / "flat.md").write_text("# Boiler\n\nThat of this machine.\n", "utf-8")
    with closing(sqlite3.connect(next(desk.folder.rglob("memory.db")))) as memory, memory:
        memory.execute("UPDATE documents SET machine = 'annes-laptop-3f9a12c4'")
    assert "flat.md is on annes-laptop-3f9a12c4." in (await desk.open("1"))[0]
    assert "flat.md is on annes-laptop-3f9a12c4" in (await desk.open("1 --original"))[0]
    # It was uploaded from here, to a server on another machine.
    memory_client = desk.room.context.memory
    memory_client.mirror = Mirror(memory_client, "annes-laptop-3f9a12c4", Path("mirror.db"))
    assert "flat.md does not hold the passage as memory has it." in (await desk.open("1"))[0]
    await desk.room.run("/forget flat.md")
    shown, noted = await desk.open("1")
    assert "Memory does not have this passage now" in shown
    line, _, lines = parts(noted)
    assert lines[int(line) - 1] == sentence


async def test_a_web_page_opens_in_the_browser(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        return len(opened) == 1

    monkeypatch.setattr("webbrowser.open", browse)
    address = "https://example.org/crane?q=1"
    await desk.room.context.memory.inject("The crane lifts at most 12 tonnes.", {"uri": address})
    assert f"[1] {address}" in await desk.room.say("How much does the crane lift?")
    assert f"Opening {address} in the browser." in (await desk.open("1"))[0]
    shown, noted = await desk.open("1")
    assert f"No browser opens {address} here." in shown
    assert "12 tonnes" in noted
    assert opened == [address, address]


async def test_a_document_that_is_not_a_file_opens_in_the_pager(desk: Desk) -> None:
    text = "# Tea\n\nGreen tea is brewed at 75 degrees.\n\n\x1b[2J\n"
    await desk.room.context.memory.inject(text, {"uri": "note:tea"})
    await desk.room.say("How hot is green tea brewed?")
    line, _, lines = parts((await desk.open("1"))[1])
    assert lines[0].startswith("note:tea:3")
    assert lines[int(line) - 1] == "Green tea is brewed at 75 degrees."
    assert lines[int(line) + 1] == "␛[2J"
    assert "note:tea is not a file on this machine" in (await desk.open("--original 1"))[0]


async def test_the_original_opens_in_the_viewer_a_pdf_at_its_page(desk: Desk) -> None:
    await desk.cite("crane.pdf", pdf(["Nothing.", "The crane lifts 12 tonnes."]), "What does the crane lift?")
    desk.add_program("xdg-mime", "echo org.gnome.Evince.desktop")
    desk.add_program("evince")
    assert (await desk.open("1 --original"))[1] == f"evince|--page-index=2|{desk.folder}/crane.pdf|"
    desk.add_program("xdg-mime", "echo google-chrome.desktop")
    desk.add_program("google-chrome")
    page = f"google-chrome|{(desk.folder / 'crane.pdf').as_uri()}#page=2|"
    assert (await desk.open("--original"))[1] == page
    desk.add_program("xdg-mime", "echo other.desktop")
    assert (await desk.open("1 --original"))[1] == f"xdg-open|{desk.folder}/crane.pdf|"


async def test_a_viewer_that_fails_and_a_missing_display_are_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.cite("page.html", b"<p>Copper boils at 2,562 degrees.</p>", "Where does copper boil?")
    desk.add_program("xdg-open", "exit 3")
    shown, _ = await desk.open("1 --original")
    assert "xdg-open did not open page.html: it ended with the exit code 3" in shown
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert "there is no display here" in (await desk.open("1 --original"))[0]


async def test_memory_cannot_name_a_program_that_the_viewer_would_run(desk: Desk) -> None:
    program = desk.folder / "tool.desktop"
    program.write_text("[Desktop Entry]\n", "utf-8")
    text = "Green tea is brewed at 75 degrees.\n"
    await desk.room.context.memory.inject(text, {"uri": program.as_uri(), "media_type": "text/markdown"})
    await desk.room.say("How hot is green tea brewed?")
    shown, noted = await desk.open("1 --original")
    assert "tool.desktop is not of a kind that is opened in a viewer" in shown
    assert not noted


async def test_an_editor_that_is_not_known_is_named_with_the_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.cite("flat.md", b"# Boiler\n\nThe pressure is 1.5 bar.\n", "What is the pressure?")
    monkeypatch.setenv("VISUAL", "myeditor")
    assert "myeditor cannot be started" in (await desk.open("1"))[0]
    desk.add_program("myeditor")
    shown, noted = await desk.open("1")
    assert "The place is line 3. How myeditor takes a line is not known here" in shown
    assert noted == f"myeditor|{desk.folder}/flat.md|"
    desk.room.context.conversation.settings.tables["open"]["editor"] = "myeditor --at {path}:{line}"
    assert (await desk.open("1"))[1] == f"myeditor|--at|{desk.folder}/flat.md:3|"
    desk.room.context.conversation.settings.tables["open"]["editor"] = ""
    monkeypatch.delenv("VISUAL")
    assert (await desk.open("1"))[1] == f"less|+3|{desk.folder}/flat.md|"


async def test_an_unknown_option_is_named(desk: Desk) -> None:
    await desk.cite("tea.md", b"# Tea\n\nGreen tea is brewed at 75 degrees.\n", "How hot is green tea?")
    for argument in ("1 --orignal", "--orignal"):
        shown, _ = await desk.open(argument)
        assert "/open takes no option --orignal; --original opens the file itself" in " ".join(shown.split())
