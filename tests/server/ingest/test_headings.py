"""The headings of plain texts.

Covers `candidates` and `banners`.
"""

from __future__ import annotations

import time
from textwrap import dedent

import pytest

from ragmemory.ingest.headings import headings, plain_blocks


def paths(text: str) -> list[str]:
    """The titles, indented by their levels."""
    return ["  " * (mark.level - 1) + mark.title for mark in headings(dedent(text).strip() + "\n")]


LAW = """
    ACT ON PUBLIC LIBRARIES

    CHAPTER I
    General provisions

    Article 1
    Purpose

    This act lets everybody read.

    Article 2
    Definitions

    In this act a library is a place with books. Article 9 applies to
    all others.

    CHAPTER II
    Duties

    Article 3
    Opening hours

    A library opens on five days a week.

    Article 3a
    Holidays

    It is closed at Easter.

    Article 4
    Lending

    1. Books are lent free of charge.
    2. The term is four weeks.
    """


def test_articles_and_chapters() -> None:
    assert paths(LAW) == [
        "CHAPTER I General provisions",
        "  Article 1 Purpose",
        "  Article 2 Definitions",
        "CHAPTER II Duties",
        "  Article 3 Opening hours",
        "  Article 3a Holidays",
        "  Article 4 Lending",
    ]


@pytest.mark.parametrize(
    ("one", "two", "three"),
    [
        ("Artículo 1. Objeto", "Artículo 2. Ámbito", "Artículo 3. Plazos"),
        ("§ 1 Name und Sitz", "§ 2 Zweck", "§ 3 Mitglieder"),
        ("Kapitel 1: Aufbau", "Kapitel 2: Betrieb", "Kapitel 3: Pflege"),
        ("TOP 1  Bericht", "TOP 2  Kasse", "TOP 3  Wahlen"),
        ("Rule 1", "Rule 2", "Rule 3"),
        ("PART ONE--The Inn", "PART TWO--The Cook", "PART THREE--The Isle"),
        ("I. NOISE.", "II. LIGHT.", "III. VARIETY."),
        ("1. PREMISES", "2. SERVICE", "3. PRICE"),
        ("Chapter IV", "Chapter V", "Chapter VI"),
        ("CHAP. IV.", "CHAP. V.", "CHAP. VI."),
    ],
)
def test_labels_of_all_languages_count(one: str, two: str, three: str) -> None:
    text = "\n\n".join(
        f"{title}\nThe text of this part follows here, and\nit goes on." for title in (one, two, three)
    )
    assert paths(text) == [" ".join(title.rstrip(".").split()) for title in (one, two, three)]


def test_an_article_whose_text_follows_in_its_line_is_named_by_its_number() -> None:
    text = "\n\n".join(
        f"Article {n}. The council, which has {n} members, shall meet\nin public." for n in (1, 2)
    )
    assert paths(text) == ["Article 1", "Article 2"]


def test_the_title_of_a_clause_may_be_its_first_sentence() -> None:
    text = """
        7. Disclaimer of Warranty. Unless required by law, the work is
        provided as it is.

        8. Limitation of Liability. In no event shall anybody be liable.

        9. Term. It ends in May. A notice is not needed, as the
        parties agree.
        """
    one = text.replace("7.", "1.").replace("8.", "2.").replace("9.", "3.")
    assert paths(one) == ["1. Disclaimer of Warranty", "2. Limitation of Liability", "3. Term"]


def test_numbered_sections_nest_and_a_table_of_contents_has_no_headings() -> None:
    text = """
        Contents

        1. Scope
        2. Terms
        2.1. Words
        2.2. Numbers
        3. Use

        1. Scope
        --------

        This is about kites.

        2. Terms
        --------

        2.1. Words
        ----------

        A line is a string. These steps are not sections:

        1. hold it
        2. run

        2.2. Numbers
        ------------

        Metres are used.

        3. Use
        ------

        Fly it on a beach.
        """
    assert paths(text) == ["1. Scope", "2. Terms", "  2.1. Words", "  2.2. Numbers", "3. Use"]


def test_numbers_go_on_after_titles_that_are_none_and_after_gaps() -> None:
    titles = ["1. Scope", "2. Terms", "2.1. Words", "2.2. Numbers"]
    # "3. Whatever comes after …" is a sentence; sections 4 to 11 were left out.
    titles += ["3.1. iPhones", "3.2. Kites", "12. Annexes", "13. Dates"]
    text = "\n\n".join(f"{title}\n\nIt is written down here." for title in titles)
    # A number that nothing follows, such as that of a reference, is no heading.
    text += "\n\n50. References\n\nThere are none."
    assert [title.strip() for title in paths(text)] == titles


@pytest.mark.parametrize(
    "titles",
    [
        ("Article R411-3", "Article R411-3-1", "Article R411-4", "Article R411-17", "Article R411-18"),
        ("Article L. 110-1", "Article L. 110-2", "Article R. 110-1", "Article R. 110-2"),
        ("Section 15-101 Name", "Section 15-102 Seal", "Section 15-103 Year"),
        ("Release 2026b", "Release 2026a", "Release 2025c", "Release 2025b"),
    ],
)
def test_labels_may_have_numbers_of_codes_and_come_newest_first(titles: tuple[str, ...]) -> None:
    text = "\n\n".join(f"{title}\n\nIt is written down here, as in article 9." for title in titles)
    assert paths(text) == [*titles]


def test_underlined_titles_have_the_levels_of_their_lines() -> None:
    text = """
        Bread
        =====

        Dough
        ~~~~~

        Knead it.

        Oven
        ~~~~

        Heat it.

        Cake
        ====

        Eat it.
        """
    assert paths(text) == ["Bread", "  Dough", "  Oven", "Cake"]


def test_underlined_numbers_may_begin_again_and_others_are_items_of_lists() -> None:
    text = """
        1. Kites
        ========

        Fly them so:

        2. Hold it.

        3. Run.

        1-a     Strings
        ---------------

        They are long.

        2. Tails
        ========

        They are short.

        2-a     Bows
        ------------

        They are red.

        1. Annex
        ========

        There is one.

        C.   Signs
        ==========

        There are two.

        D.   Dates
        ==========

        There are none.
        """
    titles = ["1. Kites", "  1-a Strings", "2. Tails", "  2-a Bows", "1. Annex", "C. Signs", "D. Dates"]
    assert paths(text) == titles


def test_a_title_of_a_unique_kind_is_not_a_heading() -> None:
    assert paths("The kite\n========\n\nIt flies.\n\nIt falls.") == []


MANUAL = """
KITE(1)                     User Commands                    KITE(1)

NAME
       kite - fly a kite

DESCRIPTION
       Flies a kite until it falls.

   Weather
       It needs some wind.

OPTIONS
       -l, --line=METRES
              The length of the line.

              It is 30 by default.

       -q     Be quiet.

       --help Show a help text.

       All of them may be given twice.

FILES
       ~/.kite

KITE(1)                     User Commands                    KITE(1)
"""


def test_the_sections_and_options_of_a_manual_page() -> None:
    assert [("  " * (mark.level - 1)) + mark.title for mark in headings(MANUAL)] == [
        "NAME",
        "DESCRIPTION",
        "  Weather",
        "OPTIONS",
        "    -l, --line=METRES",
        "    -q",
        "    --help",
        "    ",  # the end of the options
        "FILES",
    ]


def test_the_settings_and_variables_of_a_manual_page() -> None:
    text = (
        "NAME\n     kite.conf - settings\n\nDESCRIPTION\n     The settings are:\n\n"
        "     LineLength\n             In metres. The\n             reel is empty then.\n\n"
        "     KITE_WIND  The least wind, as in\n             the forecast.\n\n"
        "     tail_color\n\n             Any colour.\n\n"
        "     Kites are described\n             here by hand.\n\nFILES\n     kite.conf\n"
    )
    assert [(mark.level, mark.title) for mark in headings(text)] == [
        *((1, "NAME"), (1, "DESCRIPTION")),
        *((2, "LineLength"), (2, "KITE_WIND"), (2, "tail_color"), (2, "")),
        (1, "FILES"),
    ]


def test_the_terms_of_a_definition_list_in_a_manual_page() -> None:
    text = (
        "NAME\n     kite - fly\n\nCOMMANDS\n     wind hours [place]...\n         Shows the wind.\n\n"
        "         now\n             At once.\n\n         later\n             Not yet.\n\n"
        "         if wind {\n             fly\n         }\n\n         never\n             At no time.\n\n"
        "     alone\n             \n     reel\n         Winds the line up.\n\n"
        "     cut\n         Cuts the line.\n\n"
        "     It is told as follows:\n         cut now\n\nFILES\n     kite.conf\n"
    )
    assert [(mark.level, mark.title) for mark in headings(text) if mark.title] == [
        *((1, "NAME"), (1, "COMMANDS")),
        *((2, "wind hours [place]..."), (3, "now"), (3, "later"), (3, "never"), (2, "reel"), (2, "cut")),
        (1, "FILES"),
    ]


def test_titles_between_two_rules_are_above_underlined_ones() -> None:
    text = """
        Contents
        --------

        Sea and land.

        -----------------------
        A.               SEA
        -----------------------

        Waves
        -----

        They roll.

        -----------------------
        B.               LAND
        -----------------------

        It stays.
        """
    assert paths(text) == ["  Contents", "A. SEA", "  Waves", "B. LAND"]


def test_italic_titles_are_below_chapters() -> None:
    text = "".join(
        f"CHAPTER {number}\n\n_On the {name}_\n\nIt is wide.\n\n_The {name}._\n\nIt is _{name}_.\n\n"
        for number, name in enumerate(("sea", "land", "air"), 1)
    )
    assert paths(text) == [
        *("CHAPTER 1 On the sea", "  The sea", "CHAPTER 2 On the land", "  The land"),
        *("CHAPTER 3 On the air", "  The air"),
    ]


def test_terms_in_the_margin_are_those_of_a_definition_list() -> None:
    text = (
        "Ascender\n    The part above the lower-case x.\n\nBleed\n    What is cut off.\n\nKern\n    A gap.\n"
    )
    assert paths(text) == ["Ascender", "Bleed", "Kern"]


@pytest.mark.parametrize(
    "releases",
    [
        ["Version 2.36.1", "Version 2.36", "Version 2.35"],
        [
            "* Noteworthy changes in release 9.1 (2022-04-15) [stable]",
            "* Noteworthy changes in release 9.0",
            "* Noteworthy changes in release 8.32, 2020-03-05",
        ],
        ["v2.9.14: May 02 2022:", "v2.9.13: Feb 19 2022:", "v2.9.12: May 13 2021:"],
        ["5.4.1 (2023-01-11)", "5.4.0 (2022-12-13)", "5.3.5beta (2022-12-01)"],
        [
            "ed (1.19-1) unstable; urgency=medium",
            "ed (1.18-1) unstable; urgency=low",
            "ed (1.9-1) unstable; urgency=low",
        ],
        [
            "NEWS for the Nettle 3.8.1 release",
            "NEWS for the Nettle 3.8 release",
            "NEWS for the Nettle 3.7 release",
        ],
        ["Kettle, 1.2.0 - 3 May 2021", "Kettle, 1.1.0 - 2 May 2021", "Kettle, 1.0.0 - 1 May 2021"],
    ],
)
def test_the_releases_of_a_changelog_are_headings(releases: list[str]) -> None:
    text = "".join(f"{one}\n\n- Works with Python 3.8\n\n- A bug is mended.\n\f\n" for one in releases)
    assert [one.title for one in headings(text)] == [one.lstrip("* ").rstrip(":") for one in releases]


def test_releases_may_be_underlined() -> None:
    releases = ["5.4.1 (2023-01-11)", "5.4.0 (2022-12-13)", "5.3.5beta (2022-12-01)"]
    text = "".join(f"{one}\n{'-' * len(one)}\n* A bug is mended.\n\n\n" for one in releases)
    assert [one.title for one in headings(text)] == releases


@pytest.mark.parametrize(
    "lines",
    [
        [
            "Python 3.8 (2019)",
            "Python 2.7 (2010)",
            "Python 3.9 (2020)",
            "Python 2.6 (2008)",
            "Python 3.1 (2009)",
        ],
        ["Anna 10.30", "Anna 10.45", "Anna 11.05"],
        ["Server 10.0.0.1", "Server 10.0.0.2", "Server 10.0.0.3"],
        ["Figure 2.1: A boat", "Figure 2.2: A ship", "Figure 2.3: A raft"],
    ],
)
def test_other_lines_with_numbers_are_no_releases(lines: list[str]) -> None:
    assert not headings("".join(f"{line}\n\nIt is there.\n\n" for line in lines))


def test_a_hostile_line_takes_no_time() -> None:
    began = time.process_time()
    headings("".join(f"v1{'.11' * 60}!\n\n*{' ' * 190}x\n\n" for _ in range(200)))
    assert time.process_time() - began < 1


def test_numbering_goes_on_below_questions_that_are_no_titles() -> None:
    faq = (
        " 1. Is it safe?\n\n    Yes.\n\n 2. Is it free?\n\n    Yes.\n\n 3. Is it fast?\n\n    Yes.\n\n"
        " 4. open() fails.\n\n    Close it.\n\n 5. close() fails.\n\n    Open it.\n\n"
        " 6. Can it read archives?\n\n    No.\n\n"
    )
    assert [one.title for one in headings(faq)] == [
        *("1. Is it safe?", "2. Is it free?", "3. Is it fast?", "6. Can it read archives?"),
    ]


def test_the_chapters_of_a_book_may_be_numbers_alone() -> None:
    said = "It rained all day, and nobody went out.\n\n“Well,” said she.\n\n“Well,” said he.\n\n"
    text = f"1\n\nThe Inn\n\n{said}2\n\nThe Sea\n\n{said}3\n\nThe Isle\n\n{said}"
    assert paths(text) == ["1 The Inn", "2 The Sea", "3 The Isle"]


def test_the_title_below_the_number_of_a_chapter_may_end_with_a_period() -> None:
    said = "It rained all day, and nobody went out.\n\n“Well,” said she.\n\n"
    text = f"CHAPTER I.\n\nThe Widow and her Child.\n\n{said}CHAPTER II.\n\nThe Grey Mare.\n\n{said}"
    assert paths(text) == ["CHAPTER I. The Widow and her Child", "CHAPTER II. The Grey Mare"]
    sentences = text.replace("and her Child", "was ill").replace("The Grey Mare", "Nobody had seen her")
    assert paths(sentences) == ["CHAPTER I", "CHAPTER II"]


def test_the_title_below_the_number_of_a_chapter_may_fill_several_lines_in_capitals() -> None:
    said = "It rained all day, and nobody went out.\n\n“Well,” said she.\n\n"
    text = (
        f"I\n\nHOW THE WIDOW LEFT THE HARBOUR WITH HER CHILD, AND HOW SHE\nFOUND A GREY MARE.\n\n\n{said}"
        f"II\n\nTHE SEA; AND OF A STORM.\n\n\n{said}III\n\nTHE ISLE.\n\n\n{said}"
    )
    assert paths(text) == [
        "I HOW THE WIDOW LEFT THE HARBOUR WITH HER CHILD, AND HOW SHE FOUND A GREY MARE",
        "II THE SEA; AND OF A STORM",
        "III THE ISLE",
    ]
    parts = f"PART I\nTHE SEA\nCHAPTER I\n\n{said}PART II\nTHE ISLE\nCHAPTER II\n\n{said}"
    assert paths(parts) == ["PART I THE SEA", "PART II THE ISLE"]


def test_sentences_and_addresses_are_no_volumes_and_dates() -> None:
    lines = ("Volume matters.", "Act now.", "Martin Green 12", "Market Street 12")
    assert paths("\n\n".join(f"{line}\n\nIt rained all day, and nobody went out." for line in lines)) == []


def test_books_are_above_chapters_also_where_their_numbers_are_words() -> None:
    chapters = "CHAPTER I.\n\nIt rained all day.\n\nCHAPTER II.\n\nIt rained again.\n\n"
    text = f"VOLUME THE FIRST.\n\n{chapters}VOLUME THE SECOND.\n\n{chapters}"
    assert paths(text) == [
        "VOLUME THE FIRST",
        "  CHAPTER I",
        "  CHAPTER II",
        "VOLUME THE SECOND",
        "  CHAPTER I",
        "  CHAPTER II",
    ]


def test_the_numbers_of_chapters_may_stand_between_dashes() -> None:
    said = "It rained all day, and nobody went out.\n\n"
    text = f"-I-\n\nThe Inn\n\n{said}-II-\n\nThe Sea\n\n{said}-III-\n\nThe Isle\n\n{said}"
    assert paths(text) == ["-I- The Inn", "-II- The Sea", "-III- The Isle"]


@pytest.mark.parametrize(
    ("one", "two", "three"),
    [
        ("2024.05.01 - kite 8.0 “The Wind”", "2024.01.18 - kite 7.2", "2023-12-04 - kite 7.1"),
        ("Monday, 3 May 2021", "Tue 4. Mai 2021: on the hill", "May 5, 2021"),
        ("2006-05-12  Ada Kern  <ada@kite.example>", "12.5.2006", "[11/5/2006]"),
        ("30th December 1824", "Falmouth, the 2nd of April, 1825", "May the 3rd, 1825"),
    ],
)
def test_dates_begin_the_entries_of_journals_and_changelogs(one: str, two: str, three: str) -> None:
    text = "".join(
        f"{date}\n• The tail no longer comes off in a\n  strong wind.\n\n" for date in (one, two, three)
    )
    assert paths(text) == [" ".join(date.split()) for date in (one, two, three)]


def test_a_date_in_the_first_line_of_its_text_is_the_title() -> None:
    text = "".join(
        f"2017.0{n}.21 - kite 2.{n} brings a new tail, which no longer comes\n  off in a wind.\n\n"
        for n in (3, 2, 1)
    )
    assert paths(text) == ["2017.03.21", "2017.02.21", "2017.01.21"]


def test_what_an_interviewer_says_without_asking_ends_the_section_of_a_question() -> None:
    turns = [
        "ROE: Who broke the strike?",
        "KEAST: We all know.",
        "ROE: Let us stop.",
        "KEAST: It lasted weeks.",
    ]
    text = "\n\n".join(
        [*turns, "ROE: Where was your school?", "KEAST: Here.", "ROE: And the church?", "KEAST: There."]
    )
    sections = {block.heading for block in plain_blocks(text) if "weeks" in text[block.start : block.end]}
    assert sections == {""}
    assert paths(text) == ["Who broke the strike?", "", "Where was your school?", "And the church?"]


def test_questions_and_what_is_asked_without_a_question_mark_are_titles_above_indented_answers() -> None:
    asked = [
        "Does it fly? Or does it only\n   hang?",
        "It fell down\n   at night.",
        "Who holds it?",
        "Where?",
    ]
    contents = "\n".join(f"Q: {one}" for one in asked)
    said = "The kite hangs in the wind until you\n   pull, and then it flies for some time."
    text = f"{contents}\n\n" + "".join(f"Q: {one}\n\nA: {said}\n   \n   {said}\n\n" for one in asked)
    assert paths(text)[-len(asked) :] == [" ".join(one.split()) for one in asked]
    assert not any("Q:" in title for title in paths(text))


def test_page_numbers_are_not_chapters() -> None:
    said = "It rained all day, and nobody went out of the house, for the\n\n{}\n\nroads were flooded.\n\n"
    assert paths("".join(said.format(page) for page in range(1, 9))) == []


def test_titles_in_capitals() -> None:
    text = "GLASS\nTake it to us.\n\nBULKY THINGS\nTwice a year.\n\nNOTE: Call us.\n\nLAMPS\nTo the yard.\n"
    assert paths(text) == ["GLASS", "BULKY THINGS", "LAMPS"]


SETTINGS = """
    # ==========================
    # Network
    # ==========================

    # The port on which it listens.
    # -----> see also "host"
    port = 8080

    # - Limits -

    # How many clients there may be.
    clients = 20

    # ==========================
    # Storage
    # ==========================

    folder = /srv

    # - Limits of size -

    size = 3
    """


def test_a_title_with_a_rule_may_have_a_date_at_its_right_end_but_a_row_with_a_rule_is_none() -> None:
    ticket = """
        ----------------------------------------
        Ada Lee                 2025-05-19 07:58
        ----------------------------------------
        The boiler restarts at night.

        ----------------------------------------
        Ben Ray                 19 May 2025 9:14
        ----------------------------------------
        It is switched off.
        """
    assert paths(ticket) == ["Ada Lee 2025-05-19 07:58", "Ben Ray 19 May 2025 9:14"]
    releases = """
        Version 4.1.2                 2025-06-16
        ----------------------------------------
        Fixes the night job.

        Version 4.1.0               (2025-04-07)
        ----------------------------------------
        Adds a report.
        """
    assert paths(releases) == ["Version 4.1.2 2025-06-16", "Version 4.1.0 (2025-04-07)"]
    rows = """
        Boiler                 Price in May 2025
        ----------------------------------------
        Kite                                 900

        Pump                   Price in May 2025
        ----------------------------------------
        Gull                                  80
        """
    assert paths(rows) == []


def test_boxes_and_ruled_lines_of_comments() -> None:
    assert paths(SETTINGS) == ["Network", "  Limits", "Storage", "  Limits of size"]


@pytest.mark.parametrize(
    "banner",
    [
        "# ---- {} ----",
        "################ {} ################",
        ";;;;;;;;;;;;;;;;\n; {} ;\n;;;;;;;;;;;;;;;;",
        "// ===== {}",
        "# {}\n# ----------",
        "-- {} ----------------",
    ],
)
def test_banners(banner: str) -> None:
    text = "".join(f"{banner.format(name)}\n\n{name.lower()} = 1\n\n" for name in ("Network", "Storage"))
    assert paths(f"# Settings of a thing.\n\n{text}") == ["Network", "Storage"]


def test_tables_of_settings() -> None:
    text = "name = 1\n\n[server]\n# The port.\nport = 1\n\n[client.http]\nport = 2\n\n[[routes]]\npath = 3\n"
    assert paths(text) == ["server", "client.http", "routes"]
    commented = "[imap]\n; Logins are disabled by default.\n;imap.enable_rsh=0\n\n[intl]\n;intl.locale =\n"
    assert paths(commented) == ["imap", "intl"]
    indented = "[http]\n  # Whether it listens.\n  # enabled = true\n\n[tls]\n  # kept = false\n"
    assert paths(indented) == ["http", "tls"]
    assert paths("As he says:\n\n[1]\nA book.\n\n[2]\nAnother book.\n") == []


def test_the_comment_above_a_table_of_settings_belongs_to_it() -> None:
    two = "# Long bans.\n# For weeks.\n[two]\n\nport = 2\n\n#old = 3\n\n"
    text = f"[one]\nport = 1\n# old = 2\n\n{two}[three]\nport = 3\n"
    starts = [text[mark.start :].partition("\n")[0] for mark in headings(text)]
    assert starts == ["[one]", "# Long bans.", "[three]"]


def test_a_number_in_words_follows_any_other() -> None:
    text = "".join(f"Part {number}\n\nIt is said.\n\n" for number in ("1", "2", "9", "Three", "4"))
    assert paths(text) == ["Part 1", "Part 2", "Part Three", "Part 4"]


@pytest.mark.parametrize(
    "text",
    [
        "1. buy milk\n2. buy bread\n3. call Ada\n",
        "1. Buy milk\n\n2. Buy bread\n\n3. Call Ada\n",
        "Dear Ada,\n\nI was there in May 2021.\n\nMay 3 was warm.\n\nMay 17 was not.\n\nYours,\nBen\n",
        "Table 1 shows it.\n\nTable 2 shows more.\n\nTable 3 shows all.\n",
        "# A comment.\n# Another one.\n\nport = 3\n\n# The third.\n\nhost = 4\n",
        "When I came home, it rained.\n\nThen I left.\n\nAnd I came again.\n",
        "“Where?” said he.\n\n“There.”\n\nHe went.\n\nShe stayed.\n",
        "To send it:\n\n----\n $ kite push origin/tail --all\n----\n\nTo end:\n\n----\n $ kite off\n----\n",
        "".join(f"2024-05-0{day} 10:00:03 INFO it goes on\n  with more\n\n" for day in (1, 2, 3)),
        "Name    Size\n------------\nkite    3\n\nName    Price\n-------------\nkite    4\n",
    ],
)
def test_prose_lists_and_comments_have_no_headings(text: str) -> None:
    assert paths(text) == []


def test_underlined_titles_with_a_colon() -> None:
    text = """
        Bienvenue !

        Site web :
        ==========

        Le site se trouve à cette adresse.

        Licence:
        ========

        Le programme est libre.
        """
    assert paths(text) == ["Site web", "Licence"]


def test_numbered_titles_of_several_lines_in_lower_case_or_quoted() -> None:
    text = """
        1.1. What is this?

        A list of questions, of which the title of the third is
        longer than a line.

        1.2. What is the difference between this distribution and all the other
        distributions? Why should I choose this one?

        It has more packages.

        1.3. root shells

        They may do all.

        1.4 "Yes" and "no"
        ==================

        Two answers.

        1.5 The tenant shall pay the rent on the first day of each month, and at
        the latest on the third.

        1.6 shall be void.
        """
    assert paths(text) == [
        "1.1. What is this?",
        "1.2. What is the difference between this distribution and all the other distributions? "
        "Why should I choose this one?",
        "1.3. root shells",
        '1.4 "Yes" and "no"',
        "1.5",
        "1.6",
    ]


CHINESE = """
    中华人民共和国图书馆法

    第一章　总则
    第一条　为了促进公共图书馆事业发展，发挥公共图书馆功能，制定本法。
    第二条　本法所称公共图书馆，是指向社会公众免费开放的公共文化设施。
    前款规定的文献信息包括图书报刊。
    第二章　设立
    第三条　公共图书馆应当依照第二条开放。
    第四条　设立公共图书馆应当具备下列条件：
    （一）章程；
    （二）固定的馆址。
    """

JAPANESE = """
    第一章　総則

    （この法律の目的）
    第一条　この法律は、図書館の設置及び運営に関して必要な事項を定める。

    第二条　図書館は、図書を収集する。

    第二条の二　削除

    第二章公立図書館

    第三条　公立図書館の設置に関する事項は、条例で定めなければならない。
    """

KOREAN = """
    제1장 총칙

    제1조(목적) 이 법은 도서관의 육성과 운영에 필요한 사항을 규정함을 목적으로 한다.

    제1조의2(적용) 이 법은 모든 도서관에 적용한다.

    제2장 도서관정책

    제2조(위원회) 위원회를 둔다.
    """


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (CHINESE, ["第一章 总则", "  第一条", "  第二条", "第二章 设立", "  第三条", "  第四条"]),
        (JAPANESE, ["第一章 総則", "  第一条", "  第二条", "  第二条の二", "第二章 公立図書館", "  第三条"]),
        (KOREAN, ["제1장 총칙", "  제1조(목적)", "  제1조의2(적용)", "제2장 도서관정책", "  제2조(위원회)"]),
    ],
)
def test_chapters_and_articles_in_chinese_japanese_and_korean(text: str, found: list[str]) -> None:
    assert paths(text) == found


def test_numbers_in_chinese() -> None:
    numbers = [
        "九",
        "十",
        "十一",
        "十九",
        "二十",
        "二十一",
        "九十九",
        "一百",
        "一百零三",
        "一〇四",
        "１０５",
        "106",
    ]
    text = "\n\n".join(f"第{number}条　图书免费借出。" for number in numbers)
    assert paths(text) == [f"第{number}条" for number in numbers]


def test_chapters_whose_number_their_sections_have_are_above_them_also_below_a_preface() -> None:
    text = """
        1. Disclaimer

        All is without warranty.

        2. About this book

        It was written in 2020.

        Chapter 1. Lessons

        1.1. The console

        A console shows text.

        Chapter 2. Packages

        2.1. Management

        Packages are managed.

        Chapter 3. The end

        3.1. Farewell

        The end.
        """
    assert paths(text)[2:] == [
        "Chapter 1. Lessons",
        "    1.1. The console",
        "Chapter 2. Packages",
        "    2.1. Management",
        "Chapter 3. The end",
        "    3.1. Farewell",
    ]


def test_labels_that_begin_again_at_one_are_below_those_before_them() -> None:
    text = """
        Article I

        Section 1

        A club is founded.

        Section 2

        It has a board.

        Article II

        Section 1

        The board meets weekly.

        Section 2

        It keeps minutes.

        Article III

        Anybody may join.

        Amendment I

        Nobody may join twice.

        Amendment II

        Section 1

        Whoever joins pays.

        Section 2

        Fees are low.

        Amendment III

        Section 1

        Fees are high.
        """
    assert paths(text) == [
        *("Article I", "  Section 1", "  Section 2"),
        *("Article II", "  Section 1", "  Section 2"),
        *("Article III", "Amendment I"),
        *("Amendment II", "  Section 1", "  Section 2"),
        *("Amendment III", "  Section 1"),
    ]


def test_chapters_are_above_sections_that_begin_again_at_one() -> None:
    chapter = "\n\n".join(f"{n}. {{}}\n\nText." for n in (1, 2, 3))
    text = "\n\n".join(
        f"Chapter {n}. {name}\n\n{chapter.format('Aim', 'Way', 'End')}"
        for n, name in enumerate(("Mail", "News", "Chat"), 1)
    )
    sections = ["  1. Aim", "  2. Way", "  3. End"]
    assert paths(text) == [
        *("Chapter 1. Mail", *sections),
        *("Chapter 2. News", *sections),
        *("Chapter 3. Chat", *sections),
    ]


def test_questions_of_a_faq() -> None:
    text = """
        Fragen und Antworten

        F: Gibt es eine Strategie für Anfänger?

        Um es gleich zu sagen: nein.

        F: Welche Zeit sollte man für eine Runde
        verwenden?
        A: Eine Minute.

        Dr. Müller fragte, ob das reicht. Reicht es?

        F: Wie groß sollte die Karte sein?

        Groß.
        """
    assert paths(text) == [
        "Gibt es eine Strategie für Anfänger?",
        "Welche Zeit sollte man für eine Runde verwenden?",
        "Wie groß sollte die Karte sein?",
    ]


def test_numbered_clauses_of_a_licence_but_not_the_items_of_lists() -> None:
    clause = "{}. You may copy the program and give it to others, if you keep all notices. " + 8 * (
        "\nYou may charge a fee for the physical act of transferring a copy."
    )
    clauses = "\n\n".join(clause.format(number) for number in range(5))
    text = f"TERMS AND CONDITIONS\n\n{clauses}\n\nNO WARRANTY\n\n{clause.format(5)}\n\nEND OF TERMS\n\nBye."
    found = [mark.title for mark in headings(text)]
    assert found == ["TERMS AND CONDITIONS", *"01234", "NO WARRANTY", "5", "END OF TERMS"]
    assert headings(f"{clauses}\n\nOf these:\n\n{clause.format(1)}\n\n{clause.format(2)}\n") == []
    assert headings("\n\n".join(f"{number}. Mix the flour and the eggs." for number in range(9))) == []


def test_titles_below_a_long_rule_also_with_the_marks_of_a_help_file() -> None:
    rule = "=" * 78
    text = f"""
Automatic commands

1. Introduction             |intro|
2. Removing them            |remove|
3. Groups                   |groups|

{rule}
1. Introduction                                                 *intro*

You can specify commands to be executed.

{rule}
2. Removing them                                *remove* *E203*

Remove them all.

{rule}
3. Groups                                                       *groups*

They have names.
"""
    assert paths(text) == ["1. Introduction", "2. Removing them", "3. Groups"]
    dashes = "-" * 40
    news = f"""
* fix parsing of names

{dashes}
Sed 4.2.1

* fix security

{dashes}
Sed 4.2

* now released under GPLv3

{dashes}
Written by Ada, who lives in a house with a garden,
and by Bo.
"""
    assert paths(news) == ["Sed 4.2.1", "Sed 4.2"]


def test_sections_as_far_to_the_right_as_the_text() -> None:
    text = """
        1. Introduction

          The project is an association of people. It has a purpose.

          It has rules, too, which all of them follow.

        2. Bodies

          2.1. General rules

          Each decision is made by one of them.

          2.2. Powers

          A body may do what it must.

        3. Voting

          3.1. Quorum

          Half of them vote.
        """
    assert paths(text) == [
        *("1. Introduction", "2. Bodies", "  2.1. General rules", "  2.2. Powers"),
        *("3. Voting", "  3.1. Quorum"),
    ]


def test_releases_whose_version_has_an_epoch() -> None:
    releases = [f"git (1:2.39.{number}-1) unstable; urgency=medium" for number in (5, 4, 3)]
    assert paths("\n\n  * New upstream release.\n\n".join([*releases, ""])) == releases


def test_the_lines_that_frame_a_book_are_no_headings() -> None:
    chapters = "\n\n".join(f"CHAPTER {number}\n\nIt rose." for number in ("I", "II", "III"))
    text = f"*** START OF THIS EBOOK THE KITE ***\n\n{chapters}\n\n*** END OF THIS EBOOK THE KITE ***\n"
    assert paths(text) == ["CHAPTER I", "CHAPTER II", "CHAPTER III"]
