"""E-mail: messages and mailboxes."""

from __future__ import annotations

import tracemalloc
from email.message import EmailMessage
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats import detection, mail
from ragmemory.files.formats import file_text as limits
from ragmemory.files.formats.mail import MAX_HEADER, read
from ragmemory.ingest.blocks import markdown_blocks


def message(
    subject: str, body: str, html: str = "", attachment: str = "", content: bytes = b"%PDF"
) -> EmailMessage:
    one = EmailMessage()
    one["From"] = "Ada <ada@example.org>"
    one["To"] = "Bob <bob@example.org>"
    one["Date"] = "Sun, 22 Nov 2026 10:00:00 +0000"
    one["Subject"] = subject
    if body:
        one.set_content(body)
    if html:
        one.add_alternative(html, subtype="html") if body else one.set_content(html, subtype="html")
    if attachment:
        one.add_attachment(content, maintype="application", subtype="pdf", filename=attachment)
    return one


HEAD = (
    "From: Ada <ada@example.org>\nTo: Bob <bob@example.org>\nDate: Sun, 22 Nov 2026 10:00:00 +0000\n"
    "Subject: {}\n\n"
)


def test_a_message_has_its_headers_its_body_and_the_names_of_attachments() -> None:
    data = bytes(message("Grüße", "The büro is closed.\n", "<p>no", "plan.pdf"))
    found = read(Path("a.eml"), data)
    assert found.text == HEAD.format("Grüße") + "The büro is closed.\n\nAttachments: plan.pdf\n"
    assert found.title == "Grüße"


def test_a_message_of_apple_mail_is_read_without_its_size_and_property_list() -> None:
    data = bytes(message("Grüße", "The büro is closed.\n", "", "plan.pdf"))
    plist = b'<?xml version="1.0"?>\n<plist version="1.0"><dict><key>flags</key></dict></plist>\n'
    found = detection.read(Path("12.partial.emlx"), b"%-10d\n%s%s" % (len(data), data, plist))
    assert found == read(Path("a.eml"), data)
    assert detection.read(Path("12.emlx"), data) == found  # Without a size it is a message.


def test_a_header_is_cut_off_before_it_takes_long_to_read() -> None:
    words = "word " * 20_000
    found = read(Path("a.eml"), f"Subject: {words}\nTo: Bob <bob@example.org>\n\nHello.\n".encode())
    assert found.title == words[:MAX_HEADER].strip()
    assert found.text.endswith("Hello.\n")


def test_a_body_of_html_alone_is_read_as_text() -> None:
    pytest.importorskip("selectolax", reason="selectolax is not installed")
    data = bytes(message("News", "", "<h1>Tea</h1><p>is <b>hot</b>.</p>"))
    assert read(Path("a.eml"), data).text == HEAD.format("News") + "# Tea\n\nis hot.\n"


def test_all_texts_are_read_and_of_alternatives_the_first_with_text() -> None:
    def part(kind: str, text: str) -> str:
        return f"Content-Type: {kind}\n\n{text}\n"

    def parts(kind: str, *inner: str) -> str:
        limit = f"--{kind}"
        return (
            f'Content-Type: multipart/{kind}; boundary="{kind}"\n\n'
            + "".join(f"{limit}\n{one}" for one in inner)
            + f"{limit}--\n"
        )

    blank = parts("alternative", part("text/plain", " "), part("text/html", "<p>Gate 5."))
    both = parts(
        "related", part("text/plain", "Below."), part("image/png", "x"), part("text/plain", "Code 7.")
    )
    found = read(Path("a.eml"), f"From: a@b.c\n{parts('mixed', blank, both)}".encode())
    assert found.text == "From: a@b.c\n\nGate 5.\n\nBelow.\n\nCode 7.\n"


@pytest.mark.parametrize("sign", [",", ";"])
def test_the_rows_of_an_attached_csv_file_are_a_table_and_have_places(sign: str) -> None:
    content = f'tea{sign}price\n"a{sign}b"{sign}3\n\nmint{sign}4\n'.encode()
    found = read(Path("a.eml"), bytes(message("Tea", "Below.\n", attachment="t.csv", content=content)))
    cell = f"a{sign}b"
    table = f"| tea | price |\n| --- | --- |\n| {cell} | 3 |\n| mint | 4 |\n"
    assert found.text.endswith(f"# t.csv\n\n{table}")
    assert [label for _, label in found.places][-3:] == ["t.csv row 1", "t.csv row 2", "t.csv row 4"]


def test_a_csv_file_whose_numbers_have_commas_is_cut_at_its_semicolons() -> None:
    content = b"# ages, of all\nname;age\nBob;3,5\nAnn;4,5\n"
    found = read(Path("a.eml"), bytes(message("Ages", "Below.\n", attachment="t.csv", content=content)))
    assert found.text.endswith("| Bob | 3,5 |\n| Ann | 4,5 |\n")


@pytest.mark.parametrize("content", ['a;b\nc;"d\ne;f\n', "one, two\nthree\n"], ids=["open quote", "text"])
def test_what_is_no_regular_table_is_read_as_text(content: str) -> None:
    given = bytes(message("Ages", "Below.\n", attachment="t.csv", content=content.encode()))
    found = read(Path("a.eml"), given)
    assert content.strip() in found.text


def test_the_html_part_is_read_too_if_the_plain_one_only_refers_to_it() -> None:
    words = "We offer the gravel for 4,812 euros, including the delivery to your yard on 9 September."
    html = f"<p>{words}</p><p>Please confirm the order by Friday. <a href='https://a.example/b?c=d'>Confirm</a></p>"
    stub = read(Path("a.eml"), bytes(message("Offer", "Please view this in HTML.\n", html))).text
    assert stub.startswith(f"{HEAD.format('Offer')}Please view this in HTML.\n\n{words}")
    short = read(Path("a.eml"), bytes(message("Offer", f"{words}\n", html))).text
    assert short == HEAD.format("Offer") + f"{words}\n"


@pytest.mark.parametrize("charset", ["", "; charset=iso-8859-1"])
def test_a_page_that_a_browser_saved_as_one_file_is_read_like_the_page(charset: str) -> None:
    pytest.importorskip("selectolax", reason="selectolax is not installed")
    text = (
        "From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org/kayak\nSubject: Kayak\n"
        'MIME-Version: 1.0\nContent-Type: multipart/related; type="text/html"; boundary="B"\n\n--B\n'
        f"Content-Type: text/html{charset}\nContent-Transfer-Encoding: quoted-printable\n\n"
        "<meta charset=3Dutf-8><title>Tour</title><h1>Kayaks</h1><p>F=C3=BCnf euros =\na day.</p>\n--B\n"
        "Content-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--B--\n"
    )
    found = detection.read(Path("tour.mhtml"), text.encode())
    word = "FÃ¼nf" if charset else "Fünf"  # The charset of the message is that of the page.
    assert (found.title, found.text) == ("Tour", f"# Kayaks\n\n{word} euros a day.\n")
    with pytest.raises(NotText, match="a damaged MHTML file"):
        detection.read(Path("tour.mht"), b"Subject: Kayak\n\nHello.\n")


def test_the_places_of_a_message_are_its_paragraphs() -> None:
    found = read(Path("a.eml"), bytes(message("News", "Hello Bob,\n\nthe tea is hot.\n")))
    lines = found.text.split("\n")
    assert [(lines[line - 1], label) for line, label in found.places] == [
        ("From: Ada <ada@example.org>", "headers"),
        ("Hello Bob,", "¶ 1"),
        ("the tea is hot.", "¶ 2"),
    ]


def test_the_places_of_a_mailbox_are_its_messages_and_their_paragraphs() -> None:
    first, second = bytes(message("One", "First.\n\n>From here on.\n")), bytes(message("Two", "Second.\n"))
    box = b"From ada Sun Nov 22 10:00:00 2026\n" + first + b"\nFrom ada Sun Nov 22 11:00:00 2026\n" + second
    found = read(Path("a.mbox"), box)
    lines = found.text.split("\n")
    assert [(lines[line - 1], label) for line, label in found.places] == [
        *(
            ("# One (Ada, 2026-11-22)", "message 1"),
            ("First.", "message 1 ¶ 1"),
            ("From here on.", "message 1 ¶ 2"),
        ),
        *(("# Two (Ada, 2026-11-22)", "message 2"), ("Second.", "message 2 ¶ 1")),
    ]
    assert "\n\nFrom here on.\n\n# Two (Ada, 2026-11-22)\n\n" in found.text
    assert "Second." in found.text


def test_the_heading_of_a_message_is_its_subject_without_signs_of_a_reply() -> None:
    box = b"From ada\nFrom: =?utf-8?q?Z=C3=B6e?= <z@b.c>\nSubject: Re: AW[2]: WG: Hardware: Tea\n\nHot.\n\n"
    assert read(Path("a.mbox"), box).text.startswith("# Hardware: Tea (Zöe)\n\nFrom: Zöe <z@b.c>\n")


def test_a_message_without_subject_author_and_date_is_not_below_the_heading_of_another() -> None:
    box = mailbox(message("One", "First.\n")) + b"From bea\nTo: c@b.c\n\nSecond.\n\n"
    assert read(Path("a.mbox"), box).text.endswith("\n\n# message 2\n\nTo: c@b.c\n\nSecond.\n")


def mailbox(*messages: EmailMessage) -> bytes:
    return b"".join(b"From ada Sun Nov 22 10:00:00 2026\n" + bytes(one) + b"\n" for one in messages)


def test_an_open_fence_of_a_body_does_not_take_in_what_is_below() -> None:
    bodies = ("# Steps\n\n```\nmake it", "Second.")
    separator = b"From ada@example.org Sun Nov 22 10:00:00 2026\n"
    box = b"\n".join(separator + bytes(message(f"Mail {at}", body)) for at, body in enumerate(bodies, 1))
    text = read(Path("a.mbox"), box).text
    assert "\n# Steps\n\n```\nmake it\n```\n" in text
    assert text.index("# Mail 2") > text.rindex("```")


@pytest.mark.parametrize(
    "body", ["```\nmake it\n\xa0```\n\n```\nmake all", "1. ```\n   make it", "```\na\n```b"]
)
def test_a_fence_is_closed_where_the_passages_take_it_for_open(body: str) -> None:
    text = read(Path("a.mbox"), mailbox(message("Mail 1", body), message("Mail 2", "Second."))).text
    assert [block.heading for block in markdown_blocks(text)][-1].startswith("Mail 2")


def test_a_mailbox_of_many_messages_is_read_as_far_as_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    box = mailbox(*(message(f"No. {number}", "Hello.\n") for number in range(1, 5)))
    monkeypatch.setattr(mail, "MAX_MESSAGES", 2)
    found = read(Path("a.mbox"), box)
    assert found.note == "only its first 2 messages were read"
    assert "# No. 2" in found.text
    assert "# No. 3" not in found.text
    monkeypatch.setattr(limits, "MAX_CHARACTERS", 170)
    found = read(Path("a.mbox"), box)
    assert found.note == "holds more than 170 characters of text, and was read only up to message 2"
    assert "# No. 2" in found.text


def test_a_message_takes_few_times_its_own_size_of_memory() -> None:
    data = bytes(message("Scan", "Here.\n", attachment="scan.pdf", content=bytes(500_000)))
    tracemalloc.start()
    try:
        read(Path("a.mbox"), b"From ada\n" + data)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        b"Subject: =?utf-8?b?!!?=\nDate: nonsense\nContent-Type: text/plain; charset=nothing\n\nhello",
        b"Subject: One\nContent-Type: text/plain; charset=undefined\n\nhello",
        b"Subject: x\nContent-Type: multipart/mixed\n\nhello",
        b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhello",
    ],
)
def test_a_malformed_message_is_read_as_far_as_possible(data: bytes) -> None:
    assert read(Path("a.eml"), data).text.strip()


def test_a_damaged_message_of_a_mailbox_is_named_and_the_others_are_read() -> None:
    damaged = "From ada\nContent-Type: application/pdf; name*0*=undefined''x\n\nhello\n\n"
    found = read(Path("a.mbox"), f"{damaged}From bea\nSubject: Two\n\nBye.\n".encode())
    assert "Bye." in found.text
    assert found.note == "has damaged messages that were not read: 1"


@pytest.mark.parametrize("name", ["a.eml", "a.mbox"])
def test_a_file_without_messages_is_refused(name: str) -> None:
    with pytest.raises(NotText, match="is a damaged"):
        read(Path(name), b"no message")


def test_an_address_of_many_brackets_is_left_out() -> None:
    found = read(Path("a.eml"), b"Subject: x\nTo: " + b"(" * 5_000 + b"\n\nHello.\n")
    assert found.text == "Subject: x\n\nHello.\n"


def test_attachments_are_read_below_their_names() -> None:
    forwarded = message("Old", "As I wrote.\n", attachment="old.txt", content=b"The oldest.\n")
    new = message("New", "See below.\n", attachment="prices.csv", content=b"tea,3\n")
    new.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="logo.png")
    new.add_attachment(forwarded)
    found = read(Path("a.eml"), bytes(new))
    assert found.text == (
        HEAD.format("New") + "See below.\n\nAttachments: prices.csv, logo.png, message.eml\n\n"
        "# prices.csv\n\n```csv\ntea,3\n```\n\n# message.eml\n\n"
        + HEAD.format("Old")
        + "As I wrote.\n\nAttachments: old.txt\n\n## old.txt\n\nThe oldest.\n"
    )
    labels = [label for _, label in found.places]
    assert labels[:4] == ["headers", "¶ 1", "attachments", "prices.csv"]
    assert labels[4:] == [
        *("message.eml", "message.eml headers", "message.eml ¶ 1", "message.eml attachments"),
        "message.eml old.txt",
    ]


def test_the_attachments_of_a_mailbox_are_places_in_their_message() -> None:
    first = message("One", "Here.\n", "", "a.txt", b"Hello.\n")
    found = read(Path("a.mbox"), mailbox(first, message("Two", "Bye.\n")))
    lines = found.text.split("\n")
    assert ("# a.txt", "message 1 a.txt") in [(lines[line - 1], label) for line, label in found.places]
    assert ("# Two (Ada, 2026-11-22)", "message 2") in [
        (lines[line - 1], label) for line, label in found.places
    ]


SIGNATURE = (
    "-----BEGIN PGP SIGNATURE-----\n{0}Version: GnuPG v2\n{0}\n{0}iQEzBAEB\n{0}=aBcD\n"
    "{0}-----END PGP SIGNATURE-----"
)


def test_a_signature_is_no_text() -> None:
    signed = f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nThe tea is hot.\n{SIGNATURE.format('')}\n"
    quoted = f"Yes.\n\n> It is.\n> {SIGNATURE.format('> ')}\n\nBye.\n"
    one = message("Tea", signed)
    one.make_mixed()
    for kind, name in (("pgp-signature", "a.asc"), ("pkcs7-signature", "smime.p7s"), ("pgp-keys", "key.asc")):
        one.add_attachment(b"-----BEGIN", maintype="application", subtype=kind, filename=name)
    attachments = "Attachments: key.asc\n\n# key.asc\n\n```asc\n-----BEGIN\n```\n"
    assert read(Path("a.eml"), bytes(one)).text == f"{HEAD.format('Tea')}The tea is hot.\n\n{attachments}"
    found = read(Path("a.eml"), bytes(message("Tea", quoted))).text
    assert found == f"{HEAD.format('Tea')}Yes.\n\n> It is.\n\n\nBye.\n"


def test_what_is_below_a_signature_without_an_end_is_text() -> None:
    text = "-----BEGIN PGP SIGNATURE-----\n" * 3 + "\nThe tea is hot.\n"
    assert read(Path("a.eml"), bytes(message("Tea", text))).text == HEAD.format("Tea") + text
