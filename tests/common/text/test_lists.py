"""Lists in text: which lines are entries, where a list ends, and what introduces it."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest

from ragcommon.text.lists import begins_entry, introduction, lists_in


def found(text: str) -> list[tuple[str, int, str]]:
    """The first line of each list, the number of its entries, and its last line."""
    lines = dedent(text).split("\n")
    return [(lines[one.first], one.count, lines[one.last]) for one in lists_in(lines)]


@pytest.mark.parametrize(
    "entries",
    [
        ["- oak", "- ash", "- elm"],
        [" 9. oak", "10. ash", "11. elm"],
        ["(a) oak", "(b) ash", "(c) elm"],
        ["A. oak", "B. ash", "C. elm"],
        ["I. oak", "II. ash", "III. elm"],
        ["1a) oak", "1b) ash", "1c) elm"],
        ["◦ oak", "◦ ash", "◦ elm"],
        ["- [ ] oak", "- [x] ash", "- [ ] elm"],
        ["①橡树", "②白蜡树", "③榆树"],
        ["一、橡树", "二、白蜡树", "三、榆树"],
        ["（1）橡树", "（2）白蜡树", "（3）榆树"],
        ["・オーク", "・トネリコ", "・ニレ"],
        ["א. אלון", "ב. מילה", "ג. בוקיצה"],
        ["٨. بلوط", "٩. دردار", "١٠. مران"],
        ["а) дуб", "б) ясень", "в) вяз"],
        ["•", "•", "•"],
        ["- oak\r", "- ash\r", "- elm\r"],
        ["| oak | 3 |", "| ash | 1 |", "| elm | 2 |"],
    ],
)
def test_entries_begin_with_the_marks_of_many_scripts_or_are_rows(entries: list[str]) -> None:
    lines = ["Trees:", "", *entries, "", "They are felled in May."]
    assert [(one.first, one.last, one.entries) for one in lists_in(lines)] == [(2, 4, [2, 3, 4])]
    assert introduction(lines, 2) == 0


@pytest.mark.parametrize(
    "line", ["* * *", "- - - -", "---", "-5 degrees", "3.5 metres", "e.g. oak", "Oak", "", "我。"]
)
def test_rules_numbers_and_sentences_are_no_entries(line: str) -> None:
    assert not begins_entry(line)


def test_a_list_goes_on_in_the_next_line_and_after_an_empty_one_if_that_is_indented() -> None:
    text = """
        - oak, which
        is hard

          and heavy

        - ash

        They are felled in May.

        - saw
        - axe
        """
    assert found(text) == [("- oak, which", 2, "- ash"), ("- saw", 2, "- axe")]


def test_paragraphs_that_begin_with_a_small_indent_end_a_list() -> None:
    text = "The licence may\n(1) be kept, and\n(2) be read.\n\n  It ends in May.\n\n  It is free."
    assert found(text) == [("(1) be kept, and", 2, "(2) be read.")]


def test_a_list_inside_an_entry_comes_before_the_list_around_it() -> None:
    text = """
        1. Trees
           - oak
           - ash
        2. Tools
        """
    assert found(text) == [("   - oak", 2, "   - ash"), ("1. Trees", 2, "2. Tools")]
    assert list(lists_in(dedent(text).split("\n")))[1].entries == [1, 2, 3, 4]


def test_code_is_no_list_and_its_comments_end_none() -> None:
    text = """
        1. Install it:

           ```sh
           # - as root
           - apt
           ```

        2. Start it:
        ```
        # start

        * now
        ```

        3. Look:

        ```
        - log
        ```

        4. Stop it:
        ```
        kill
        ```

        ```
        - not
        - part
        ```
        """
    assert found(text) == [("1. Install it:", 4, "```")]
    *_, one = lists_in(dedent(text).split("\n"))
    assert one.last == len(dedent(text).rstrip().split("\n")) - 6


def test_numbered_sections_are_no_list() -> None:
    section = "The keeper winds the clock. " * 20
    assert found(f"1. Towers\n\n   {section}\n\n2. Gates\n\n   {section}") == []
    assert found(f"| {section} |\n| {section} |")[0][1] == 2


def test_headings_end_all_lists() -> None:
    assert found("- oak\n  - red\n# Tools\n- saw") == [
        ("  - red", 1, "  - red"),
        ("- oak", 1, "  - red"),
        ("- saw", 1, "- saw"),
    ]


@pytest.mark.parametrize(
    ("above", "introduced"),
    [
        ("Pay.\n\nThe trees\nof the wood:\n", "The trees"),
        ("# Wood\n\n", "- oak"),
        ("# Wood\nThe trees:", "The trees:"),
        ("1. Pay\n2. The trees,\n   which are:", "2. The trees,"),
        ("```\nls\n```\n", "- oak"),
        ("The trees:\n\n\n\n", "- oak"),
        ("", "- oak"),
    ],
)
def test_the_paragraph_or_entry_above_introduces_a_list(above: str, introduced: str) -> None:
    lines = [*(above.split("\n") if above else []), "- oak", "- ash"]
    assert lines[introduction(lines, lines.index("- oak"))] == introduced


@pytest.mark.parametrize(
    "text",
    [
        "- item\n" * 50_000,
        "\n".join(" " * depth + "- item" for depth in range(1_000)),
        ("\t" * 100_000 + "- item\n") * 5,
        "- " * 250_000 + "x",
        " " * 500_000 + "x",
        "```\n- item\n" * 20_000,
        "- a\n1. b\n* c\n(1) d\n| e |\n" * 10_000,
        "|" * 500_000 + "x",
    ],
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    lines = text.split("\n")
    begin = time.perf_counter()
    for one in lists_in(lines):
        introduction(lines, one.first)
    assert time.perf_counter() - begin < 5
