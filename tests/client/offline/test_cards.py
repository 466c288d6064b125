"""The `windows` of passages, and the cards that they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragchat.answer import Card
from ragchat.grounding.evidence import Evidence, gather
from ragchat.grounding.question import Question
from ragchat.grounding.types import Citation
from ragchat.offline.cards import make_cards
from ragchat.offline.windows import SHOWN, SIZES, Window, best_window, chosen, nearest, ranked, runs
from ragcommon.contract.search import Hit
from tests.support.turns import ListMemory, hit

FILLER = [f"Sentence {number} of this text is about the garden behind the house." for number in range(60)]


async def evidence_in(question: str, *hits: Hit) -> list[Evidence]:
    """Compared by words alone."""
    return await gather(Question.of(question), hits, ListMemory())


async def window_text(question: str, passage: Hit, size: int) -> str:
    """The best window of a passage as a card."""
    [evidence] = await evidence_in(question, passage)
    window = best_window(evidence, size)
    assert window is not None
    [card], _ = make_cards([window])
    return card.text


async def cards_for(question: str, *hits: Hit) -> tuple[list[Card], list[Citation]]:
    shown, _ = chosen(ranked(await evidence_in(question, *hits)))
    return make_cards(shown)


def place(text: str, *, uri: str = "file:///notes/a.md", chunk_id: int = 1, start_line: int = 1) -> Hit:
    """A passage of the document at `uri` that begins in a line of it."""
    lines = text.count("\n", 0, len(text.rstrip("\n")))
    return replace(
        hit(text, chunk_id=chunk_id),
        document_id=uri,
        uri=uri,
        title="",
        start_line=start_line,
        end_line=start_line + lines,
    )


@given(
    st.text(alphabet="boiler pump.!?\n-|#`>:。\"'1\t中文", max_size=400), st.sampled_from([20, 60, *SIZES])
)
def test_a_card_is_a_part_of_its_passage_as_it_was_written(text: str, size: int) -> None:
    async def check() -> None:
        [evidence] = await evidence_in("boiler pump 中文", hit(text))
        window = best_window(evidence, size)
        assert (window is None) == (not text.strip())
        if window is None:
            return
        [card], [citation] = make_cards([window])
        start, end = window.span
        assert card.text.endswith(text[start:end])
        assert all(part in text for part in card.text.split("\n…"))
        first, last = card.best
        assert card.text[first:last] == text[slice(*_best(window.evidence, window.best))]
        assert citation.quote == card.text[first:last].strip()
        assert end - start <= size or window.first == window.last

    def _best(evidence: Evidence, number: int) -> tuple[int, int]:
        return evidence.pieces[number].start, evidence.pieces[number].end

    anyio.run(check)


async def test_the_best_window_is_first_and_of_two_as_good_the_one_that_memory_ranks_higher() -> None:
    question = "Is the boiler serviced in March?"
    other, equal = (
        "Carl has serviced the boiler.",
        "Late in March the boiler is serviced, with all radiators.",
    )
    ranked = [
        replace(place(text, uri=f"file:///notes/{rank}.md", chunk_id=rank), rank=rank)
        for rank, text in enumerate([other, "Anna says the boiler is serviced in March.", equal], 1)
    ]
    cards, _ = await cards_for(question, *ranked)
    assert [card.chunk_id for card in cards][:2] == [2, 3]
    assert [card.score for card in cards] == sorted((card.score for card in cards), reverse=True)


async def test_the_blank_lines_between_pages_are_one() -> None:
    text = "The pump is old.\n\n  \n\n\nThe boiler is serviced in March.\n\n\nThe tap drips."
    [evidence] = await evidence_in("When is the boiler serviced?", hit(text))
    window = best_window(evidence, SIZES[0])
    assert window is not None
    [card], _ = make_cards([window])
    assert card.text == "The pump is old.\n\nThe boiler is serviced in March.\n\n\nThe tap drips."
    assert card.text[slice(*card.best)] == "The boiler is serviced in March."


async def test_of_a_long_passage_the_part_with_the_words_is_shown_and_what_follows_them() -> None:
    [evidence] = await evidence_in(
        "When is the boiler serviced?",
        hit(" ".join([*FILLER[:30], "The boiler is serviced in March.", *FILLER[30:]])),
    )
    window = best_window(evidence, SIZES[0])
    assert window is not None
    [card], _ = make_cards([window])
    assert card.text[slice(*card.best)] == "The boiler is serviced in March."
    assert SIZES[0] / 2 < len(card.text) <= SIZES[0]
    assert card.best[0] < len(card.text) / 2


@pytest.mark.parametrize(
    ("question", "whole", "uri"),
    [
        (
            "What is the read_limit?",
            "# Seconds until a request to\n# a host is given up.\nread_limit = 3",
            "a.conf",
        ),
        ("When is a request given up?", "# Until a request is\n# given up.\nread_limit = 3", "a.conf"),
        ("What does --verbose do?", "  -v, --verbose\n         Show each of them,\n         timed.", "a.txt"),
        (
            "How do I see the steps?",
            "  -v, --verbose\n         Show all the steps,\n         timed.",
            "a.txt",
        ),
        ("What is a spring line?", "Spring line\n  It keeps the boat from\n  going astern.", "a.md"),
        ("How is the pump primed?", "To prime the pump, run:\n\n```\nwater --prime\nwater --go\n```", "a.md"),
        ("What does water --prime need?", "Open the valve, then run:\n\n    water --prime", "a.md"),
        (
            "Which retries has send_all?",
            "def send_all(\n    hosts: list[str],\n    after: int = 5,\n    retries: int = 3,\n) -> bool:",
            "a.py",
        ),
    ],
)
@pytest.mark.parametrize("before", [0, 3, 17])
async def test_what_belongs_together_is_not_parted(question: str, whole: str, uri: str, before: int) -> None:
    around = [f"value_{number} = {number * number}" for number in range(40)]
    text = "\n".join([*around[:before], "", whole, "", *around[before:]])
    assert whole in await window_text(question, replace(hit(text), uri=f"file:///{uri}"), SIZES[-1])


async def test_a_window_goes_on_below_its_best_part_as_far_as_there_is_room() -> None:
    """An answer is often in the sentence after the one with the words of the question."""
    more = "\n\n".join(f"Nobody saw it on day {number} of that summer." for number in range(30))
    [card], _ = await cards_for("Who painted the boiler?", place(f"The boiler was painted red.\n\n{more}"))
    assert SIZES[0] - 60 < len(card.text) <= SIZES[0]
    assert card.text.endswith("summer.")


async def test_a_row_comes_with_the_header_of_its_table() -> None:
    rows = [f"| skis {days} | {days * 9} euros |" for days in range(1, 60)]
    table = place("\n".join(["# Prices", "", "| gear | price |", "|---|---|", *rows]))
    [card], [citation] = await cards_for("What do skis 51 cost?", table)
    assert card.text.startswith("| gear | price |\n|---|---|\n… lines 5–")
    assert card.text[slice(*card.best)] == "| skis 51 | 459 euros |"
    assert citation.quote in table.text


async def test_a_row_of_a_later_passage_comes_with_the_header_of_its_table_or_file() -> None:
    rows = "".join(f"| oak {number} | {number * 300} years |\n" for number in range(20, 95))
    table = replace(place(rows, start_line=24), context="| tree | age |\n|---|---|\n")
    [card], [citation] = await cards_for("What age has oak 91?", table)
    assert card.text.startswith("| tree | age |\n|---|---|\n…")
    assert card.text[slice(*card.best)] == "| oak 91 | 27300 years |"
    assert citation.quote_start_line is not None
    assert citation.quote_start_line > 24
    records = replace(
        place("Skua;MHK4\nPetrel;MXQ7\n", uri="file:///b.csv", start_line=9), context="boat;sign\n"
    )
    [card], _ = await cards_for("What is the sign of Petrel?", records)
    assert card.text.splitlines()[0] == "boat;sign"
    assert card.text[slice(*card.best)] == "Petrel;MXQ7"


async def test_a_card_of_a_csv_file_has_the_names_of_its_columns_below_a_title() -> None:
    lines = ["sep=;", "boat;2023;2024", "Skua;4;7", "Petrel;6;5", "Tern;1;2"]
    passage = place("\n".join(lines), uri="file:///b.csv")
    [card], _ = await cards_for("How many trips of the boat Petrel in 2024?", passage)
    assert card.text.splitlines()[:2] == lines[:2]
    assert card.text[slice(*card.best)] == "Petrel;6;5"


def records(count: int) -> list[str]:
    """The lines of a CSV file, its header included."""
    return ["sku,name,supplier", *(f"D-{n},Pipe type {n},Supplier {n % 9}" for n in range(2, count + 1))]


@pytest.mark.parametrize("kept", [(3, 7), (5, 7), (8, 9), (1, 8)])
async def test_a_card_of_several_passages_of_a_csv_file_has_its_header_once_and_names_the_gaps(
    kept: tuple[int, int],
) -> None:
    lines = records(30)
    header = f"{lines[0]}\n"
    one = place("".join(f"{line}\n" for line in lines[:10]), uri="file:///b.csv", chunk_id=1)
    two = place("".join(f"{line}\n" for line in lines[10:]), uri="file:///b.csv", chunk_id=2, start_line=11)
    first, second = await evidence_in("supplier", one, replace(two, context=header))
    early = Window(first, *kept, best=kept[0])
    late = Window(second, 4, 6, best=5)
    [card], _ = make_cards([late, Window(first, 8, 9, best=8), early])
    assert card.text.startswith(header)
    assert card.text[slice(*card.best)] == lines[15]
    assert numbered(card.text) == {n: line for n, line in enumerate(lines, 1) if line in card.text}


def numbered(text: str) -> dict[int, str]:
    """The lines of a card that begins with line 1 of its document, by the numbers that its gaps name."""
    found: dict[int, str] = {}
    n = 1
    for line in text.split("\n"):
        if line.startswith("…"):
            from_, _, to = line.split()[-1].partition("–")
            assert int(from_) == n
            n = int(to or from_) + 1
        else:
            found[n] = line
            n += 1
    return found


async def test_a_row_of_a_later_passage_of_a_csv_file_comes_with_the_lines_between_it_and_the_header() -> (
    None
):
    lines = records(30)
    text = "\n".join(lines[10:])
    two = replace(place(text, uri="file:///b.csv", start_line=11), context=f"{lines[0]}\n")
    [evidence] = await evidence_in("supplier", two)
    [card], _ = make_cards([Window(evidence, 0, 1, best=0), Window(evidence, 1, 2, best=2)])
    assert card.text == "\n".join([lines[0], "… lines 2–10", *lines[10:13]])
    assert card.location == "b.csv:11–13"


async def test_windows_of_one_passage_that_overlap_or_touch_show_each_line_once() -> None:
    lines = [f"Line {number} of the log." for number in range(1, 10)]
    [evidence] = await evidence_in("log", place("\n".join(lines)))
    windows = [Window(evidence, *ends, best=ends[1]) for ends in ((3, 5), (0, 1), (2, 4))]
    [card], citations = make_cards(windows)
    assert card.text == "\n".join(lines[:6])
    assert card.text[slice(*card.best)] == lines[5]
    assert len(citations) == len(windows)


LEASE = [
    ("§ 3 Rent", "The rent is 820 euros a month, and it is due on the third."),
    ("§ 4 Deposit", "The tenant pays 2460 euros to the landlord, who keeps them in a bank."),
    ("§ 5 Notice", "Three months."),
]


def lease(sections: Sequence[tuple[str, str]]) -> Hit:
    """A passage of a plain text, with the headings that memory recognised in it."""
    text, headings = "", []
    for heading, body in sections:
        headings.append((1 + text.count("\n"), " ".join(heading.split("\n")).strip("#= ")))
        text += f"{heading}\n\n{body}\n\n"
    return replace(place(text, uri="file:///lease.txt"), headings=headings)


@pytest.mark.parametrize("form", ["{}", "{}\n========", "{}.", "Article 4\n{}"])
async def test_the_text_below_a_heading_of_a_plain_text_is_marked_and_not_the_heading(form: str) -> None:
    passage = lease([(form.format(heading), body) for heading, body in LEASE])
    [card], [citation] = await cards_for("Deposit", passage)
    assert card.text[slice(*card.best)] == citation.quote == LEASE[1][1]


async def test_a_section_is_shown_from_its_beginning_if_its_heading_has_the_words_of_the_question() -> None:
    far = "No boiler without water has a warranty."
    text = "\n\n".join(["## Warranty of the boiler", "A boiler has two years.", *FILLER[:20], far])
    passage = replace(hit(text), heading="Warranty of the boiler")
    assert "two years" in await window_text("What is the warranty of the boiler?", passage, 400)


async def test_a_question_for_a_number_is_answered_by_the_line_with_one() -> None:
    text = "The dough rests in the fridge.\nThe dough rests for 12 hours, in the fridge or the cellar.\n"
    for question, quote in (
        ("Where does the dough rest?", "The dough rests in the fridge."),
        ("How long does the dough rest?", "The dough rests for 12 hours, in the fridge or the cellar."),
    ):
        _, [citation] = await cards_for(question, place(text, uri="file:///bread.txt"))
        assert citation.quote == quote


async def test_the_line_below_a_question_is_marked_and_not_the_question() -> None:
    text = "Anna: I am there.\nMe: Who brings the cake?\nJonas: I do.\n"
    [card], [citation] = await cards_for("Who brings the cake?", place(text, uri="file:///chat.txt"))
    assert card.text == text.rstrip()
    assert citation.quote == "Jonas: I do."


@pytest.mark.parametrize("form", ["**{}**", "*{}*", "__{}__", "{}"])
async def test_the_line_below_a_question_in_bold_is_marked_and_not_the_question(form: str) -> None:
    asked = (
        ("May I bring guests?", "Yes, up to three."),
        ("Is there a wireless network?", "Yes, called Quay."),
    )
    text = "\n".join(f"{form.format(question)}\n{answer}\n" for question, answer in asked)
    _, [citation] = await cards_for("Is there a wireless network?", place(text, uri="file:///faq.md"))
    assert citation.quote == "Yes, called Quay."


async def test_a_card_begins_with_a_heading_unless_its_location_shows_it() -> None:
    [card], _ = await cards_for("Who keeps the deposit in a bank?", lease(LEASE[:2]))
    assert (card.heading, card.text.split("\n")[0]) == ("§ 4 Deposit", "§ 3 Rent")
    [card], _ = await cards_for("Who keeps the deposit in a bank?", lease(LEASE[1:]))
    assert (card.heading, card.text.split("\n")[0]) == ("§ 4 Deposit", LEASE[1][1])


async def test_a_card_may_end_with_a_comment_in_a_code_block_of_markdown() -> None:
    text = "```\n#cooling: 0.0\n# Below this speed\n# the fan stands.\n#heating: 1.0\n# The fan runs.\n```"
    [evidence] = await evidence_in("cooling", replace(place(text), heading="Fans"))
    window = best_window(evidence, 60)
    assert window is not None
    [card], _ = make_cards([window])
    assert card.text[slice(*card.best)] == "#cooling: 0.0"
    assert card.text.endswith("# the fan stands.")


@pytest.mark.parametrize("form", ["{}", "{}\n========", "# {}"])
@pytest.mark.parametrize("size", [90, 110, 130, 160])
async def test_no_card_ends_with_a_heading_whose_text_is_cut_off(form: str, size: int) -> None:
    passage = lease([(form.format(heading), body) for heading, body in LEASE])
    [evidence] = await evidence_in("Deposit rent", passage)
    window = best_window(evidence, size)
    assert window is not None
    for one in (window, *runs(evidence, size)):
        [card], _ = make_cards([one])
        assert card.text.endswith(".")


@pytest.mark.parametrize("title", ["How to claim", "**How do I claim?**", "How do I claim?\n"])
async def test_a_line_that_introduces_the_text_below_it_is_shown_with_that_or_not_at_all(title: str) -> None:
    claim = "Ring 0306 990 117 from the mooring, and keep every bill."
    cancel = "Tell us two weeks before the end of the year."
    text = f"The boat is insured in the harbour and at sea.\n\n{title}\n{claim}\n\nCancelling\n{cancel}"
    lines = [line for line in text.split("\n") if line]
    for size in range(20, len(text)):
        whole = await window_text("Is the boat insured?", hit(text), size)
        assert lines[1] not in whole or claim in whole
    assert (
        await window_text("how to claim", hit(text), 110) == text[text.index(title) : text.index("\n\nCanc")]
    )


async def test_a_short_line_above_a_sentence_may_be_the_answer() -> None:
    lines = "The key is under the blue pot\nThe second one is with Mrs Miller, the neighbour, who is deaf."
    [card], _ = await cards_for("Where is the key?", hit(lines))
    assert card.text[slice(*card.best)] == "The key is under the blue pot"


async def test_two_parts_of_a_passage_with_a_heading_between_them_are_two_cards() -> None:
    parts = ["The boiler is serviced in March.", *FILLER[:30], "For the boiler, call Carl before March."]
    passage = replace(hit("\n".join(parts)), heading="Boiler", headings=[(1, "OK"), (20, "Not OK")])
    [evidence] = await evidence_in("When in March is the boiler serviced?", passage)
    first, *_, last = runs(evidence, 300)
    cards, _ = make_cards([first, last])
    assert [(card.heading, parts[0] in card.text) for card in cards] == [
        ("Boiler > OK", True),
        ("Boiler > Not OK", False),
    ]


async def test_the_best_of_many_rows_is_the_one_with_that_cell() -> None:
    rows = [f"| Laptop {n} | {price} EUR |" for n, price in ((2, 20), (4, 40), (20, 31), (40, 62))]
    table = hit("\n".join(["| item | price |", "|---|---|", *rows]))
    for n, price in ((20, 31), (40, 62)):
        [card], _ = await cards_for(f"What is the price of Laptop {n}?", table)
        assert card.text[slice(*card.best)] == f"| Laptop {n} | {price} EUR |"


async def test_a_row_with_both_is_before_rows_that_each_have_one_of_them_and_before_near_dates() -> None:
    def rows(first: int, sensor: int) -> str:
        return "".join(
            f"| 2025-02-{day:02} | S{sensor + day} | {day}.5 |\n" for day in range(first, first + 9)
        )

    apart, both = rows(5, -2), rows(3, -4)
    passages = [replace(hit(text, chunk_id=rank), rank=rank) for rank, text in ((1, apart), (9, both))]
    [card, *_], _ = await cards_for("sensor S3 2025-02-07", *passages)
    assert card.text == both.rstrip()


async def test_neighbouring_passages_are_one_card_that_names_the_lines_left_out() -> None:
    lines = [f"Line {number} is about the garden and what grows there." for number in range(1, 61)]
    lines[4] = "The boiler of the mill is serviced in March."
    lines[54] = "The boiler of the mill was bought in 1998."
    one = place("\n".join(lines[:30]), chunk_id=1)
    two = place("\n".join(lines[30:]), chunk_id=2, start_line=31)
    [card], citations = await cards_for("boiler of the mill", two, one)
    first, gap, second = card.text.partition("\n… lines ")
    assert gap
    named, _, second = second.partition("\n")
    from_, to = map(int, named.split("–"))
    assert first.splitlines() == lines[from_ - first.count("\n") - 2 : from_ - 1]
    assert second.splitlines() == lines[to:][: second.count("\n") + 1]
    assert [(found.n, found.chunk_id) for found in citations] == [(1, 2), (1, 1)]  # the best one first
    assert {lines[found.quote_start_line - 1] for found in citations if found.quote_start_line} == {
        found.quote.split("\n")[0] for found in citations
    }


async def test_passages_that_follow_one_another_have_no_gap() -> None:
    one = place("The boiler of the mill is old.\n", chunk_id=1)
    two = place("The boiler of the mill needs 1.2 bar.\n", chunk_id=2, start_line=2)
    [card], _ = await cards_for("boiler of the mill", one, two)
    assert card.text == "The boiler of the mill is old.\nThe boiler of the mill needs 1.2 bar."
    assert card.location == "a.md:1–2"


async def test_passages_parted_by_an_empty_line_have_no_gap() -> None:
    one = place("The boiler of the mill is old.", chunk_id=1)
    two = place("The boiler of the mill needs 1.2 bar.", chunk_id=2, start_line=3)
    [card], _ = await cards_for("boiler of the mill", one, two)
    assert card.text == "The boiler of the mill is old.\n\nThe boiler of the mill needs 1.2 bar."


async def test_passages_of_two_sections_are_cards_with_their_own_headings() -> None:
    one = place("The boiler of the mill is old.", chunk_id=1)
    service = place("## Service\n\nThe boiler of the mill needs 1.2 bar.", chunk_id=2, start_line=3)
    two = replace(service, heading="Mill > Service")
    cards, _ = await cards_for("boiler of the mill", one, two)
    assert [(card.heading, card.text) for card in cards] == [
        (one.heading, "The boiler of the mill is old."),
        ("Mill > Service", "The boiler of the mill needs 1.2 bar."),
    ]


async def test_passages_far_apart_in_one_document_are_two_cards() -> None:
    one = place("The boiler of the mill is old.", chunk_id=1)
    two = place("The boiler of the mill needs 1.2 bar, or a little more.", chunk_id=2, start_line=90)
    cards, citations = await cards_for("boiler of the mill", one, two)
    assert [card.location for card in cards] == ["a.md:1", "a.md:90"]
    assert [citation.n for citation in citations] == [1, 2]


async def test_empty_lines_with_which_a_passage_begins_do_not_count() -> None:
    text = "\n\nThe pump is old.\n\nThe boiler needs 1.2 bar."
    begun = replace(place(text, start_line=3), end_line=5)  # The lines of a hit exclude white space.
    [card], [citation] = await cards_for("bar of the boiler", begun)
    assert (card.location, citation.cited_lines) == ("a.md:3–5", (5, 5))
    assert Citation.of(1, begun, "The boiler needs").cited_lines == (5, 5)


@pytest.mark.parametrize(
    "kind",
    ["message {}", "message {} ¶ 2", "slide {} (OCR)", "record {}", "general/2024-04-01.json message {}"],
)
async def test_messages_slides_and_records_that_follow_one_another_are_cards_of_their_own(kind: str) -> None:
    first, second = kind.format(1), kind.format(2)
    one = replace(place("The boiler needs 1.2 bar.", chunk_id=1), places=[(1, first)])
    two = replace(place("The boiler had 1.6 bar.", chunk_id=2, start_line=2), places=[(2, second)])
    cards, _ = await cards_for("bar of the boiler", one, two)
    assert sorted(card.location for card in cards) == [f"a.md {first}", f"a.md {second}"]
    pages = [replace(hit, places=[(hit.start_line, f"p. {hit.start_line}")]) for hit in (one, two)]
    cards, _ = await cards_for("bar of the boiler", *pages)
    assert len(cards) == 1


async def test_the_files_of_an_archive_that_follow_one_another_are_cards_of_their_own() -> None:
    about = {"media_type": "application/zip"}
    one, two = (
        replace(place(text, chunk_id=line, start_line=line), heading=heading, metadata=about)
        for line, heading, text in (
            (1, "claims/2024.docx > Boiler", "The boiler was insured for 900."),
            (2, "claims/2025.txt", "The boiler was damaged."),
        )
    )
    assert len((await cards_for("boiler", one, two))[0]) == 2
    assert len((await cards_for("boiler", one, replace(two, heading="claims/2024.docx > Damage")))[0]) == 1
    chapters = replace(one, heading="1. Boiler"), replace(two, heading="2. Damage")
    assert len((await cards_for("boiler", *chapters))[0]) == 1


MAIL = """\
From: Anna Lind <anna@example.org>
To: me@example.org
Cc: Zora Klein <zora@example.org>
Date: Thu, 14 Mar 2024 21:10:00 +0100
Subject: The boiler

Hi,

it hums because of a worn bearing of the pump, which costs 189 euros.
"""


@pytest.mark.parametrize("first", ["headers", "message 3"])
async def test_the_headers_of_a_mail_name_its_text_and_rarely_are_the_answer(first: str) -> None:
    places = [(1, first), (7, "¶ 1"), (9, "¶ 2")]
    mail = replace(place(MAIL), places=places, end_line=9)
    [card], [citation] = await cards_for("What did Anna Lind write about the boiler?", mail)
    assert card.text.startswith("From: Anna Lind")
    assert (card.location, citation.quote) == ("a.md ¶ 2", MAIL.splitlines()[-1])
    _, [citation] = await cards_for("Who is in Cc?", mail)
    assert citation.quote == "Cc: Zora Klein <zora@example.org>"
    # In a note, such a line is a fact of its own.
    _, [citation] = await cards_for("From whom is the letter?", hit("From: Anna Lind\nPages: 2"))
    assert citation.quote == "From: Anna Lind"


async def test_a_further_card_must_say_something_new_and_to_the_point() -> None:
    due = hit("The fee for the berth is due on 1 April.", chunk_id=1)
    twin = hit("The fee for the berth is due on 1 April!", chunk_id=2)
    other = hit("The fee for the berth of 640 euros is fair, says Ida.", chunk_id=3)
    weak = hit("Kiel has three harbours and a berth for ferries.", chunk_id=4)
    evidence = await evidence_in("When is the fee for the berth due?", due, twin, other, weak)
    shown, further = chosen(ranked(evidence))
    assert [window.hit.chunk_id for window in shown] == [1, 3]
    assert [window.hit.chunk_id for window in further] == [4]


RULES = """\
Every member who rents the common room pays a deposit of {} euros before the first evening. It is returned
within 14 days after the caretaker has inspected the room.
"""


def version(name: str, deposit: int, chunk_id: int) -> Hit:
    return replace(
        hit(RULES.format(deposit), chunk_id=chunk_id), uri=f"file:///rules{name}.md", rank=chunk_id
    )


@pytest.mark.parametrize("names", [("-2019", "-2024"), ("-2023-09-01", "-2023-10-01"), ("_v1.9", "_v1.10")])
async def test_of_two_versions_that_differ_in_an_amount_both_are_shown_the_newer_first(
    names: tuple[str, str],
) -> None:
    older, newer = version(names[0], 150, 1), version(names[1], 220, 2)
    questions = (
        "How high is the deposit for the common room?",
        "When is the deposit returned?",  # Both versions say the same of it.
        "Is the deposit 150 euros?",
    )
    for question in questions:
        shown, _ = chosen(ranked(await evidence_in(question, older, newer)))
        is_newest_first = "150" not in question  # A number may be that of a version.
        assert [window.hit.chunk_id for window in shown] == ([2, 1] if is_newest_first else [1, 2])
    # A newer version with fewer of the question's words stays below.
    question = "What does Ann pay as a deposit for the common room?"
    shown, _ = chosen(
        ranked(await evidence_in(question, replace(older, text=f"{older.text}\nFor Ann."), newer))
    )
    assert [window.hit.chunk_id for window in shown] == [1, 2]
    # Other names are other documents, and a copy is shown once.
    other, copy = version("-of-the-house", 180, 3), version("-copy", 150, 4)
    shown, _ = chosen(ranked(await evidence_in("How high is the deposit?", older, other, copy)))
    assert [window.hit.chunk_id for window in shown] == [1, 3]


@pytest.mark.parametrize(
    "names",
    [
        ("-12019", "-12024"),
        ("-2024-17", "-2024-18"),
        ("-ipv4", "-ipv6"),
        ("-2024-001", "-2024-011"),
        ("-2024", "-2023-12"),
    ],
)
async def test_numbers_of_other_things_in_names_are_no_versions(names: tuple[str, str]) -> None:
    one, other = version(names[0], 150, 1), version(names[1], 220, 2)
    shown, _ = chosen(ranked(await evidence_in("How high is the deposit for the common room?", one, other)))
    assert [window.hit.chunk_id for window in shown] == [1, 2]


async def test_at_most_three_cards_are_shown_at_once_and_the_first_is_the_longest() -> None:
    passages = [
        hit(f"The fee {n} is due. " + " ".join(FILLER[n * 9 :][:20]), chunk_id=n) for n in range(1, 6)
    ]
    shown, further = chosen(ranked(await evidence_in("When is the fee due?", *passages)))
    assert [len(shown), len(further)] == [SHOWN, 2]
    lengths = [end - start for start, end in (window.span for window in (*shown, *further))]
    assert all(length <= size for length, size in zip(lengths, [*SIZES, SIZES[-1], SIZES[-1]], strict=True))


@pytest.mark.parametrize(
    ("uris", "names"),
    [
        (["file:///a/config.toml", "file:///b/c/config.toml"], ["a/config.toml", "c/config.toml"]),
        (["file:///a/x/config.toml", "file:///b/x/config.toml"], ["a/x/config.toml", "b/x/config.toml"]),
        (["file:///a/config.toml", "file:///a/other.toml"], ["config.toml", "other.toml"]),
        (["ragchat:session/ab12", "file:///a/other.toml"], ["chat with ragchat, ab12", "other.toml"]),
        (["file:///a/config.toml", "ragchat:report/cd34"], ["config.toml", "report by a model, cd34"]),
    ],
)
async def test_a_card_has_the_shortest_name_that_tells_the_files_apart_and_says_if_ragchat_wrote_it(
    uris: list[str], names: list[str]
) -> None:
    one = place("port = 80 of the web server", uri=uris[0])
    two = place("port = 81 of the web server, for tests", uri=uris[1], chunk_id=2)
    cards, _ = await cards_for("Which port has the web server?", one, two)
    assert [card.location for card in cards] == [f"{name}:1" for name in names]


async def test_chinese_text_without_line_breaks_is_shown_in_sentences() -> None:
    text = "上海是中国最大的城市。" * 20 + "北京是中国的首都。" + "广州在中国的南方。" * 80
    [card], _ = await cards_for("中国的首都是哪里？", hit(text))
    assert card.text[slice(*card.best)] == "北京是中国的首都。"
    assert card.text in text
    assert len(card.text) <= SIZES[0]


async def test_the_sentence_that_answers_is_marked_over_two_lines_and_whole_lines_are_shown() -> None:
    text = (
        "We met the landlord of the laboratory again, at the harbour. He will\n"
        "rent us the rooftop for £1,850 a month from the first day of May. The\n"
        "present rent is £1,700.\n\n" + "\n".join(FILLER)
    )
    [card], [citation] = await cards_for("At what rent is the rooftop from May?", place(text))
    assert card.text.startswith("We met the landlord")
    start, end = card.best
    assert (
        card.text[start:end] == "He will\nrent us the rooftop for £1,850 a month from the first day of May."
    )
    assert (citation.quote_start_line, citation.quote_end_line) == (1, 2)


async def test_hard_wrapped_text_keeps_its_lines() -> None:
    text = "The tent that we keep in the cellar, behind the\ndoor, is old, and it\n  leaks. It is of\n1998."
    [card], [citation] = await cards_for("Of which year is the tent?", hit(text))
    assert card.text == text
    assert citation.quote in text


def scored(windows: Sequence[Window], scores: Sequence[float]) -> list[Window]:
    pairs = zip(windows, scores, strict=True)
    return [dataclasses.replace(window, score=score) for window, score in pairs]


async def test_two_parts_of_a_passage_share_a_card_that_names_the_lines_between_them() -> None:
    parts = ["The boiler is serviced in March.", *FILLER[:30], "For the boiler, call Carl before March."]
    passage = hit("\n".join(parts))
    [evidence] = await evidence_in("When in March is the boiler serviced?", passage)
    first, *_, last = runs(evidence, 300)
    [card], citations = make_cards([first, last])
    assert parts[0] in card.text
    assert parts[-1] in card.text
    assert "\n… lines " in card.text
    assert len(citations) == 2
    assert len(card.text) < len(passage.text) / 2


async def test_windows_to_compare_reach_from_each_piece_on_but_none_is_within_another() -> None:
    [evidence] = await evidence_in("garden", hit("\n".join(FILLER[:9])))
    windows = list(runs(evidence, 200))
    assert [(window.first, window.last) for window in windows] == [(n, n + 2) for n in range(7)]
    best = nearest(scored(windows, [0.1, 0.2, 0.9, 0.8, 0.3, 0.4, 0.5]))
    assert [(window.first, window.score) for window in best] == [(2, 0.9), (6, 0.5)]


async def test_the_nearest_are_windows_of_few_documents() -> None:
    evidence = await evidence_in("garden", *(hit(f"{FILLER[n]}", chunk_id=n) for n in range(8)))
    windows = [window for one in evidence for window in runs(one, 200)]
    best = nearest(scored(windows, [n / 10 for n in range(8)]))
    assert [window.hit.chunk_id for window in best] == [7, 6, 5]


async def test_tests_come_after_the_code_unless_they_are_asked_for() -> None:
    tests = place("limit = 4  # the default\n", uri="file:///src/tests/test_a.py", chunk_id=1)
    code = place("limit = 4  # the default of it\n", uri="file:///src/a.py", chunk_id=2)
    for question, first in (
        ("What is the default limit?", "a.py"),
        ("Which limit has the test?", "test_a.py"),
    ):
        cards, _ = make_cards(ranked(await evidence_in(question, tests, code)))
        assert cards[0].location.startswith(first)


async def test_a_table_of_contents_is_no_answer() -> None:
    contents = place("- [Scope](#scope)\n- [Limits](#limits)\n", uri="file:///a.md", chunk_id=1)
    text = place("The limits are in the file of settings.\n", uri="file:///b.md", chunk_id=2)
    cards, _ = make_cards(ranked(await evidence_in("What are the limits?", contents, text)))
    assert cards[0].location.startswith("b.md")


@pytest.mark.parametrize(
    "question",
    ["Where is the class Store defined?", "Wo ist Store definiert?", "What does shop.Store do?"],
)
async def test_the_definition_of_a_symbol_is_the_answer_where_that_is_asked(question: str) -> None:
    uses = "store = Store()\nStore.find(Store)\nassert Store(Store)\n"
    code = "import os\n\nlimit = 4\n\n\nclass Store:\n    pass\n"
    passages = (
        replace(place(uses, uri="file:///src/use.py", chunk_id=1), heading="check"),
        replace(place(code, uri="file:///src/store.py", chunk_id=2), heading="Store"),
    )
    cards, _ = make_cards(ranked(await evidence_in(question, *passages)))
    assert cards[0].location.startswith("store.py")
    assert cards[0].text[slice(*cards[0].best)] == "class Store:"


async def test_the_definition_of_a_term_is_the_answer_where_that_is_asked() -> None:
    uses = (
        "Keep each covered work. Whoever gets the covered work may ask for the source of the covered work.\n"
    )
    text = 'It is short.\nA "covered work" means the program or a work based on it.\nThe rest follows.\n'
    passages = (
        place(uses, uri="file:///notes/uses.md", chunk_id=1),
        replace(place(text, uri="file:///notes/terms.md", chunk_id=2), rank=9),
    )
    cards, _ = make_cards(ranked(await evidence_in("What is a covered work?", *passages)))
    assert cards[0].location.startswith("terms.md")
    assert cards[0].text[slice(*cards[0].best)].startswith('A "covered work" means')
    cards, _ = make_cards(ranked(await evidence_in("Who gets the covered work?", *passages)))
    assert cards[0].location.startswith("uses.md")


async def test_front_matter_is_shown_only_if_it_says_something_about_the_question() -> None:
    """Also in a chunk that ends with a heading: its name would otherwise begin with the rule."""
    text = "---\ntags:\n  - house\nserial: 21-2240\n---\n# Boiler\n\nThe pressure is 1.2 bar when cold.\n"
    passage = replace(place(text), heading="Boiler")
    assert await window_text("What is the pressure?", passage, 900) == "The pressure is 1.2 bar when cold."
    assert "serial: 21-2240" in await window_text("What is the serial?", passage, 900)
    code = replace(place(text, uri="file:///notes/a.yaml"), heading="Boiler")
    assert "tags:" in await window_text("What is the pressure?", code, 900)


@pytest.mark.parametrize(("length", "is_shown"), [(8, True), (100, True), (101, False)])
async def test_a_few_words_between_two_parts_of_a_passage_are_shown(length: int, is_shown: bool) -> None:
    text = f"The boiler is old.\n{'So what'.ljust(length - 1, 't')}?\nThe pump is new."
    [evidence] = await evidence_in("boiler", hit(text))
    [card], _ = make_cards([Window(evidence, 0, 0, best=0), Window(evidence, 2, 2, best=2)])
    assert (card.text == text) is is_shown
