"""Quotations in the messages of a mailbox."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ragmemory.files.formats import file_text
from ragmemory.files.formats.mail import read

RENT = "The rent of the workshop is 310 euros.\n\nThe power is included too."
FOOTER = "_______________\nworkshop mailing list"


def bodies(*messages: str) -> Sequence[str]:
    """What is read of the bodies of a mailbox."""
    box = "".join(
        f"From ada\nFrom: Ada <a@b.c>\nSubject: Mail {number}\n\n{body}\n\n"
        for number, body in enumerate(messages, 1)
    )
    parts = read(Path("a.mbox"), box.encode()).text.split("\n# Mail ")
    return [part.partition("\n\n")[2].partition("\n\n")[2].strip() for part in parts]


def marked(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


@pytest.mark.parametrize(
    "above",
    [
        f"On 3 May 2024, Ada wrote:\n\n{marked(RENT)}",
        f"Am Fr., 3. Mai 2024 um 10:00 Uhr schrieb Ada Lee-Winterbottom <ada@b.c>\n:\n{marked(RENT)}",
        f"-----Original Message-----\nFrom: Ada\nSent: 3 May 2024\nTo: Bob\nSubject: Rent\n\n{RENT}",
        f"____________\n\nVon: Ada\nGesendet: 3. Mai 2024\nAn: Bob\nBetreff: Miete\n\n{RENT}",
        f"On 4 May 2024, Cy <c@b.c> wrote:\n> Ada <a@b.c> wrote:\n{marked(marked(RENT))}",
        marked("The rent of\nthe workshop is\n310 euros. The power is included too."),
    ],
    ids=["marked", "wrapped", "outlook", "german outlook", "nested", "other lines"],
)
@pytest.mark.parametrize("is_newest_first", [False, True])
def test_what_stands_in_another_message_is_not_quoted(above: str, is_newest_first: bool) -> None:
    given = [f"{RENT}\n\n{FOOTER}", f"It is 264 euros.\n\n{above}\n\n{FOOTER}"]
    expected = [RENT, "It is 264 euros."]
    if is_newest_first:
        given.reverse()
        expected.reverse()
    found = bodies(*given)
    assert [body.removesuffix(FOOTER).strip() for body in found] == expected


def test_the_first_quotation_of_a_missing_message_stays_with_the_lines_that_name_its_author() -> None:
    quotation = f"On 3 May 2024, Eve wrote:\n\n{marked(RENT)}"
    reply = f"See the lines below here.\n\n{quotation}"
    above = f"Thanks.\n\nOn 4 May 2024, Ada wrote:\n\n{marked(reply)}"
    assert bodies(reply, above) == [reply, "Thanks."]
    assert bodies("See the lines below here.", above) == [
        "See the lines below here.",
        above.replace("> See the lines below here.\n>\n", ""),
    ]


def test_a_quoted_paragraph_with_a_new_sentence_stays_whole() -> None:
    changed = marked("The rent of the workshop is 310 euros. So is that of the cellar.")
    assert bodies(RENT, f"Yes.\n\n{changed}\n>\n> The power is included too.") == [
        RENT,
        f"Yes.\n\n{changed}\n>",
    ]


def test_a_quotation_with_another_sign_stays() -> None:
    assert bodies("It is 5 degrees.", "Oh.\n\n> It is -5 degrees.")[1] == "Oh.\n\n> It is -5 degrees."


def test_a_quotation_between_answers_stays() -> None:
    first, second = map(marked, RENT.split("\n\n"))
    reply = f"Ada wrote:\n{first}\n\nToo much.\n\n{second}\n\nThat is good."
    assert bodies(RENT, reply) == [RENT, reply]


def test_a_question_that_is_answered_above_it_stays() -> None:
    asked = "We have the other key.\n\nHow many come?"
    reply = f"Seventeen.\n\nOn 3 May 2024, Ada wrote:\n\n{marked(asked)}"
    assert bodies(asked, reply)[1] == "Seventeen.\n\nOn 3 May 2024, Ada wrote:\n\n> How many come?"


def test_what_is_said_before_a_quotation_is_no_line_that_names_its_author() -> None:
    reply = f"It was 264 euros in 2023. Mind this:\n\n{marked(RENT)}"
    assert bodies(RENT, reply) == [RENT, "It was 264 euros in 2023. Mind this:"]


def test_a_text_below_headers_is_not_lost() -> None:
    reply = "Bye.\n\nFrom: Eve\nSent: 3 May 2024\nTo: Bob\nSubject: Rent\nIt rains."
    assert bodies("Hello.", reply) == ["Hello.", reply]


@pytest.mark.parametrize(
    "text",
    [
        "Your trip:\n\nFrom: Berlin\nTo: Hamburg\nDate: 3 May 2024\nSeat: 12",
        f"Von: 3. Mai\nBis: 9. Mai\nOrt: Kiel\n\n{RENT}",
        "A mail without a text:\n\nFrom: Eve\nSent: 3 May 2024\nSubject: Rent of 310 euros",
    ],
    ids=["trip", "holidays", "headers alone"],
)
def test_lines_like_headers_stay_unless_a_quotation_below_them_is_left_out(text: str) -> None:
    assert bodies(RENT, text) == [RENT, text]


@pytest.mark.parametrize(
    "above",
    [
        "I paid 40 euros for the gas; on the rent you wrote:",
        "Ich habe 40 Euro an bob@c.d gezahlt:",
        "The boiler was repaired on Monday for 480 euros, and\nthe plumber says as he kindly\nwrote:",
        "On 3 May 2024 I paid 480 euros, and Ada wrote:",
        "On 3 May 2024 the cat ran away, as Ada <a@b.c> wrote:",
        "Ada <a@b.c> wrote that it is 480 euros:",
        "The boiler was repaired by the\nplumber Karl\nEve <e@b.c> wrote:",
    ],
)
def test_a_sentence_above_a_quotation_that_is_left_out_stays(above: str) -> None:
    assert bodies(RENT, f"{above}\n{marked(RENT)}") == [RENT, above]


@pytest.mark.parametrize(
    "line",
    [
        "On Fri, May 3, 2024 at 10:00 AM Ada Lee <ada@b.c> wrote:",
        "Am 03.05.2024 um 10:00 schrieb Ada Lee:",
        "Am Fr., 3. Mai 2024 um 10:00 Uhr schrieb Ada Lee <\nada@b.c>:",
        "Le ven. 3 mai 2024 à 10:00, Ada <ada@b.c> a écrit :",
        "El vie, 3 may 2024 a las 10:00, Ada (<ada@b.c>) escribió:",
        "2024-05-03 10:00 GMT+02:00 Ada Lee <ada@b.c>:",
        "Ada Lee <ada@b.c> schrieb am Fr., 3. Mai 2024 um 10:00:",
    ],
)
def test_a_line_that_only_names_the_author_goes_with_its_quotation(line: str) -> None:
    assert bodies(RENT, f"Too much.\n\n{line}\n{marked(RENT)}") == [RENT, "Too much."]


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("Yes.", "Yes."),
        (RENT, ":-("),
        ("Is the sum of the days a = b?", "Is the sum of the days a != b."),
        ("The tea has a weight of 3.5 kg.", "The tea has a weight of 3,5 kg."),
    ],
)
def test_a_quotation_of_few_words_or_with_other_signs_stays(said: str, quoted: str) -> None:
    reply = f"That is what I think.\n\nOn 3 May 2024, Eve wrote:\n\n> {quoted}"
    assert bodies(said, reply) == [said, reply]


def test_nothing_is_left_out_for_a_message_that_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = f"See the lines below here.\n\n{marked(RENT)}"
    damaged = f"From eve\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n{RENT}\n--b\n"
    damaged += "Content-Type: application/pdf; name*0*=undefined''x\n\nhello\n--b--\n\n"
    box = f"From bob\nSubject: Rent\n\n{reply}\n\n"
    found = read(Path("a.mbox"), f"{box}{damaged}".encode())
    assert found.note == "has damaged messages that were not read: 2"
    assert reply in found.text
    above = read(Path("a.mbox"), f"From ada\nSubject: Rent\n\n{RENT}\n\n{box}{damaged}".encode())
    assert reply not in above.text
    # The limit of `mail` stays: all messages are looked at, but not all are read.
    monkeypatch.setattr(file_text, "MAX_CHARACTERS", 120)
    found = read(Path("a.mbox"), f"{box}From eve\nSubject: Rent\n\n{RENT}\n\n".encode())
    assert found.note.endswith("read only up to message 2")
    assert reply in found.text
