"""`ragchat inject` of one file of each format, and answers that cite their places."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.documents import archive, epub_members, odt_members, pdf, xls
from tests.support.program import program_in

for name in ("selectolax", "pypdfium2", "docx", "pptx", "openpyxl"):
    pytest.importorskip(name, reason="the extras `pdf` and `office` are not installed")

MAIL = "From: Ada <ada@example.org>\nTo: Bob <bob@example.org>\nSubject: {0}\n\n{1}\n"


def saved(document: object) -> bytes:
    buffer = BytesIO()
    document.save(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()


def word() -> bytes:
    import docx

    document = docx.Document()
    document.add_heading("The lighthouse", 1)
    document.add_paragraph("The lighthouse keeper is called Wendel.")
    return saved(document)


def slides() -> bytes:
    import pptx

    presentation = pptx.Presentation()
    for title, text in (
        ("Boats", "The ferry is painted orange."),
        ("Trains", "The tram runs every 12 minutes."),
    ):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    return saved(presentation)


def workbook() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Costs"
    for row in (["Item", "Price in euros"], ["Kettle", 41], ["Teapot", 57]):
        book.active.append(row)
    book.create_sheet("Audit")["B7"] = "The auditor visits on 12 October."
    return saved(book)


def library(folder: Path) -> Path:
    """A folder with one file of each format."""
    files: dict[str, str | bytes] = {
        "thesis.pdf": pdf(["Bees live in hives.", "", "The oldest oak of Arden was planted in 1612."]),
        "lighthouse.docx": word(),
        "transport.pptx": slides(),
        "kitchen.xlsx": workbook(),
        "glacier.odt": archive(odt_members("<text:p>The Vernagt glacier lost 23 metres last year.</text:p>")),
        "coal.xls": xls({"1998": [["Pit", "Tonnes"], ["Zollern", 48_211.0]]}),
        "novel.epub": archive(
            epub_members("A novel", ["<p>It was night.", "<p>Captain Morra sailed to Lisbon on a Tuesday."])
        ),
        "page.html": "<nav>Home</nav><main><h1>Bakery</h1><p>The bakery in Elm Street opens at 5:30.</main>",
        "study.ipynb": json.dumps(
            {"cells": [{"cell_type": "markdown", "source": "The seismometer was calibrated in March."}]}
        ),
        "letter.eml": MAIL.format("Party", "The party for Grandmother begins at 7:30 on Saturday."),
        "box.mbox": "From a b\n"
        + MAIL.format("Rent", "The rent is due on Friday.")
        + "\nFrom a b\n"
        + MAIL.format("Piano", "The piano tuner is named Osgood."),
        "film.srt": "1\n00:10:05,000 --> 00:10:09,000\nThe treasure is under the mill.\n",
        "birds.rst": "Birds\n=====\n\nThe heron\n---------\n\nMira feeds the heron.\n",
        "people.json": json.dumps(
            [{"name": f"Mr. {n}", "phone": f"555-{n:04}"} for n in range(40)]
            + [{"name": "Otto Lind", "phone": "555-0192"}]
        ),
        "data.json": "".join(
            json.dumps({"date": "2026-05-03T10:42:00", "sender": sender, "body": body}) + "\n"
            for sender, body in (("Ben", "Hi Ada!"), ("Ada", "I left the ladder behind the greenhouse."))
        ),
        "board.canvas": json.dumps(
            {"nodes": [{"text": "Shopping"}, {"text": "# Moving\nThe removal firm is Harrow & Sons."}]}
        ),
        "bookmarks.html": "<!DOCTYPE NETSCAPE-Bookmark-file-1><H1>Bookmarks</H1><DL><p>"
        "<DT><H3>Travel</H3><DL><p>"
        '<DT><A HREF="https://www.seat61.com/">Sleeper trains in Europe</A></DL><p></DL><p>',
        "notes.enex": "<en-export><note><title>Garden</title><content><![CDATA[<en-note>"
        "<div>The gate code is 4471.</div></en-note>]]></content></note></en-export>",
        "year.ics": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Chimney sweep\nDTSTART;VALUE=DATE:20250304\n"
        "END:VEVENT\nBEGIN:VEVENT\nSUMMARY:Choir\nDTSTART:20250305T180000Z\nEND:VEVENT\nEND:VCALENDAR\n",
        "people.vcf": "BEGIN:VCARD\nFN:Viktor Kessler\nTEL:555-0199\nEND:VCARD\n"
        "BEGIN:VCARD\nFN:Trude Brandner\nBDAY:1937-08-18\nEND:VCARD\n",
        "tide.txt": "The tide turns at 6:40.\n".encode("utf-16"),
        "old.doc": b"\xd0\xcf\x11\xe0",
        "broken.pdf": b"%PDF-1.4 and then nothing",
        "notes.md": "# Notes\n\nThe spare key hangs behind the clock.\n",
    }
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_one_file_of_each_format_is_loaded_and_cited_by_its_place(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    loaded = ragchat("inject", str(library(tmp_path / "library")), "--json")
    outcomes = {one["uri"].rpartition("/")[2]: one for one in loaded.json["documents"]}
    assert {name: one["status"] for name, one in outcomes.items() if one["status"] != "added"} == {}
    assert len(outcomes) == 22
    assert {one["path"].rpartition("/")[2]: one["reason"] for one in loaded.json["skipped"]} == {
        "broken.pdf": "is a damaged PDF file, or not one at all",
        "old.doc": "is in a format that is not read: save it as .docx",
    }
    [note] = loaded.json["notes"]
    assert note.endswith("thesis.pdf has no text on p. 2, which may be scanned.")

    for question, location in {
        "When was the oldest oak of Arden planted?": "thesis.pdf p. 3",
        "What is the lighthouse keeper called?": "lighthouse.docx The lighthouse ¶ 1",
        "How often does the tram run?": "transport.pptx slide 2",
        "What is the price of the teapot?": "kitchen.xlsx sheet Costs row 3",
        "When does the auditor visit?": "kitchen.xlsx sheet Audit B7",
        "Who feeds the heron?": "birds.rst:7",
        "Which phone number does Otto Lind have?": "people.json record 41",
        "Where did Ada leave the ladder?": "data.json message 2",
        "Who is the removal firm?": "board.canvas record 2",
        "Which bookmark is about sleeper trains?": "bookmarks.html Bookmarks > Travel ¶ 1",
        "What is the gate code of the garden?": "notes.enex note 1",
        "When does the chimney sweep come?": "year.ics record 1",
        "When is the birthday of Trude Brandner?": "people.vcf record 2",
        "When does the tide turn?": "tide.txt:1",
        "How many metres did the Vernagt glacier lose?": "glacier.odt ¶ 1",
        "How many tonnes came from Zollern?": "coal.xls sheet 1998 row 2",
        "When did Captain Morra sail to Lisbon?": "novel.epub ¶ 2",
        "When does the bakery in Elm Street open?": "page.html Bakery ¶ 1",
        "When was the seismometer calibrated?": "study.ipynb cell 1",
        "When does the party for Grandmother begin?": "letter.eml ¶ 1",
        "Who is the piano tuner?": "box.mbox message 2 ¶ 1",
        "Where is the treasure?": "film.srt at 0:10:05",
        "Where does the spare key hang?": "notes.md:3",
    }.items():
        answer = ragchat("ask", question, "--offline", "--json").json
        assert [one["location"] for one in answer["citations"]][:1] == [location], (question, answer)


def test_the_terminal_and_exports_name_the_page(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    paper = tmp_path / "thesis.pdf"
    paper.write_bytes(pdf(["Bees live in hives.", "The oldest oak of Arden was planted in 1612."]))
    assert ragchat("inject", str(paper)).code == 0
    question = "When was the oldest oak of Arden planted?"
    assert "thesis.pdf p. 2" in ragchat("ask", question, "--offline").out
    assert "thesis.pdf p. 1–2" in ragchat("query", "oak").out
    [session] = ragchat("session", "ls", "--json").json["sessions"]
    assert "thesis.pdf>, p. 2\n" in ragchat("session", "export", session["session_id"]).out
    exported = ragchat("session", "export", session["session_id"], "--json").json
    assert exported["turns"][0]["citations"][0]["location"] == "thesis.pdf p. 2"
