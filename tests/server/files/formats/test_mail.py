"""E-mail: messages and mailboxes."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from ragconfig.files.decoding import NotText
from ragmemory.files.formats.mail import LONGEST_HEADER, read


def message(subject: str, body: str, html: str = "", attachment: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "Ada <ada@example.org>"
    mail["To"] = "Bob <bob@example.org>"
    mail["Date"] = "Sun, 22 Nov 2026 10:00:00 +0000"
    mail["Subject"] = subject
    if body:
        mail.set_content(body)
    if html:
        mail.add_alternative(html, subtype="html") if body else mail.set_content(html, subtype="html")
    if attachment:
        mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename=attachment)
    return mail


HEAD = (
    "From: Ada <ada@example.org>\nTo: Bob <bob@example.org>\nDate: Sun, 22 Nov 2026 10:00:00 +0000\n"
    "Subject: {}\n\n"
)


def test_a_message_has_its_headers_its_body_and_the_names_of_attachments() -> None:
    data = bytes(message("Grüße", "The büro is closed.\n", "<p>no", "plan.pdf"))
    found = read(Path("a.eml"), data)
    assert found.text == HEAD.format("Grüße") + "The büro is closed.\n\nAttachments: plan.pdf\n"
    assert found.title == "Grüße"


def test_a_header_is_cut_off_before_it_takes_long_to_read() -> None:
    words = "word " * 20_000
    found = read(Path("a.eml"), f"Subject: {words}\nTo: Bob <bob@example.org>\n\nHello.\n".encode())
    assert found.title == words[:LONGEST_HEADER].strip()
    assert found.text.endswith("Hello.\n")


def test_a_body_of_html_alone_is_read_as_text() -> None:
    pytest.importorskip("selectolax", reason="selectolax is not installed")
    data = bytes(message("News", "", "<h1>Tea</h1><p>is <b>hot</b>.</p>"))
    assert read(Path("a.eml"), data).text == HEAD.format("News") + "# Tea\n\nis hot.\n"


def test_the_places_of_a_mailbox_are_its_messages() -> None:
    first, second = bytes(message("One", "First.\n\n>From here on.\n")), bytes(message("Two", "Second.\n"))
    box = b"From ada Sun Nov 22 10:00:00 2026\n" + first + b"\nFrom ada Sun Nov 22 11:00:00 2026\n" + second
    found = read(Path("a.mbox"), box)
    lines = found.text.split("\n")
    assert [(lines[line - 1], label) for line, label in found.places] == [
        ("# One", "message 1"),
        ("# Two", "message 2"),
    ]
    assert "\n\nFrom here on.\n\n# Two\n\n" in found.text
    assert "Second." in found.text


@pytest.mark.parametrize(
    "data",
    [
        b"Subject: =?utf-8?b?!!?=\nDate: nonsense\nContent-Type: text/plain; charset=nothing\n\nhello",
        b"Subject: x\nContent-Type: multipart/mixed\n\nhello",
        b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhello",
    ],
)
def test_a_malformed_message_is_read_as_far_as_possible(data: bytes) -> None:
    assert read(Path("a.eml"), data).text.strip()


@pytest.mark.parametrize("name", ["a.eml", "a.mbox"])
def test_a_file_without_messages_is_refused(name: str) -> None:
    with pytest.raises(NotText, match="is a damaged"):
        read(Path(name), b"no message")
