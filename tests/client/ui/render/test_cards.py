"""Cards on a terminal: how many fit, their places, what stands out, and wide `tables`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ragchat.answer import Answer, Candidate, Card
from ragchat.highlight import Highlight
from ragchat.ui.render.cards import show_cards
from ragchat.ui.render.screen import Screen
from ragcommon.contract.search import Hit
from tests.support.screens import PyteFile, terminal
from tests.support.turns import hit

LINES = [f"Line {number} is about the garden." for number in range(1, 41)]


@pytest.fixture(autouse=True)
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def card(text: str, best: str = "", *, n: int = 1, location: str = "a.md:1–9", heading: str = "") -> Card:
    start = text.find(best) if best else 0
    return Card(n, location, heading, text, (start, start + len(best)), 1.0, n)


def shown(
    *cards: Card, question: str = "", columns: int = 80, rows: int = 24, uri: str = ""
) -> tuple[PyteFile, list[str], int]:
    hits = [replace(hit(card.text, chunk_id=card.chunk_id), uri=uri) for card in cards]
    return shown_of(*cards, hits=hits, question=question, columns=columns, rows=rows)


def shown_of(
    *cards: Card, hits: Sequence[Hit], question: str = "", columns: int = 80, rows: int = 24
) -> tuple[PyteFile, list[str], int]:
    out, file = terminal(columns, rows)
    answer = Answer("", cards=[*cards], candidates=[Candidate(hit, True, "shown") for hit in hits])
    count, _ = show_cards(Screen(out, out, animated=True), cards, answer, Highlight(question))
    return file, file.shown.split("\n"), count


def styles(file: PyteFile, text: str) -> set[tuple[bool, bool]]:
    """Bold and underline of each sign of a text on the screen."""
    for row in range(file.screen.lines):
        line = file.screen.display[row]
        if text in line:
            start = line.index(text)
            signs = [file.screen.buffer[row][column] for column in range(start, start + len(text))]
            return {(sign.bold, sign.underscore) for sign in signs}
    raise AssertionError(text)


def test_a_card_is_its_place_and_its_lines() -> None:
    _, lines, _ = shown(card("- one\n    two\n\n| a | b |", heading="Setup > Ports"))
    assert lines == ["[1] a.md:1–9  Setup › Ports", "  - one", "      two", "", "  | a | b |"]


@pytest.mark.parametrize(
    ("location", "heading"),
    [
        ("a.md:1–9", "The first chapter of the book > A section with a long name > Ports"),
        ("a-very-long-name-of-a-file-in-a-folder-of-files.md:1204–1217", ""),
        ("a-very-long-name-of-a-file-in-a-folder-of-files.md:1204–1217", "Setup > Ports"),
        ("第一章第二节第三段.md:1–9", "中国的首都是哪里 > 北京是中国的首都 > 上海是中国最大的城市"),
    ],
)
def test_the_place_of_a_card_is_one_line_on_a_narrow_screen(location: str, heading: str) -> None:
    _, lines, _ = shown(card("Text.", location=location, heading=heading), columns=40)
    assert lines[1] == "  Text."
    assert lines[0].startswith(f"[1] {location[:4]}")
    assert "…" in lines[0]


def test_a_heading_that_the_place_has_is_not_repeated() -> None:
    _, lines, _ = shown(card("Text.", location="pump.docx Faults > Dry run ¶ 1", heading="Faults > Dry run"))
    assert lines[0] == "[1] pump.docx Faults > Dry run ¶ 1"


def test_the_line_numbers_of_a_long_place_are_kept() -> None:
    _, lines, _ = shown(card("Text.", location=f"{'a' * 60}.md:1204–1217"), columns=40)
    assert lines[0].endswith(".md:1204–1217")


def test_the_best_part_is_bold_and_the_words_of_the_question_are_underlined() -> None:
    text = "The shed is old. The pumps need 1.2 bar."
    file, _, _ = shown(card(text, "The pumps need 1.2 bar."), question="Which pump is old?")
    assert styles(file, "The shed is ") == {(False, False)}
    assert styles(file, "old") == {(False, True)}
    assert styles(file, "pumps") == {(True, True)}
    assert styles(file, " need 1.2 bar.") == {(True, False)}


def test_without_colours_the_line_that_answers_has_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    file, lines, _ = shown(card("One.\nTwo.\nThree.", "Two."), question="two")
    assert lines == ["[1] a.md:1–9", "  One.", "▸ Two.", "  Three."]
    assert "\x1b[" not in file.getvalue()


LONG = "The shed behind the house is old and leaks a little. " * 3
ANSWER = "The yearly fee is 480 euros and is due on the first of April, says the board."


@pytest.mark.parametrize("before", [f"{LONG}\n", f"{LONG}\n\n{LONG}\n", "a\r\nb\r\n", "a\tb\tc\n\t", "\t"])
def test_the_best_part_is_bold_also_below_lines_that_are_wrapped_or_changed(before: str) -> None:
    file, _, _ = shown(card(f"{before}{ANSWER}\n{LONG}", ANSWER), columns=50)
    assert bold(file) == ANSWER.replace(" ", "")


def bold(file: PyteFile) -> str:
    """The bold signs on the screen, without white space and the number of the card."""
    signs = (file.screen.buffer[row][column] for row in range(1, 24) for column in range(50))
    return "".join(sign.data.strip() for sign in signs if sign.bold)


@pytest.mark.parametrize("columns", [44, 80])
def test_a_long_part_without_full_stops_shows_the_words_of_the_question(columns: int) -> None:
    text = f"{'and so we walked on ' * 90}to the mushroom spot behind the chapel {'and on ' * 200}"
    _, lines, _ = shown(card(text, text), question="Where is the mushroom spot?", columns=columns)
    assert "mushroom spot behind the chapel" in " ".join(" ".join(lines).split())
    assert [line.split()[0] for line in (lines[1], lines[-1])] == ["…", "…"]


PARAGRAPH = (
    "  The yearly fee is 480 euros and is due on the first of Ap‐\n"
    "  ril, says the board. Those who pay late are reminded of it\n"
    "  once, with a letter."
)


def test_a_paragraph_that_is_wrapped_too_wide_is_wrapped_anew_with_its_indentation() -> None:
    file, lines, _ = shown(card(PARAGRAPH, PARAGRAPH[2 : PARAGRAPH.index(" Those")]), columns=50)
    assert lines[1:] == [
        "    The yearly fee is 480 euros and is due on the",
        "    first of April, says the board. Those who pay",
        "    late are reminded of it once, with a letter.",
    ]
    assert bold(file) == "Theyearlyfeeis480eurosandisdueonthefirstofApril,saystheboard."
    assert shown(card(PARAGRAPH))[1][1:] == [f"  {line}" for line in PARAGRAPH.split("\n")]


def test_without_colours_only_the_line_that_answers_has_a_mark_below_wrapped_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    _, lines, _ = shown(card(f"{LONG}\n{LONG}\nThe fee is 480.\nNext.", "The fee is 480."), columns=50)
    assert [line for line in lines if line.startswith("▸")] == ["▸ The fee is 480."]


def test_the_rows_of_a_table_that_is_too_wide_lose_the_spaces_that_align_it() -> None:
    said = "whether the tap is turned off in winter"
    rows = ["| Name  | Meaning".ljust(90) + "|", "|" + "-" * 7 + "|" + "-" * 81 + "|"]
    text = "\n".join([*rows, f"| water | {said}".ljust(90) + "|"])
    file, lines, _ = shown(card(text, said), columns=60)
    assert lines[1:] == ["  | Name | Meaning |", "  |---|---|", f"  | water | {said} |"]
    assert styles(file, said) == {(True, False)}
    assert shown(card(text), columns=120)[1][1:] == [f"  {row}" for row in text.split("\n")]


def test_as_many_cards_are_shown_as_fit() -> None:
    cards = [card("\n".join(LINES[:9]), n=n) for n in (1, 2, 3)]
    assert shown(*cards, rows=17)[2] == 1
    assert shown(*cards)[2] == 2
    assert shown(*cards, rows=33)[2] == 3
    assert shown(*cards, rows=100)[2] == 3


@pytest.mark.parametrize(
    ("columns", "place"),
    [
        (60, "[1] a.md:1–9  An act on …and combs › § 26 The name of a comb"),
        (36, "[1] a.md:1–9  § 26 The na… of a comb"),
    ],
)
def test_of_headings_that_do_not_fit_the_last_one_is_cut_last(columns: int, place: str) -> None:
    heading = "An act on the ownership of combs > Part 4, bees and combs > § 26 The name of a comb"
    _, lines, _ = shown(card("Bees own it.", heading=heading), columns=columns)
    assert lines[0] == place


def test_cards_that_do_not_fit_are_cut_and_lose_their_empty_lines() -> None:
    text = "\n\n".join(LINES[:20])
    first, second = card(text, LINES[9]), card(text, LINES[9], n=2)
    _, lines, count = shown(first, second)
    assert count == 2
    assert len(lines) <= 24 - 6
    assert "" not in lines
    place = lines.index("[2] a.md:1–9")
    assert place == 1100 // 80
    for part in (lines[:place], lines[place:]):
        assert f"  {LINES[9]}" in part
        above, below = (int(line.split()[1]) for line in part if line.endswith(" more lines"))
        assert above + below + len(part) - 3 == 20
    _, whole, count = shown(first, second, rows=100)
    assert count == 2
    assert whole.count("") == 2 * 19 + 1


def test_a_card_that_does_not_fit_is_cut_around_the_line_that_answers() -> None:
    _, lines, count = shown(card("\n".join(LINES), LINES[19]))
    assert count == 1
    assert len(lines) <= 24 - 6
    assert lines[0] == "[1] a.md:1–9"
    assert lines[1].startswith("  … 1")
    assert lines[1].endswith(" more lines")
    assert f"  {LINES[19]}" in lines
    above, below = (int(line.split()[1]) for line in (lines[1], lines[-1]))
    assert above + below + len(lines) - 3 == len(LINES)


NUMBERS = [f"{number},{number * number}" for number in range(1, 41)]
ROWS = [f"| {number} | {number * number} |" for number in range(1, 41)]
WITH_DASHES = [*ROWS[:9], "| - | - |", *ROWS[10:]]


@pytest.mark.parametrize(
    ("above", "header", "rows"),
    [
        ([], ["number,square"], NUMBERS),
        ([], ["| number | square |", "|---|---|"], ROWS),
        (["Squares:", ""], ["| number | square |", "|---|---|"], ROWS),
        (["Squares:", ""], ["| number | square |", "|---|---|", "… lines 5–9"], ROWS),
        (["… lines 2–4"], ["| number | square |", "|---|---|"], WITH_DASHES),
    ],
)
def test_the_header_of_a_table_stays_above_the_row_that_answers(
    above: list[str], header: list[str], rows: list[str]
) -> None:
    text = "\n".join([*above, *header, *rows])
    header = [line for line in header if "…" not in line]
    uri = "file:///squares.csv" if rows is NUMBERS else ""
    _, lines, _ = shown(card(text, rows[19]), uri=uri)
    assert len(lines) <= 24 - 6
    assert [line[2:] for line in lines[1 : 1 + len(header)]] == header
    assert lines[1 + len(header)].startswith("  … 1")
    assert f"  {rows[19]}" in lines
    assert [line for line in lines[1:] if header[0] in line] == [f"  {header[0]}"]
    left_out = sum(int(line.split()[1]) for line in lines if line.endswith(" more lines"))
    assert left_out + len(lines) - 3 == len([*filter(None, text.splitlines())])
    _, near, _ = shown(card(text, rows[1]), uri=uri)
    assert [line[2:] for line in near].count(header[0]) == 1


PEOPLE = [f"City {letter},Person {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


@pytest.mark.parametrize(
    ("context", "line", "above", "has_header"),
    [
        ("", 1, ["city,person"], True),
        ("", 1, ["People", "city,person", "… line 3"], True),
        ("city,person\n", 41, ["city,person", "… lines 2–40"], True),
        ("city,person\n", 41, ["city,person"], True),  # the rows of the whole file
        ("", 41, ["Berlin,Anna"], False),
        ("", 41, ["Berlin,Anna", "… lines 42–50"], False),
        ("", 1, ["1,2"], False),
    ],
)
def test_what_names_the_columns_in_its_passage_is_the_header_of_a_csv_file(
    context: str, line: int, above: list[str], has_header: bool
) -> None:
    rows = "\n".join(PEOPLE)
    text = rows if context else "\n".join([*(one for one in above if "…" not in one), rows])
    found = replace(hit(text), uri="file:///people.csv", context=context, start_line=line)
    _, lines, _ = shown_of(card("\n".join([*above, rows]), PEOPLE[19]), hits=[found])
    assert (f"  {above[0]}" in lines) is has_header


def test_the_header_of_a_wide_table_leaves_room_for_its_rows() -> None:
    header = ",".join(f"column number {number}" for number in range(60))
    # Rows that lack a cell are shown as they were written.
    rows = [",".join([str(number)] * 59) for number in range(20)]
    _, lines, _ = shown(card("\n".join([header, *rows]), rows[9]), uri="a.csv")
    assert len(lines) <= 24 - 6
    assert sum("column number" in line for line in lines) == 5
    assert any(line.startswith("  9,9,9") for line in lines)


@pytest.mark.parametrize("text", ["word " * 900, "长" * 2000])
def test_a_line_that_does_not_fit_on_the_screen_is_cut(text: str) -> None:
    file, lines, _ = shown(card(text, text.strip()))
    assert len(lines) <= 24 - 6
    assert lines[0] == "[1] a.md:1–9"
    assert "…" in lines[-1]
    assert not file.screen.history.top


def test_control_characters_of_a_document_reach_no_terminal() -> None:
    file, lines, _ = shown(card("red \x1b[31malert\x07\n\tcell", "alert", location="\x1b]0;x\x07.md"))
    assert "\x1b[31m" not in file.getvalue()
    assert "\x07" not in file.getvalue()
    assert "alert" in lines[1]


FLEET = """| Plate | Driver | Make | First registration | Mileage km | Next inspection | Notes |
|---|---|---|---|---|---|---|
| FR 1200 | Ana Pereira | Volkswagen | 2021-04-12 | 88,120 | 2026-04 | |
| FR 1201 | Tom Becker | Ford | 2020-09-01 | 131,400 | 2025-09 | a\\|b |"""
FLEET_CSV = """Plate,Driver,Make,First registration,Mileage km,Next inspection,Notes
… lines 2–11
FR 1200,Ana Pereira,Volkswagen,2021-04-12,"88,120",2026-04,
FR 1201,Tom Becker,Ford,2020-09-01,"131,400",2025-09,a|b"""


@pytest.mark.parametrize(("text", "uri"), [(FLEET, "fleet.md"), (FLEET_CSV, "fleet.csv")])
def test_the_cells_of_a_wide_table_have_the_names_of_their_columns(text: str, uri: str) -> None:
    best = next(line for line in text.split("\n") if "1201" in line)
    file, lines, _ = shown(card(text, best), question="inspection of FR 1201", uri=uri)
    assert lines[1:] == [
        "  Plate: FR 1200 · Driver: Ana Pereira · Make: Volkswagen · First registration:",
        "  2021-04-12 · Mileage km: 88,120 · Next inspection: 2026-04",
        "  Plate: FR 1201 · Driver: Tom Becker · Make: Ford · First registration:",
        "  2020-09-01 · Mileage km: 131,400 · Next inspection: 2025-09 · Notes: a|b",
    ]
    assert styles(file, ": 2025-09") == {(True, False)}
    assert styles(file, "Tom Becker") == styles(file, ": 2026-04") == {(False, False)}


def test_the_rows_of_a_table_that_fits_are_shown_as_they_were_written() -> None:
    _, lines, _ = shown(card(FLEET, "2025-09"), columns=100)
    assert lines[1:] == [f"  {line}" for line in FLEET.split("\n")]


def test_names_are_those_of_the_own_table() -> None:
    other = FLEET.replace("Driver", "Owner").replace("120", "340")
    _, lines, _ = shown(card(f"{FLEET}\n\nSold:\n\n{other}", "131,400"), rows=40)
    assert [line.split(" · ")[1] for line in lines if "Plate" in line] == [
        *("Driver: Ana Pereira", "Driver: Tom Becker"),
        *("Owner: Ana Pereira", "Owner: Tom Becker"),
    ]


def test_the_row_that_answers_begins_where_a_table_is_cut() -> None:
    rows = [f"| FR 12{n:02} | Tom Becker | Ford | 2020-09-01 | 131,400 | 2025-{n:02} | |" for n in range(30)]
    text = "\n".join([*FLEET.split("\n")[:2], *rows])
    _, lines, _ = shown(card(text, rows[12]), question="FR 1212")
    assert lines[1:3] == [
        "  … 24 more lines",
        "  Plate: FR 1212 · Driver: Tom Becker · Make: Ford · First registration:",
    ]


def test_the_row_that_answers_is_shortened_to_a_few_lines_of_a_second_card() -> None:
    rows = [f"FR 12{n:02},Tom Becker,Ford,2020-09-01,{n},2025-09,{'tyres ' * 30}" for n in range(5)]
    text = "\n".join([FLEET_CSV.split("\n")[0], *rows])
    long = card("\n".join(LINES[:30]), LINES[4])
    _, lines, _ = shown(long, card(text, rows[3], n=2), question="next inspection of FR 1203", uri="a.csv")
    second = lines[next(at for at, line in enumerate(lines) if line.startswith("[2]")) + 1 :]
    assert second[1].startswith("  Plate: FR 1203 · ")
    assert "Next inspection: 2025-09" in " ".join(line.strip() for line in second[1:3])


def of_csv(text: str) -> Hit:
    return replace(hit(text, chunk_id=1), uri="a.csv")


def test_a_long_row_keeps_its_first_cell_and_those_with_words_of_the_question() -> None:
    header = ["Name", *(f"Link {number}" for number in range(9)), "Melting point", "Summary"]
    row = ["Tungsten", *(f"https://example.org/{'x' * 60}" for _ in range(9)), "3695", "text " * 200]
    text = f"{','.join(header)}\n{','.join(row)}"
    _, lines, _ = shown(card(text, ",".join(row)), question="melting point of tungsten", uri="a.csv")
    shown_row = " ".join(line.strip() for line in lines[1:])
    assert shown_row.startswith("Name: Tungsten · ")
    assert " · … · Melting point: 3695 · …" in shown_row
    assert "text text" not in shown_row
    assert len(shown_row) < 700
    out, file = terminal(80, 60)
    answer = Answer(
        "", cards=[card(text, ",".join(row))], candidates=[Candidate(of_csv(text), True, "shown")]
    )
    assert show_cards(Screen(out, out, animated=True), answer.cards, answer, Highlight(""), is_whole=False)[1]
    show_cards(Screen(out, out, animated=True), answer.cards, answer, Highlight(""), is_whole=True)
    assert "text text" in file.shown


def test_of_a_long_cell_the_part_with_words_of_the_question_is_shown() -> None:
    cells = ["Inn", "Berlin", "4.5", f"{'Nice rooms. ' * 60}The sauna is closed. {'Good food. ' * 60}"]
    text = f"Name,City,Rating,Review\n{','.join(cells)}"
    _, lines, _ = shown(card(text, ",".join(cells)), question="Is the sauna open?", uri="a.csv")
    shown_row = " ".join(line.strip() for line in lines[1:])
    assert shown_row.startswith("Name: Inn · City: Berlin · Rating: 4.5 · Review: …")
    assert "rooms. The sauna is closed. Good" in shown_row
    assert shown_row.endswith("…")


def test_a_row_that_lacks_a_cell_is_shown_as_it_was_written() -> None:
    text = f"{FLEET_CSV}\nFR 1202,Tom Becker"
    _, lines, _ = shown(card(text, "Ford"), uri="fleet.csv")
    assert lines[-1] == "  FR 1202,Tom Becker"


def test_what_is_above_a_wide_table_stays_above_its_rows() -> None:
    above = "This file lists all of the vehicles, of the yard and of the harbour, in the year 2025."
    for below in ([], ["The end of the list"]):
        text = "\n".join([above, *FLEET_CSV.split("\n"), *below])
        _, lines, _ = shown_of(card(text, "Ford"), hits=[replace(of_csv(text), context="", start_line=1)])
        assert lines[1].startswith("  This file lists")
        assert "Plate: FR 1200" in "\n".join(lines[2:4])
        assert [line.strip() for line in lines[-1:] if below] == below


def test_a_row_of_a_wide_table_may_have_line_breaks_in_its_cells() -> None:
    text = FLEET_CSV.replace("a|b", '"new tyres\nand a lamp"')
    _, lines, _ = shown(card(text, "Ford"), uri="a.csv")
    assert "Notes: new tyres and a lamp" in " ".join(line.strip() for line in lines)
    _, lines, _ = shown(card(text.replace("Becker", "Bec\rker"), "Ford"), uri="a.csv")
    assert "Plate" in lines[1]


def test_a_long_first_cell_leaves_room_for_the_others() -> None:
    text = f"Review,Name,City,Rating\n{'Nice rooms. ' * 90},Inn,Berlin,4.5"
    _, lines, _ = shown(card(text, "Berlin"), question="Berlin rating", uri="a.csv")
    assert "… · Name: Inn · City: Berlin · Rating: 4.5" in " ".join(line.strip() for line in lines)
    assert len(lines) < 8


@pytest.mark.parametrize("filler", ["这里有很多房间" * 90, f"https://example.org/{'x' * 600} "])
def test_of_a_long_cell_without_spaces_the_part_with_the_word_is_shown(filler: str) -> None:
    text = f"Name,City,Rating,Review\nInn,Berlin,4.5,{filler}sauna closed"
    _, lines, _ = shown(card(text, "Berlin"), question="Is the sauna open?", uri="a.csv")
    assert "sauna" in "".join(line.strip() for line in lines)


def test_of_a_long_cell_the_part_with_most_words_of_the_question_is_shown() -> None:
    review = f"The sauna is closed on Monday. {'Nice rooms. ' * 90}We liked the sauna."
    text = f"Name,City,Rating,Review\nInn,Berlin,4.5,{review}"
    _, lines, _ = shown(card(text, "Berlin"), question="sauna closed Monday", uri="a.csv")
    assert "Review: The sauna is closed on Monday." in " ".join(line.strip() for line in lines)


def test_a_card_without_some_cells_counts_as_cut_but_not_one_with_an_ellipsis_of_its_own() -> None:
    def is_cut(text: str, *others: Card, rows: int = 24) -> bool:
        out, _ = terminal(80, rows)
        cards = [*others, card(text, text.split("\n")[-1], n=2)]
        answer = Answer("", cards=cards, candidates=[Candidate(replace(of_csv(text), chunk_id=2), True, "")])
        return show_cards(Screen(out, out, animated=True), cards, answer, Highlight("inspection"))[1]

    header, *rest = FLEET_CSV.split("\n")
    assert not is_cut(FLEET_CSV.replace("a|b", "tyres … lamp"))
    assert is_cut(FLEET_CSV.replace("a|b", "tyres " * 100))
    row = rest[-1].replace("a|b", "tyres " * 20)
    assert not is_cut(f"{header}\n{row}", rows=19)
    assert is_cut(f"{header}\n{row}", card("\n".join(LINES[:8])), rows=19)


def test_lines_above_the_header_do_not_move_the_row_that_answers() -> None:
    header = FLEET_CSV.split("\n")[0]
    rows = [f"FR 12{n:02},Tom Becker,Ford,2020-09-01,131400,2025-{n:02}," for n in range(30)]
    text = "\n".join(["# Vehicles", "# of the yard", header, *rows])
    _, lines, _ = shown(card(text, rows[12]), question="FR 1212", uri="a.csv")
    assert lines[2].startswith("  Plate: FR 1212")
