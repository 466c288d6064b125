"""The rules about text that hold in both programs."""

from __future__ import annotations

import pytest

from ragcommon.text.rules import (
    MAX_HEADING,
    MAX_QUERY_CHARACTERS,
    heading_of,
    passage_names,
    query_part,
    searchable,
    table_header,
    with_words_replaced,
    without_accents,
)


@pytest.mark.parametrize(
    ("title", "heading", "names"),
    [
        ("Flat", "Flat > Boiler", ["Flat > Boiler"]),
        ("Flat", "Flat", ["Flat"]),
        ("Flat", "Flatware > Forks", ["Flat", "Flatware > Forks"]),
        ("Notes", "Flat > Boiler", ["Notes", "Flat > Boiler"]),
        ("", "Boiler", ["Boiler"]),
        ("Flat", "", ["Flat"]),
    ],
)
def test_a_title_that_begins_the_heading_path_is_not_repeated(
    title: str, heading: str, names: list[str]
) -> None:
    assert passage_names(title, heading) == names


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("green tea", ["green", "tea"]),
        ("Wo ist Köln?", ["Wo", "ist", "Köln?"]),
        ("北京 is big", ["北", "京", "is", "big"]),
        ("ชาร้อน𠀀", ["ช", "า", "ร", "้", "อ", "น", "𠀀"]),
    ],
)
def test_every_character_of_a_script_without_spaces_becomes_a_token(text: str, tokens: list[str]) -> None:
    assert searchable(text).split() == tokens


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# Soup", (1, "Soup")),
        ("  ### The *first* ##  ", (3, "The first")),
        (
            r"## [](#terms)**1\. [Terms](https://a.b/#c) of** `use_it()` <a name=terms></a>",
            (2, "1. Terms of use_it()"),
        ),
        (
            "# __init__ of *args and **kwargs, 5 * 3 * 2, list[int], <T>",
            (1, "__init__ of *args and **kwargs, 5 * 3 * 2, list[int], <T>"),
        ),
        ("# a[i][j] of [Map][1] and [x](y/z_(1)), a <b and c> d", (1, "a[i][j] of Map and x, a <b and c> d")),
        ("# ![](logo.png) Soup [![build](badge.svg)](ci)", (1, "Soup")),
        ("# ![Soup](logo.png)", (1, "Soup")),
        ("# C#", (1, "C#")),
        ("# &#34;Soup&#34; &amp; Bread", (1, '"Soup" & Bread')),
        ("# Soup&nbsp;&#10;of the day&nbsp;", (1, "Soup of the day")),
        ("# `&amp;` in URLs", (1, "&amp; in URLs")),
        ("## Scope {#scope .wide}", (2, "Scope")),
        ("## Scope ## {: #scope}", (2, "Scope")),
        ("## The {set} of {#a}, {#b}", (2, "The {set} of {#a},")),
        ("##", (2, "")),
        ("#hashtag", None),
        ("####### seven", None),
        ("    # code", None),
        (f"# {'a' * MAX_HEADING}", None),
        (
            '<h1 align="center">\n  <img src="logo.png">\n  Soup &amp; <b>Bread</b>\n</h1>\n',
            (1, "Soup & Bread"),
        ),
        ("<H3 id=salt>Salt</H3>", (3, "Salt")),
        ('<h2><a href="x?a>b">Salt</a> <!-- not > this --></h2>', (2, "Salt")),
        ("<h2>Soup</h2><h2>Bread</h2>", None),
        ('<h1><img src="logo.png"></h1>', None),
        ("<h2>Soup</h2> and more", None),
        (f"<h2>{'a' * MAX_HEADING}b</h2>", None),
        ("<header>Soup</header>", None),
    ],
)
def test_headings_are_recognised_with_their_level(line: str, heading: tuple[int, str] | None) -> None:
    assert heading_of(line) == heading


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ("Wie lang ist die Kündigungfrist?", "Wie lang ist die Kündigungsfrist?"),
        ("ku\u0308ndigungfrist", "kündigungsfrist"),
        ("where is the trebuchte?", "where is the trebuchet?"),
        ("trebuchte_2, trebuchtes", "trebuchte_2, trebuchtes"),
    ],
)
def test_words_are_replaced_whatever_their_case_and_accents(text: str, corrected: str) -> None:
    corrections = {"kundigungfrist": "kündigungsfrist", "trebuchte": "trebuchet"}
    assert with_words_replaced(text, corrections) == corrected


def test_a_long_query_is_cut_between_words() -> None:
    assert set(query_part("boiler " * 20_000).split()) == {"boiler"}
    whole = "boiler\n" * 1_000
    assert query_part(whole) == whole
    assert MAX_QUERY_CHARACTERS - 100 <= len(query_part("水" * 20_000)) <= MAX_QUERY_CHARACTERS


@pytest.mark.parametrize(("text", "plain"), [("IŞIK Kâğıt", "isik kagit"), ("İğne ışık", "igne isik")])
def test_the_i_of_turkish_has_no_dot_and_no_lack_of_one(text: str, plain: str) -> None:
    assert without_accents(text) == plain


@pytest.mark.parametrize(
    ("above", "header"),
    [
        ("|a|b|\n|-|-|\n", "|a|b|\n|-|-|"),
        ("Text.\n\n|a|b|\n|-|-|\n|1|2|\n", "|a|b|\n|-|-|"),
        ("|a|b|\n|-|-|\n|1|2|\n| - | - |\n", "|a|b|\n|-|-|"),  # a row of dashes
        ("|a|b|\n|-|-|\n… line 3\n", ""),
        ("|1|2|\n", ""),
        ("", ""),
    ],
)
def test_the_header_of_a_table_is_above_all_its_rows(above: str, header: str) -> None:
    text = f"{above}|3|4|\n|5|6|\n"
    assert text[slice(*table_header(text, len(above)))] == header


def test_lines_that_stand_for_rows_do_not_end_a_table() -> None:
    above = "… lines 1–2\n|a|b|\n|-|-|\n… line 5\n"
    assert above[slice(*table_header(f"{above}|3|4|\n", len(above), gaps=("…",)))] == "|a|b|\n|-|-|"
