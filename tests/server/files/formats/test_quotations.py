"""Quotations in the messages of a mailbox."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ragmemory.files.formats.mail import read

RENT = "The rent of the workshop is 310 euros.\n\nThe power is included."
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
        f"On 4 May, Cy <c@b.c> wrote:\n> Ada <a@b.c> wrote:\n{marked(marked(RENT))}",
        marked("The rent of\nthe workshop is\n310 euros. The power is included."),
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
    reply = f"See below.\n\n{quotation}"
    above = f"Thanks.\n\nOn 4 May 2024, Ada wrote:\n\n{marked(reply)}"
    assert bodies(reply, above) == [reply, "Thanks."]
    assert bodies("See below.", above) == ["See below.", above.replace("> See below.\n>\n", "")]


def test_a_quoted_paragraph_with_a_new_sentence_stays_whole() -> None:
    changed = marked("The rent of the workshop is 310 euros. So is that of the cellar.")
    assert bodies(RENT, f"Yes.\n\n{changed}\n>\n> The power is included.") == [RENT, f"Yes.\n\n{changed}\n>"]


def test_a_quotation_with_another_sign_stays() -> None:
    assert bodies("It is 5 degrees.", "Oh.\n\n> It is -5 degrees.")[1] == "Oh.\n\n> It is -5 degrees."


def test_a_quotation_between_answers_stays() -> None:
    first, second = map(marked, RENT.split("\n\n"))
    reply = f"Ada wrote:\n{first}\n\nToo much.\n\n{second}\n\nThat is good."
    assert bodies(RENT, reply) == [RENT, reply]


def test_a_question_that_is_answered_above_it_stays() -> None:
    asked = "We have the key.\n\nHow many come?"
    reply = f"Seventeen.\n\nOn 3 May 2024, Ada wrote:\n\n{marked(asked)}"
    assert bodies(asked, reply)[1] == "Seventeen.\n\nOn 3 May 2024, Ada wrote:\n\n> How many come?"


def test_what_is_said_before_a_quotation_is_no_line_that_names_its_author() -> None:
    reply = f"It was 264 euros in 2023. Mind this:\n\n{marked(RENT)}"
    assert bodies(RENT, reply) == [RENT, "It was 264 euros in 2023. Mind this:"]


def test_a_text_below_headers_is_not_lost() -> None:
    reply = "Bye.\n\nFrom: Eve\nSent: 3 May 2024\nTo: Bob\nSubject: Rent\nIt rains."
    assert bodies("Hello.", reply) == ["Hello.", reply]
